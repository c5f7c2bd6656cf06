/* Words and numbers that people read and write: durations, sizes, limits, statuses, layers, errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "protocol/error.h"
#include "protocol/layers.h"
#include "protocol/limits.h"
#include "protocol/status.h"

static void test_durations(void **state)
{
	static const struct {
		const char *text;
		uint64_t ms;
	} GOOD[] = {{"5", 5000},     {"5s", 5000}, {"1500ms", 1500},  {"0.5s", 500}, {"2m", 120000},
		    {"1h", 3600000}, {"0", 0},	   {"1.5h", 5400000}, {"3S", 3000}};
	static const char *const BAD[] = {"",	"s",  "-1",   "+1",  " 1",   "1 s",	   "1x",
					  "1.", ".5", "1..2", "1e3", "0x10", "1.1234567s", "9999999999999s"};
	uint64_t ms;

	(void)state;
	for (size_t i = 0; i < sizeof(GOOD) / sizeof(GOOD[0]); i++) {
		assert_int_equal(brood_parse_duration_ms(GOOD[i].text, &ms), 0);
		assert_int_equal(ms, GOOD[i].ms);
	}
	ms = 42;
	for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
		assert_true(brood_parse_duration_ms(BAD[i], &ms) < 0);
		assert_int_equal(ms, 42);
	}
}

static void test_sizes(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} GOOD[] = {{"100", 100},	    {"64k", 65536}, {"1m", 1 << 20}, {"512MB", 512 << 20},
		    {"1.5GiB", 1610612736}, {"2kib", 2048}, {"7b", 7}};
	static const char *const BAD[] = {"", "m", "-1m", "1t", "1 m", "1mm", "999999999999g", "1.m"};
	uint64_t bytes;

	(void)state;
	for (size_t i = 0; i < sizeof(GOOD) / sizeof(GOOD[0]); i++) {
		assert_int_equal(brood_parse_size(GOOD[i].text, &bytes), 0);
		assert_int_equal(bytes, GOOD[i].bytes);
	}
	for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++)
		assert_true(brood_parse_size(BAD[i], &bytes) < 0);
	assert_int_equal(brood_parse_size("999999999999g", &bytes), BROOD_E_RANGE);
	/* Too large is too large however many digits it has; zeros in front add nothing. */
	assert_int_equal(brood_parse_size("1000000000000", &bytes), BROOD_E_RANGE);
	assert_int_equal(brood_parse_size("99999999999999999999999999999999999999999k", &bytes), BROOD_E_RANGE);
	assert_int_equal(brood_parse_size("9999999999999x", &bytes), BROOD_E_SYNTAX);
	assert_int_equal(brood_parse_size("00000000000000000064k", &bytes), 0);
	assert_int_equal(bytes, 65536);
	assert_int_equal(brood_parse_size("999999999999.999999k", &bytes), 0);
	assert_true(bytes == 1023999999999999);
}

static void test_the_defaults_are_those_that_are_documented(void **state)
{
	struct brood_limits limits;

	(void)state;
	brood_limits_preset(&limits);
	assert_int_equal(limits.v[BROOD_LIMIT_WALL], 5000);
	assert_int_equal(limits.v[BROOD_LIMIT_CPU], 5000);
	assert_int_equal(limits.v[BROOD_LIMIT_MEMORY], 512 * BROOD_MIB);
	assert_int_equal(limits.v[BROOD_LIMIT_OUTPUT], BROOD_MIB);
	assert_int_equal(limits.v[BROOD_LIMIT_VALUE], BROOD_MIB);
	for (int i = 0; i < BROOD_LIMIT_COUNT; i++) {
		assert_true(BROOD_LIMITS[i].floor <= BROOD_LIMITS[i].preset);
		assert_true(BROOD_LIMITS[i].preset <= BROOD_LIMITS[i].ceiling);
	}
	/* Both values of the largest answer fit into a frame's 32-bit length. */
	assert_true(BROOD_RESULT_MAX(BROOD_LIMITS[BROOD_LIMIT_VALUE].ceiling) < UINT32_MAX);
}

static void test_names_and_exit_statuses(void **state)
{
	static const int EXITS[BROOD_STATUS_COUNT] = {0, 1, 124, 137, 137, 137, 126, 137, 125, 75, 125};

	(void)state;
	for (int i = 0; i < BROOD_STATUS_COUNT; i++) {
		const char *name = brood_status_name((enum brood_status)i);

		assert_int_equal(brood_status_by_name(name, strlen(name)), i);
		assert_int_equal(brood_status_exit((enum brood_status)i, 0), EXITS[i]);
	}
	assert_int_equal(brood_status_exit(BROOD_OK, 3), 1);
	assert_int_equal(brood_status_by_name("okay", 4), BROOD_E_UNKNOWN);
	for (int i = 0; i < BROOD_LAYER_COUNT; i++) {
		const char *name = brood_layer_name((enum brood_layer)i);

		assert_int_equal(brood_layer_by_name(name, strlen(name)), i);
	}
	assert_int_equal(brood_layer_by_name("magic", 5), BROOD_E_UNKNOWN);
	for (int error = BROOD_E_MALFORMED; error <= BROOD_E_MEMORY; error++)
		assert_true(strcmp(brood_strerror(error), "unknown error") != 0);
	assert_string_equal(brood_strerror(-1), "unknown error");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_durations),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_the_defaults_are_those_that_are_documented),
		cmocka_unit_test(test_names_and_exit_statuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
