/* The reader, and frames: every encoding read right, every wrong type refused, never a byte outside the slice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "protocol/error.h"
#include "protocol/frame.h"
#include "protocol/reader.h"

struct number {
	const char *bytes;
	size_t len;
	bool negative;
	uint64_t bits;
};

static const struct number NUMBERS[] = {
	{"\x00", 1, false, 0},
	{"\x7f", 1, false, 127},
	{"\xcc\xff", 2, false, 255},
	{"\xcd\x01\x00", 3, false, 256},
	{"\xce\xff\xff\xff\xff", 5, false, UINT32_MAX},
	{"\xcf\xff\xff\xff\xff\xff\xff\xff\xff", 9, false, UINT64_MAX},
	{"\xd0\x05", 2, false, 5},
	{"\xd3\x7f\xff\xff\xff\xff\xff\xff\xff", 9, false, INT64_MAX},
	{"\xff", 1, true, (uint64_t)-1},
	{"\xe0", 1, true, (uint64_t)-32},
	{"\xd0\x80", 2, true, (uint64_t)-128},
	{"\xd1\x80\x00", 3, true, (uint64_t)-32768},
	{"\xd2\x80\x00\x00\x00", 5, true, (uint64_t)INT32_MIN},
	{"\xd3\x80\x00\x00\x00\x00\x00\x00\x00", 9, true, (uint64_t)INT64_MIN},
};

static struct brood_reader over(const void *data, size_t len)
{
	struct brood_reader r;

	brood_reader_init(&r, data, len);
	return r;
}

static void test_integers(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(NUMBERS) / sizeof(NUMBERS[0]); i++) {
		const struct number *n = &NUMBERS[i];
		struct brood_reader r = over(n->bytes, n->len);
		uint64_t u = 1;
		int64_t s = 1;

		assert_int_equal(brood_peek(&r), n->negative ? BROOD_T_NEGINT : BROOD_T_UINT);
		assert_int_equal(brood_read_u64(&r, &u), n->negative ? BROOD_E_RANGE : 0);
		assert_true(n->negative ? u == 1 : u == n->bits);
		r = over(n->bytes, n->len);
		if (!n->negative && n->bits > INT64_MAX) {
			assert_int_equal(brood_read_i64(&r, &s), BROOD_E_RANGE);
			assert_ptr_equal(r.pos, n->bytes);
		} else {
			assert_int_equal(brood_read_i64(&r, &s), 0);
			assert_true(s == (int64_t)n->bits);
			assert_ptr_equal(r.pos, r.end);
		}
	}
}

static void test_floats(void **state)
{
	struct brood_reader r = over("\xca\x3f\xc0\x00\x00\xcb\xc0\x04\x00\x00\x00\x00\x00\x00", 14);
	double d;

	(void)state;
	assert_int_equal(brood_read_double(&r, &d), 0);
	assert_true(d == 1.5);
	assert_int_equal(brood_read_double(&r, &d), 0);
	assert_true(d == -2.5);
	assert_int_equal(brood_peek(&r), BROOD_T_END);
}

static void test_texts_bytes_and_extensions(void **state)
{
	struct brood_reader r =
		over("\xa2hi\xd9\x02yo\xda\x00\x01z\xdb\x00\x00\x00\x01w\xc4\x01\xff\xd4\x05q\xc7\x03\xfe"
		     "abc",
		     30);
	struct brood_slice s;
	int type;

	(void)state;
	assert_int_equal(brood_read_str(&r, &s), 0);
	assert_true(brood_slice_is(s, "hi"));
	assert_false(brood_slice_is(s, "h"));
	assert_int_equal(brood_read_str(&r, &s), 0);
	assert_true(brood_slice_is(s, "yo"));
	assert_int_equal(brood_read_str(&r, &s), 0);
	assert_int_equal(brood_read_str(&r, &s), 0);
	assert_true(brood_slice_is(s, "w"));
	assert_int_equal(brood_read_str(&r, &s), BROOD_E_TYPE);
	assert_int_equal(brood_read_bin(&r, &s), 0);
	assert_int_equal(s.data[0], 0xff);
	assert_int_equal(brood_read_ext(&r, &type, &s), 0);
	assert_int_equal(type, 5);
	assert_int_equal(brood_read_ext(&r, &type, &s), 0);
	assert_int_equal(type, -2);
	assert_int_equal(s.len, 3);
}

static void test_every_head_of_bytes_and_containers(void **state)
{
	static const struct {
		const char *head;
		size_t len;
		enum brood_type type;
		uint32_t count; /* of an array or map, else bytes of payload */
		int ext_type;
	} HEADS[] = {
		{"\xa0", 1, BROOD_T_STR, 0, 0},
		{"\xbf", 1, BROOD_T_STR, 31, 0},
		{"\xd9\xff", 2, BROOD_T_STR, 255, 0},
		{"\xda\x01\x00", 3, BROOD_T_STR, 256, 0},
		{"\xdb\x00\x01\x00\x00", 5, BROOD_T_STR, 65536, 0},
		{"\xc4\xff", 2, BROOD_T_BIN, 255, 0},
		{"\xc5\x01\x00", 3, BROOD_T_BIN, 256, 0},
		{"\xc6\x00\x01\x00\x00", 5, BROOD_T_BIN, 65536, 0},
		{"\xd4\x01", 2, BROOD_T_EXT, 1, 1},
		{"\xd5\x7f", 2, BROOD_T_EXT, 2, 127},
		{"\xd6\xff", 2, BROOD_T_EXT, 4, -1},
		{"\xd7\x80", 2, BROOD_T_EXT, 8, -128},
		{"\xd8\x00", 2, BROOD_T_EXT, 16, 0},
		{"\xc7\xff\x05", 3, BROOD_T_EXT, 255, 5},
		{"\xc8\x01\x00\x05", 4, BROOD_T_EXT, 256, 5},
		{"\xc9\x00\x01\x00\x00\xfe", 6, BROOD_T_EXT, 65536, -2},
		{"\x9f", 1, BROOD_T_ARRAY, 15, 0},
		{"\xdc\xff\xff", 3, BROOD_T_ARRAY, 65535, 0},
		{"\xdd\xff\xff\xff\xff", 5, BROOD_T_ARRAY, UINT32_MAX, 0},
		{"\x8f", 1, BROOD_T_MAP, 15, 0},
		{"\xde\xff\xff", 3, BROOD_T_MAP, 65535, 0},
		{"\xdf\xff\xff\xff\xff", 5, BROOD_T_MAP, UINT32_MAX, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(HEADS) / sizeof(HEADS[0]); i++) {
		bool container = HEADS[i].type == BROOD_T_ARRAY || HEADS[i].type == BROOD_T_MAP;
		size_t payload = container ? 0 : HEADS[i].count, total = HEADS[i].len + payload;
		uint8_t *bytes = calloc(1, total);

		memcpy(bytes, HEADS[i].head, HEADS[i].len);
		/* Every prefix of the head, and all but the payload's last byte, are refused; the whole is read. */
		for (size_t len = 0; len <= total; len += len < HEADS[i].len || payload == 0 ? 1
							  : len < total - 1		     ? total - 1 - len
											     : 1) {
			struct brood_slice s = {NULL, 0};
			struct brood_reader r = over(bytes, len);
			uint32_t count = payload ? HEADS[i].count : 0;
			int type = 0, result = BROOD_E_TYPE;

			if (HEADS[i].type == BROOD_T_STR)
				result = brood_read_str(&r, &s);
			else if (HEADS[i].type == BROOD_T_BIN)
				result = brood_read_bin(&r, &s);
			else if (HEADS[i].type == BROOD_T_EXT)
				result = brood_read_ext(&r, &type, &s);
			else if (HEADS[i].type == BROOD_T_ARRAY)
				result = brood_read_array(&r, &count);
			else
				result = brood_read_map(&r, &count);
			assert_int_equal(result, len == total ? 0 : BROOD_E_MALFORMED);
			assert_ptr_equal(r.pos, bytes + (result == 0 ? total : 0));
			assert_int_equal(s.len, result == 0 ? payload : 0);
			assert_int_equal(type, result == 0 ? HEADS[i].ext_type : 0);
			if (container)
				assert_true(count == (result == 0 ? HEADS[i].count : 0));
		}
		free(bytes);
	}
}

static void test_an_empty_slice_may_be_null(void **state)
{
	struct brood_reader r = over(NULL, 0);

	(void)state;
	assert_int_equal(brood_peek(&r), BROOD_T_END);
	assert_int_equal(brood_read_nil(&r), BROOD_E_MALFORMED);
	assert_int_equal(brood_read_any(&r, NULL), BROOD_E_MALFORMED);
}

static void test_a_wrong_type_moves_nothing(void **state)
{
	struct brood_reader r = over("\xc3", 1);
	struct brood_slice s;
	uint32_t count;
	uint64_t u;
	double d;
	bool truth = false;

	(void)state;
	assert_int_equal(brood_read_nil(&r), BROOD_E_TYPE);
	assert_int_equal(brood_read_u64(&r, &u), BROOD_E_TYPE);
	assert_int_equal(brood_read_double(&r, &d), BROOD_E_TYPE);
	assert_int_equal(brood_read_str(&r, &s), BROOD_E_TYPE);
	assert_int_equal(brood_read_array(&r, &count), BROOD_E_TYPE);
	assert_int_equal(brood_read_map(&r, &count), BROOD_E_TYPE);
	assert_int_equal(brood_read_bool(&r, &truth), 0);
	assert_true(truth);
	assert_int_equal(brood_read_bool(&r, &truth), BROOD_E_MALFORMED);
}

static void test_any_passes_whole_values(void **state)
{
	static const char nested[] = "\x82\xa1k\x93\x01\x02\x90\xc0\xd4\x03\x90\x07";
	struct brood_reader r = over(nested, sizeof(nested) - 1);
	struct brood_slice s;
	uint64_t u;

	(void)state;
	assert_int_equal(brood_read_any(&r, &s), 0);
	assert_int_equal(s.len, sizeof(nested) - 2);
	assert_int_equal(brood_read_u64(&r, &u), 0);
	assert_int_equal(u, 7);
	for (size_t len = 0; len < sizeof(nested) - 2; len++) {
		uint8_t *copy = malloc(len ? len : 1);

		memcpy(copy, nested, len);
		r = over(copy, len);
		assert_int_equal(brood_read_any(&r, &s), BROOD_E_MALFORMED);
		assert_ptr_equal(r.pos, copy);
		free(copy);
	}
	/* Counts that no slice could hold end at once. */
	r = over("\xdd\xff\xff\xff\xff\xdd\xff\xff\xff\xff", 10);
	assert_int_equal(brood_read_any(&r, &s), BROOD_E_MALFORMED);
	r = over("\xc1", 1);
	assert_int_equal(brood_peek(&r), BROOD_T_RESERVED);
	assert_int_equal(brood_read_any(&r, &s), BROOD_E_MALFORMED);
}

/* Bytes that no scan has seen: no function leaves the slice, which a sanitizer would see. */
static void test_unscanned_bytes_are_harmless(void **state)
{
	uint32_t seed = 7;

	(void)state;
	for (int round = 0; round < 50000; round++) {
		size_t len = (seed >> 8) % 12;
		uint8_t *bytes = malloc(len ? len : 1);
		struct brood_reader r;
		struct brood_slice s;
		uint32_t count;
		uint64_t u;
		int type;

		for (size_t i = 0; i < len; i++)
			bytes[i] = (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 24);
		seed = seed * 1664525u + 1013904223u;
		r = over(bytes, len);
		brood_read_str(&r, &s);
		brood_read_bin(&r, &s);
		brood_read_ext(&r, &type, &s);
		brood_read_u64(&r, &u);
		brood_read_map(&r, &count);
		brood_read_any(&r, &s);
		assert_true(r.pos >= bytes && r.pos <= r.end);
		free(bytes);
	}
}

static void test_frames(void **state)
{
	uint8_t frame[BROOD_FRAME_HEADER + 3] = {0, 0, 0, 0, 'a', 'b', 'c'};
	struct brood_slice payload;
	size_t used;

	(void)state;
	brood_frame_header(frame, 3);
	assert_int_equal(frame[0], 3);
	for (size_t len = 0; len < sizeof(frame); len++)
		assert_int_equal(brood_frame_parse(frame, len, 3, &payload, &used), 0);
	assert_int_equal(brood_frame_parse(frame, sizeof(frame), 3, &payload, &used), 1);
	assert_int_equal(used, sizeof(frame));
	assert_true(brood_slice_is(payload, "abc"));
	assert_int_equal(brood_frame_parse(frame, BROOD_FRAME_HEADER, 2, &payload, &used), BROOD_E_TOO_LARGE);
	brood_frame_header(frame, UINT32_MAX);
	assert_int_equal(brood_frame_parse(frame, BROOD_FRAME_HEADER, 1000, &payload, &used), BROOD_E_TOO_LARGE);
	brood_frame_header(frame, 0);
	assert_int_equal(brood_frame_parse(frame, sizeof(frame), 1000, &payload, &used), BROOD_E_MALFORMED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_integers),
		cmocka_unit_test(test_floats),
		cmocka_unit_test(test_every_head_of_bytes_and_containers),
		cmocka_unit_test(test_an_empty_slice_may_be_null),
		cmocka_unit_test(test_texts_bytes_and_extensions),
		cmocka_unit_test(test_a_wrong_type_moves_nothing),
		cmocka_unit_test(test_any_passes_whole_values),
		cmocka_unit_test(test_unscanned_bytes_are_harmless),
		cmocka_unit_test(test_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
