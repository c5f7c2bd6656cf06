/*
 * The reader over bytes that no scan has judged: it stays inside the slice, an error moves nothing, and each function takes what the peeked
 * type says, or that is an error.
 */
#include <stdlib.h>

#include "protocol/error.h"
#include "protocol/reader.h"
#include "tests/fuzz/fuzz.h"

/* A slice that was read lies inside the bytes that were passed. */
static void judge(const struct brood_reader *before, const struct brood_reader *after, struct brood_slice s)
{
	if (s.data < before->pos || s.len > (size_t)(after->pos - s.data))
		abort();
}

/* Reads the value by the function for `type`. */
static int read_as(struct brood_reader *r, enum brood_type type)
{
	struct brood_reader before = *r;
	struct brood_slice s = {r->pos, 0};
	uint32_t count;
	int64_t negative;
	uint64_t number;
	bool truth;
	double d;
	int ext_type = 0, result = BROOD_E_TYPE;

	switch (type) {
	case BROOD_T_NIL:
		return brood_read_nil(r);
	case BROOD_T_BOOL:
		return brood_read_bool(r, &truth);
	case BROOD_T_UINT:
		return brood_read_u64(r, &number);
	case BROOD_T_NEGINT:
		result = brood_read_i64(r, &negative);
		if (result == 0 && brood_peek(&before) == BROOD_T_NEGINT && negative >= 0)
			abort();
		return result;
	case BROOD_T_FLOAT:
		return brood_read_double(r, &d);
	case BROOD_T_STR:
		result = brood_read_str(r, &s);
		break;
	case BROOD_T_BIN:
		result = brood_read_bin(r, &s);
		break;
	case BROOD_T_EXT:
		result = brood_read_ext(r, &ext_type, &s);
		if (ext_type < -128 || ext_type > 127)
			abort();
		break;
	case BROOD_T_ARRAY:
		return brood_read_array(r, &count);
	case BROOD_T_MAP:
		return brood_read_map(r, &count);
	case BROOD_T_END:
	case BROOD_T_RESERVED:
		return brood_read_any(r, NULL);
	}
	if (result == 0)
		judge(&before, r, s);
	return result;
}

/* Every function but the right one refuses the value and stays where it was. */
static void read_wrongly(const struct brood_reader *at, enum brood_type type)
{
	for (int other = BROOD_T_NIL; other <= BROOD_T_EXT; other++) {
		struct brood_reader r = *at;
		int result = read_as(&r, (enum brood_type)other);

		/* A number of 0 or more may be read as signed too. */
		if (result == 0 && other != (int)type && !(type == BROOD_T_UINT && other == BROOD_T_NEGINT))
			abort();
		if (result < 0 ? r.pos != at->pos : r.pos <= at->pos || r.pos > r.end)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct brood_reader r, whole;
	struct brood_slice any;

	brood_reader_init(&r, data, size);
	for (;;) {
		enum brood_type type = brood_peek(&r);

		read_wrongly(&r, type);
		whole = r;
		if (brood_read_any(&whole, &any) == 0)
			judge(&r, &whole, any);
		else if (whole.pos != r.pos)
			abort();
		if (read_as(&r, type) < 0)
			return 0;
	}
}
