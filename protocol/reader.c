/*
 * Runs in:   every process
 * Trusts:    nothing: bounds are checked even where a scan has come before
 * Blocks on: nothing
 */
#include "protocol/reader.h"

#include <string.h>

#include "protocol/error.h"
#include "protocol/head.h"

void brood_reader_init(struct brood_reader *r, const uint8_t *data, size_t len)
{
	r->pos = data;
	r->end = len > 0 ? data + len : data; /* an empty slice may be NULL, to which nothing may be added */
}

/* The head that comes next, all of its payload being there too. */
static int peek(const struct brood_reader *r, struct brood_head *head)
{
	size_t left = (size_t)(r->end - r->pos);
	int result = brood_head_read(r->pos, left, head);

	if (result == 1 && head->payload <= left - head->size)
		return 0;
	return BROOD_E_MALFORMED;
}

enum brood_type brood_peek(const struct brood_reader *r)
{
	struct brood_head head;
	int result = r->pos == r->end ? 0 : brood_head_read(r->pos, (size_t)(r->end - r->pos), &head);

	if (result < 0)
		return BROOD_T_RESERVED;
	return result == 1 ? head.type : BROOD_T_END;
}

static int expect(const struct brood_reader *r, enum brood_type type, struct brood_head *head)
{
	int result = peek(r, head);

	if (result < 0)
		return result;
	return head->type == type ? 0 : BROOD_E_TYPE;
}

static void advance(struct brood_reader *r, const struct brood_head *head)
{
	r->pos += head->size + head->payload;
}

int brood_read_nil(struct brood_reader *r)
{
	struct brood_head head;
	int result = expect(r, BROOD_T_NIL, &head);

	if (result == 0)
		advance(r, &head);
	return result;
}

int brood_read_bool(struct brood_reader *r, bool *out)
{
	struct brood_head head;
	int result = expect(r, BROOD_T_BOOL, &head);

	if (result < 0)
		return result;
	*out = head.bits != 0;
	advance(r, &head);
	return 0;
}

int brood_read_u64(struct brood_reader *r, uint64_t *out)
{
	struct brood_head head;
	int result = peek(r, &head);

	if (result < 0)
		return result;
	if (head.type == BROOD_T_NEGINT)
		return BROOD_E_RANGE;
	if (head.type != BROOD_T_UINT)
		return BROOD_E_TYPE;
	*out = head.bits;
	advance(r, &head);
	return 0;
}

int brood_read_i64(struct brood_reader *r, int64_t *out)
{
	struct brood_head head;
	int result = peek(r, &head);

	if (result < 0)
		return result;
	if (head.type != BROOD_T_UINT && head.type != BROOD_T_NEGINT)
		return BROOD_E_TYPE;
	if (head.type == BROOD_T_UINT && head.bits > INT64_MAX)
		return BROOD_E_RANGE;
	*out = (int64_t)head.bits;
	advance(r, &head);
	return 0;
}

int brood_read_double(struct brood_reader *r, double *out)
{
	struct brood_head head;
	int result = expect(r, BROOD_T_FLOAT, &head);

	if (result < 0)
		return result;
	memcpy(out, &head.bits, sizeof(*out));
	advance(r, &head);
	return 0;
}

static int read_bytes(struct brood_reader *r, enum brood_type type, struct brood_slice *out, struct brood_head *head)
{
	int result = expect(r, type, head);

	if (result < 0)
		return result;
	out->data = r->pos + head->size;
	out->len = head->payload;
	advance(r, head);
	return 0;
}

int brood_read_str(struct brood_reader *r, struct brood_slice *out)
{
	struct brood_head head;

	return read_bytes(r, BROOD_T_STR, out, &head);
}

int brood_read_bin(struct brood_reader *r, struct brood_slice *out)
{
	struct brood_head head;

	return read_bytes(r, BROOD_T_BIN, out, &head);
}

int brood_read_ext(struct brood_reader *r, int *type, struct brood_slice *out)
{
	struct brood_head head;
	int result = read_bytes(r, BROOD_T_EXT, out, &head);

	if (result == 0)
		*type = head.ext_type;
	return result;
}

static int read_count(struct brood_reader *r, enum brood_type type, uint32_t *count)
{
	struct brood_head head;
	int result = expect(r, type, &head);

	if (result < 0)
		return result;
	*count = head.count;
	advance(r, &head);
	return 0;
}

int brood_read_array(struct brood_reader *r, uint32_t *count)
{
	return read_count(r, BROOD_T_ARRAY, count);
}

int brood_read_map(struct brood_reader *r, uint32_t *count)
{
	return read_count(r, BROOD_T_MAP, count);
}

int brood_read_any(struct brood_reader *r, struct brood_slice *out)
{
	struct brood_reader walk = *r;
	uint64_t left =
		1; /* values still to be passed; grows by at most 2^33 a head, over at most as many heads as bytes */

	while (left > 0) {
		struct brood_head head;
		int result = peek(&walk, &head);

		if (result < 0)
			return result;
		left += head.type == BROOD_T_MAP ? 2 * (uint64_t)head.count : head.count;
		left--;
		/* More values than bytes: it ends outside the slice. This also keeps the count from overflowing. */
		if (left > (uint64_t)(walk.end - walk.pos))
			return BROOD_E_MALFORMED;
		advance(&walk, &head);
	}
	if (out) {
		out->data = r->pos;
		out->len = (size_t)(walk.pos - r->pos);
	}
	r->pos = walk.pos;
	return 0;
}

bool brood_slice_is(struct brood_slice s, const char *text)
{
	size_t len = strlen(text);

	return s.len == len && memcmp(s.data, text, len) == 0;
}
