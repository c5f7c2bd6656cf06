/*
 * Runs in:   every process
 * Trusts:    nothing
 * Blocks on: nothing
 */
#include "protocol/limits.h"
#include "protocol/messages_parts.h"

#include <stdlib.h>

int brood_message_key(struct brood_reader *r, const char *const *names, unsigned count, unsigned *seen)
{
	struct brood_slice key;
	int result = brood_read_str(r, &key);

	if (result < 0)
		return result;
	for (unsigned i = 0; i < count; i++) {
		if (!brood_slice_is(key, names[i]))
			continue;
		if (*seen & (1u << i))
			return BROOD_E_MALFORMED;
		*seen |= 1u << i;
		return (int)i;
	}
	return BROOD_E_UNKNOWN;
}

static int read_text(struct brood_reader *r, struct brood_slice *text, size_t max)
{
	int result = brood_read_str(r, text);

	if (result < 0)
		return result;
	if (text->len > max)
		return BROOD_E_TOO_LARGE;
	return memchr(text->data, '\0', text->len) ? BROOD_E_MALFORMED : 0;
}

int brood_message_text(struct brood_reader *r, char *to, size_t max)
{
	struct brood_slice text;
	int result = read_text(r, &text, max);

	if (result < 0)
		return result;
	memcpy(to, text.data, text.len);
	to[text.len] = '\0';
	return 0;
}

int brood_message_strdup(struct brood_reader *r, char **to, size_t max)
{
	struct brood_slice text;
	int result = read_text(r, &text, max);
	char *copy;

	if (result < 0)
		return result;
	copy = strndup((const char *)text.data, text.len);
	if (!copy)
		return BROOD_E_MEMORY;
	*to = copy;
	return 0;
}

int brood_message_written(msgpack_sbuffer *to, size_t before)
{
	int result = BROOD_E_MEMORY;

	if (to->size > before)
		result = brood_scan_whole((const uint8_t *)to->data + before, to->size - before, BROOD_SCAN_DEPTH);
	if (result == 0)
		return 0;
	to->size = before;
	/* A caller's text is its own fault. Anything else that is spoilt was not appended whole. */
	return result == BROOD_E_UTF8 ? result : BROOD_E_MEMORY;
}

void brood_message_pack_limits(msgpack_packer *pk, const struct brood_limits *limits)
{
	msgpack_pack_map(pk, BROOD_LIMIT_COUNT);
	for (int i = 0; i < BROOD_LIMIT_COUNT; i++)
		mp_key_u64(pk, BROOD_LIMITS[i].field, limits->v[i]);
}

int brood_message_limits(struct brood_reader *r, struct brood_limits *out)
{
	const char *names[BROOD_LIMIT_COUNT];
	struct brood_limits limits;
	unsigned seen = 0;
	uint32_t count;
	int result = brood_read_map(r, &count);

	if (result < 0)
		return result;
	for (int i = 0; i < BROOD_LIMIT_COUNT; i++)
		names[i] = BROOD_LIMITS[i].field;
	for (; count > 0; count--) {
		int i = brood_message_key(r, names, BROOD_LIMIT_COUNT, &seen);

		if (i < 0)
			return i;
		result = brood_read_u64(r, &limits.v[i]);
		if (result < 0)
			return result;
		if (limits.v[i] < BROOD_LIMITS[i].floor || limits.v[i] > BROOD_LIMITS[i].ceiling)
			return BROOD_E_RANGE;
	}
	if (seen != (1u << BROOD_LIMIT_COUNT) - 1)
		return BROOD_E_MISSING;
	*out = limits;
	return 0;
}
