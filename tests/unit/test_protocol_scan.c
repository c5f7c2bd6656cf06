/* The scanner: the end of a value, however it is sliced, and a refusal of everything that could hurt a reader. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <msgpack.h>

#include "protocol/error.h"
#include "protocol/ext.h"
#include "protocol/scan.h"

static msgpack_sbuffer buffer;
static msgpack_packer pk;

static int setup(void **state)
{
	(void)state;
	msgpack_sbuffer_init(&buffer);
	msgpack_packer_init(&pk, &buffer, msgpack_sbuffer_write);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	msgpack_sbuffer_destroy(&buffer);
	return 0;
}

/* From a block of exactly this size, so that a sanitizer sees a read beyond it. */
static int whole(const void *data, size_t len, unsigned depth)
{
	uint8_t *copy = malloc(len ? len : 1);
	int result;

	memcpy(copy, data, len);
	result = brood_scan_whole(copy, len, depth);
	free(copy);
	return result;
}

static int feed_once(const void *data, size_t len, size_t max)
{
	struct brood_scan scan;
	size_t end;

	brood_scan_init(&scan, max, BROOD_SCAN_DEPTH);
	return brood_scan_feed(&scan, data, len, &end);
}

/* One of every format, nested. */
static void pack_everything(void)
{
	static const char text[70000];

	msgpack_pack_array(&pk, 24);
	msgpack_pack_nil(&pk);
	msgpack_pack_true(&pk);
	msgpack_pack_fix_uint8(&pk, 200);
	msgpack_pack_fix_uint16(&pk, 60000);
	msgpack_pack_fix_uint32(&pk, 4000000000u);
	msgpack_pack_fix_uint64(&pk, UINT64_MAX);
	msgpack_pack_fix_int8(&pk, -5);
	msgpack_pack_fix_int16(&pk, -300);
	msgpack_pack_fix_int32(&pk, -70000);
	msgpack_pack_fix_int64(&pk, INT64_MIN);
	msgpack_pack_float(&pk, 1.5f);
	msgpack_pack_double(&pk, -2.5);
	msgpack_pack_str(&pk, 3), msgpack_pack_str_body(&pk, "abc", 3);
	msgpack_pack_str(&pk, 200), msgpack_pack_str_body(&pk, text, 200);
	msgpack_pack_str(&pk, 300), msgpack_pack_str_body(&pk, text, 300);
	msgpack_pack_str(&pk, 70000), msgpack_pack_str_body(&pk, text, 70000);
	msgpack_pack_bin(&pk, 2), msgpack_pack_bin_body(&pk, "\xff\xfe", 2);
	msgpack_pack_bin(&pk, 300), msgpack_pack_bin_body(&pk, text, 300);
	msgpack_pack_bin(&pk, 70000), msgpack_pack_bin_body(&pk, text, 70000);
	msgpack_pack_ext(&pk, 1, 100), msgpack_pack_ext_body(&pk, text, 1);
	msgpack_pack_ext(&pk, 17, -1), msgpack_pack_ext_body(&pk, text, 17);
	msgpack_pack_ext(&pk, 3, BROOD_EXT_TUPLE), msgpack_pack_ext_body(&pk, "\x92\x01\x02", 3);
	msgpack_pack_map(&pk, 2);
	msgpack_pack_int(&pk, 1), msgpack_pack_array(&pk, 0);
	msgpack_pack_str(&pk, 1), msgpack_pack_str_body(&pk, "k", 1), msgpack_pack_map(&pk, 0);
	msgpack_pack_int(&pk, -32);
}

static void test_a_value_is_found_however_it_is_sliced(void **state)
{
	size_t total, end;

	(void)state;
	pack_everything();
	total = buffer.size;
	msgpack_pack_int(&pk, 7); /* the next message */
	for (size_t step = 1; step < 5000; step = step * 3 + 1) {
		struct brood_scan scan;
		int got = 0;

		brood_scan_init(&scan, 1 << 20, BROOD_SCAN_DEPTH);
		for (size_t len = 0; len < total; len += step) {
			got = brood_scan_feed(&scan, (uint8_t *)buffer.data, len, &end);
			assert_int_equal(got, 0);
		}
		got = brood_scan_feed(&scan, (uint8_t *)buffer.data, buffer.size, &end);
		assert_int_equal(got, 1);
		assert_int_equal(end, total);
	}
}

static void test_every_truncation_wants_more(void **state)
{
	(void)state;
	msgpack_pack_map(&pk, 2);
	msgpack_pack_str(&pk, 3), msgpack_pack_str_body(&pk, "abc", 3), msgpack_pack_double(&pk, 1);
	msgpack_pack_ext(&pk, 3, BROOD_EXT_SET), msgpack_pack_ext_body(&pk, "\x92\x01\x02", 3),
		msgpack_pack_uint64(&pk, UINT64_MAX);
	assert_int_equal(whole(buffer.data, buffer.size, 8), 0);
	for (size_t len = 0; len < buffer.size; len++) {
		assert_int_equal(feed_once(buffer.data, len, 1000), 0);
		assert_int_equal(whole(buffer.data, len, 8), BROOD_E_MALFORMED);
	}
}

static void test_giant_lengths_are_refused_before_their_bytes_come(void **state)
{
	static const char *const HEADS[] = {"\xdb\xff\xff\xff\xff", "\xc6\xff\xff\xff\xff",	"\xdd\xff\xff\xff\xff",
					    "\xdf\xff\xff\xff\xff", "\xc9\xff\xff\xff\xff\x05", "\xdf\x80\x00\x00\x00"};

	(void)state;
	for (size_t i = 0; i < sizeof(HEADS) / sizeof(HEADS[0]); i++)
		assert_int_equal(feed_once(HEADS[i], i == 4 ? 6 : 5, 16 * BROOD_MIB), BROOD_E_TOO_LARGE);
	/* Inside a container too, with what came before it counted. */
	assert_int_equal(feed_once("\x92\x01\xdb\x00\x00\x00\x64", 7, 100), BROOD_E_TOO_LARGE);
	assert_int_equal(feed_once("\x92\x01\xdb\x00\x00\x00\x5d", 7, 100), 0);
	/* A failed scan stays failed. */
	assert_int_equal(feed_once("\xc1", 1, 100), BROOD_E_MALFORMED);
}

/* Nobody waits for bytes that would be refused anyway: what is not whole when max_bytes are there never fits. */
static void test_a_full_buffer_is_never_told_to_wait(void **state)
{
	static const uint8_t FIRST[] = {0xcc, 0xcd, 0xce, 0xcf, 0xca, 0xcb, 0xd4, 0xd9, 0xda,
					0xdb, 0xc4, 0xc7, 0xdc, 0xdd, 0xde, 0xdf, 0x91, 0xa1};
	uint8_t bytes[9 + 8] = {0x98, 1, 1, 1, 1, 1, 1, 1};

	(void)state;
	for (size_t i = 0; i < sizeof(FIRST); i++) {
		bytes[8] = FIRST[i];
		assert_int_equal(feed_once(bytes, 8, 9), 0);
		assert_int_equal(feed_once(bytes, 9, 9), BROOD_E_TOO_LARGE);
		assert_int_equal(feed_once(bytes, sizeof(bytes), 9), BROOD_E_TOO_LARGE);
	}
	/* Likewise inside an extension. */
	assert_int_equal(feed_once("\xd4\x03\xcd", 3, 100), BROOD_E_MALFORMED);
	assert_int_equal(feed_once("\xd5\x03\x91\xd9", 4, 100), BROOD_E_MALFORMED);
	assert_int_equal(feed_once("\xd5\x03\x91", 3, 100), 0);
}

static void test_nesting_at_and_beyond_the_limit(void **state)
{
	uint8_t *deep = malloc(100001);

	(void)state;
	memset(deep, 0x91, 100000);
	deep[100000] = 0xc0;
	assert_int_equal(feed_once(deep, 100001, 1 << 20), BROOD_E_TOO_DEEP);
	for (unsigned depth = 1; depth <= BROOD_SCAN_DEPTH; depth++) {
		deep[depth] = 0xc0;
		assert_int_equal(whole(deep, depth + 1, depth), 0);
		assert_int_equal(whole(deep, depth + 1, depth - 1), BROOD_E_TOO_DEEP);
		deep[depth] = 0x91;
	}
	/* An empty container is a level as well. */
	assert_int_equal(whole("\x91\x90", 2, 1), BROOD_E_TOO_DEEP);
	assert_int_equal(whole("\x91\x90", 2, 2), 0);
	free(deep);
}

static void test_a_nested_extension_is_exactly_one_value(void **state)
{
	(void)state;
	for (int type = -128; type < 128; type++) {
		bool nested = brood_ext_is_nested(type);
		uint8_t one[] = {0xc7, 1, (uint8_t)type, 0x05}, two[] = {0xc7, 2, (uint8_t)type, 0x05, 0x06};
		uint8_t none[] = {0xc7, 0, (uint8_t)type}, bad[] = {0xc7, 1, (uint8_t)type, 0xc1};
		uint8_t beyond[] = {0x92, 0xc7, 1, (uint8_t)type, 0xa2, 'a', 'b'};
		uint8_t doubled[] = {0xc7, 4, (uint8_t)type, 0xc7, 1, (uint8_t)type, 0x05};

		assert_int_equal(whole(one, sizeof(one), 4), 0);
		assert_int_equal(whole(two, sizeof(two), 4), nested ? BROOD_E_MALFORMED : 0);
		assert_int_equal(whole(none, sizeof(none), 4), nested ? BROOD_E_MALFORMED : 0);
		assert_int_equal(whole(bad, sizeof(bad), 4), nested ? BROOD_E_MALFORMED : 0);
		assert_int_equal(whole(doubled, sizeof(doubled), 4), nested ? BROOD_E_MALFORMED : 0);
		assert_true(whole(beyond, sizeof(beyond), 4) == BROOD_E_MALFORMED);
	}
	/* Arrays inside count as levels, the extension does not. */
	assert_int_equal(whole("\xd4\x03\x90", 3, 1), 0);
	assert_int_equal(whole("\xd5\x03\x91\x90", 4, 1), BROOD_E_TOO_DEEP);
}

static void test_str_must_be_utf8(void **state)
{
	static const struct {
		const char *text;
		int valid;
	} TEXTS[] = {{"", 1},
		     {"plain ascii of more than eight bytes", 1},
		     {"\xc2\x80", 1},
		     {"\xdf\xbf", 1},
		     {"\xe0\xa0\x80", 1},
		     {"\xed\x9f\xbf", 1},
		     {"\xee\x80\x80", 1},
		     {"\xf0\x90\x80\x80", 1},
		     {"\xf4\x8f\xbf\xbf", 1},
		     {"\x80", 0},
		     {"\xc0\x80", 0},
		     {"\xc1\xbf", 0},
		     {"\xe0\x9f\xbf", 0},
		     {"\xed\xa0\x80", 0},
		     {"\xed\xbf\xbf", 0},
		     {"\xf0\x8f\xbf\xbf", 0},
		     {"\xf4\x90\x80\x80", 0},
		     {"\xf5\x80\x80\x80", 0},
		     {"\xff", 0},
		     {"\xc3", 0},
		     {"\xe2\x82", 0},
		     {"\xf0\x9f\x98", 0},
		     {"12345678\xff", 0},
		     {"1234567\xc3\xa9", 1},
		     {"\xe2\x28\xa1", 0}};

	for (size_t i = 0; i < sizeof(TEXTS) / sizeof(TEXTS[0]); i++) {
		size_t len = strlen(TEXTS[i].text);

		teardown(state);
		setup(state);
		msgpack_pack_str(&pk, len), msgpack_pack_str_body(&pk, TEXTS[i].text, len);
		assert_int_equal(brood_utf8_valid((const uint8_t *)TEXTS[i].text, len), TEXTS[i].valid);
		assert_int_equal(whole(buffer.data, buffer.size, 1), TEXTS[i].valid ? 0 : BROOD_E_UTF8);
	}
}

static void test_a_prefix_never_cuts_a_character(void **state)
{
	static const uint8_t text[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z";
	static const size_t expected[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11};

	(void)state;
	for (size_t max = 0; max < 12; max++)
		assert_int_equal(brood_utf8_prefix(text, 11, max), expected[max]);
	/* Where there is no UTF-8, there is nothing to keep whole. */
	assert_int_equal(brood_utf8_prefix((const uint8_t *)"\x80\x80\x80\x80\x80", 5, 2), 2);
	assert_int_equal(brood_utf8_prefix((const uint8_t *)"\xff\xff\xff", 3, 1), 1);
}

/* Random bytes: a slice-by-slice scan and a whole one agree, and the end is inside. */
static void test_random_bytes_agree_with_themselves(void **state)
{
	uint32_t seed = 99;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		uint8_t bytes[24];
		struct brood_scan scan;
		size_t end = 0, end_sliced = 0;
		int once, sliced = 0;

		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 24);
		brood_scan_init(&scan, 64, 4);
		once = brood_scan_feed(&scan, bytes, sizeof(bytes), &end);
		brood_scan_init(&scan, 64, 4);
		for (size_t len = 0; len <= sizeof(bytes) && sliced == 0; len++)
			sliced = brood_scan_feed(&scan, bytes, len, &end_sliced);
		assert_int_equal(once, sliced);
		if (once == 1) {
			assert_int_equal(end, end_sliced);
			assert_true(end <= sizeof(bytes));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_value_is_found_however_it_is_sliced, setup, teardown),
		cmocka_unit_test_setup_teardown(test_every_truncation_wants_more, setup, teardown),
		cmocka_unit_test(test_giant_lengths_are_refused_before_their_bytes_come),
		cmocka_unit_test(test_a_full_buffer_is_never_told_to_wait),
		cmocka_unit_test(test_nesting_at_and_beyond_the_limit),
		cmocka_unit_test(test_a_nested_extension_is_exactly_one_value),
		cmocka_unit_test_setup_teardown(test_str_must_be_utf8, setup, teardown),
		cmocka_unit_test(test_a_prefix_never_cuts_a_character),
		cmocka_unit_test(test_random_bytes_agree_with_themselves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
