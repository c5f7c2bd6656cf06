/* Output: the cap is exact to the byte, and no character is cut in two, however the bytes come in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "protocol/limits.h"
#include "supervisor/output.h"

static void add(struct sup_output *out, const char *text)
{
	assert_int_equal(sup_output_add(out, (const uint8_t *)text, strlen(text)), 0);
}

static void test_one_less_exact_and_one_more(void **state)
{
	static const uint8_t bytes[11] = "0123456789a";

	(void)state;
	for (size_t n = 9; n <= 11; n++) {
		struct sup_output out;

		sup_output_init(&out, 10);
		assert_int_equal(sup_output_add(&out, bytes, n), 0);
		assert_int_equal(out.kept, n < 10 ? n : 10);
		assert_int_equal(out.total, n);
		assert_memory_equal(out.data, bytes, out.len);
		sup_output_free(&out);
	}
}

/* "aé€😀" repeated, fed in chunks of every size, cut at every limit: always the longest whole-character prefix. */
static void test_every_limit_and_every_slicing_cuts_at_a_character(void **state)
{
	static const char text[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"
				   "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80";
	static const size_t ends[] = {0, 1, 3, 6, 10, 11, 13, 16, 20};
	size_t len = strlen(text);

	(void)state;
	for (size_t limit = 0; limit < len; limit++) {
		for (size_t chunk = 1; chunk <= len; chunk++) {
			struct sup_output out;
			size_t expected = 0;

			for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
				if (ends[i] <= limit)
					expected = ends[i];
			}
			sup_output_init(&out, limit);
			for (size_t at = 0; at < len; at += chunk) {
				size_t n = len - at < chunk ? len - at : chunk;

				assert_int_equal(sup_output_add(&out, (const uint8_t *)text + at, n), 0);
			}
			assert_int_equal(out.kept, expected);
			assert_int_equal(out.len, expected);
			assert_int_equal(out.total, len);
			sup_output_free(&out);
		}
	}
}

static void test_after_the_cut_nothing_more_is_kept(void **state)
{
	struct sup_output out;

	(void)state;
	sup_output_init(&out, 2);
	add(&out, "\xe2\x82\xac"); /* three bytes: none fits */
	assert_int_equal(out.kept, 0);
	add(&out, "x"); /* would fit, but would not be what was written there */
	assert_int_equal(out.kept, 0);
	assert_int_equal(out.total, 4);
	sup_output_free(&out);
}

static void test_streaming_holds_back_an_unfinished_character(void **state)
{
	struct sup_output out;

	(void)state;
	sup_output_init(&out, 100);
	add(&out, "ab\xe2\x82");
	assert_int_equal(sup_output_ready(&out, false), 2);
	assert_int_equal(sup_output_ready(&out, true), 4);
	sup_output_take(&out, 2);
	add(&out, "\xac");
	assert_int_equal(sup_output_ready(&out, false), 3);
	assert_memory_equal(out.data, "\xe2\x82\xac", 3);
	sup_output_free(&out);
}

static void test_bytes_that_are_no_text_are_kept_as_they_are(void **state)
{
	uint8_t bytes[256];
	struct sup_output out;

	(void)state;
	for (int i = 0; i < 256; i++)
		bytes[i] = (uint8_t)i;
	sup_output_init(&out, 1000);
	assert_int_equal(sup_output_add(&out, bytes, sizeof(bytes)), 0);
	assert_int_equal(out.len, 256);
	assert_memory_equal(out.data, bytes, 256);
	sup_output_free(&out);
}

static void test_a_flood_is_far_beyond_the_limit(void **state)
{
	static const uint8_t chunk[64 * 1024];
	struct sup_output out;
	uint64_t most = 128 * 1024 * (uint64_t)BROOD_OUTPUT_FLOOD_FACTOR;

	(void)state;
	sup_output_init(&out, 128 * 1024);
	for (uint64_t sent = 0; sent < most; sent += sizeof(chunk)) {
		assert_false(sup_output_flooded(&out));
		assert_int_equal(sup_output_add(&out, chunk, sizeof(chunk)), 0);
	}
	assert_false(sup_output_flooded(&out));
	assert_int_equal(sup_output_add(&out, chunk, 1), 0);
	assert_true(sup_output_flooded(&out));
	assert_int_equal(out.kept, 128 * 1024);
	sup_output_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_less_exact_and_one_more),
		cmocka_unit_test(test_every_limit_and_every_slicing_cuts_at_a_character),
		cmocka_unit_test(test_after_the_cut_nothing_more_is_kept),
		cmocka_unit_test(test_streaming_holds_back_an_unfinished_character),
		cmocka_unit_test(test_bytes_that_are_no_text_are_kept_as_they_are),
		cmocka_unit_test(test_a_flood_is_far_beyond_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
