/* What a server may say, and what it may not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "client/answer.h"
#include "protocol/error.h"

#define ID 7
#define SLICE(literal)                                          \
	(struct brood_slice)                                    \
	{                                                       \
		(const uint8_t *)(literal), sizeof(literal) - 1 \
	}

static void test_result(void **state)
{
	struct cli_answer answer;

	(void)state;
	assert_int_equal(cli_answer_parse(SLICE("\x94\x01\x07\xc0\x92\x01\x02"), ID, &answer), 0);
	assert_int_equal(answer.kind, CLI_ANSWER_RESULT);
	assert_int_equal(answer.result.len, 3);
	assert_memory_equal(answer.result.data, "\x92\x01\x02", 3);
}

static void test_error(void **state)
{
	struct cli_answer answer;

	(void)state;
	assert_int_equal(cli_answer_parse(SLICE("\x94\x01\x07\x83\xa4"
						"code\xa1"
						"c\xa1x\x05\xa7message\xa2mm\xc0"),
					  ID, &answer),
			 0);
	assert_int_equal(answer.kind, CLI_ANSWER_ERROR);
	assert_true(brood_slice_is(answer.code, "c"));
	assert_true(brood_slice_is(answer.message, "mm"));
	/* Of the connection, not of a request. */
	assert_int_equal(cli_answer_parse(SLICE("\x94\x01\xc0\x82\xa4"
						"code\xa1"
						"c\xa7message\xa0\xc0"),
					  ID, &answer),
			 0);
	assert_int_equal(answer.kind, CLI_ANSWER_ERROR);
}

static void test_output(void **state)
{
	struct cli_answer answer;

	(void)state;
	assert_int_equal(cli_answer_parse(SLICE("\x93\x02\xa6output\x93\x07\xa6stdout\xc4\x01x"), ID, &answer), 0);
	assert_int_equal(answer.kind, CLI_ANSWER_OUTPUT);
	assert_int_equal(answer.fd, 1);
	assert_true(brood_slice_is(answer.data, "x"));
	assert_int_equal(cli_answer_parse(SLICE("\x93\x02\xa6output\x93\x07\xa6stderr\xc4\x00"), ID, &answer), 0);
	assert_int_equal(answer.fd, 2);
	assert_int_equal(answer.data.len, 0);
	assert_int_equal(cli_answer_parse(SLICE("\x93\x02\xa4news\x90"), ID, &answer), 0);
	assert_int_equal(answer.kind, CLI_ANSWER_OTHER);
}

static void test_refused_messages(void **state)
{
	static const struct brood_slice BAD[] = {
		{(const uint8_t *)"\x05", 1},
		{(const uint8_t *)"\x90", 1},
		{(const uint8_t *)"\x94\x00\x07\xa3run\x90", 8}, /* a request, to a client */
		{(const uint8_t *)"\x93\x01\x07\xc0", 4},	 /* too short */
		{(const uint8_t *)"\x94\x01\x08\xc0\xc0", 5},	 /* another id */
		{(const uint8_t *)"\x94\x01\xa1"
				  "7\xc0\xc0",
		 6},					      /* an id of another type */
		{(const uint8_t *)"\x94\x01\xc0\xc0\xc0", 5}, /* a result without id */
		{(const uint8_t *)"\x94\x01\x07\xa1"
				  "e\xc0",
		 6}, /* an error that is no map */
		{(const uint8_t *)"\x94\x01\x07\x81\xa4"
				  "code\xa1"
				  "c\xc0",
		 12},								       /* without message */
		{(const uint8_t *)"\x93\x02\xa6output\x93\x08\xa6stdout\xc4\x00", 19}, /* another id */
		{(const uint8_t *)"\x93\x02\xa6output\x93\x07\xa6stdoux\xc4\x00", 19},
		{(const uint8_t *)"\x93\x02\xa6output\x93\x07\xa6stdout\xa0", 18}, /* str, not bin */
		{(const uint8_t *)"\x93\x02\xa6output\x92\x07\xa6stdout", 17},
		{(const uint8_t *)"\x93\x02\x05\x90", 4},
		{(const uint8_t *)"\x93\x03\xa1x\x90", 5},
	};
	struct cli_answer answer = {.fd = 42};

	(void)state;
	for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++)
		assert_int_equal(cli_answer_parse(BAD[i], ID, &answer), BROOD_E_MALFORMED);
	assert_int_equal(answer.fd, 42); /* untouched */
}

static void test_record(void **state)
{
	static const char RECORD[] = "\x87\xa6status\xa5"
				     "error\xa7message\xa1m\xa4repr\xc0\xa3new\x91\x01"
				     "\xa5"
				     "error\x82\xa4type\xa1T\xa9traceback\xa2tb"
				     "\xa9"
				     "exit_code\x03\xa9truncated\x91\x83\xa4what\xa6stdout\xaakept_bytes\x05\xa9"
				     "cut_bytes\x06";
	struct cli_record record;
	struct brood_reader r;
	struct cli_cut cut;
	uint32_t count;

	(void)state;
	assert_int_equal(cli_record_parse(SLICE(RECORD), &record), 0);
	assert_int_equal(record.status, BROOD_ERROR);
	assert_true(brood_slice_is(record.message, "m"));
	assert_null(record.repr.data);
	assert_true(brood_slice_is(record.traceback, "tb"));
	assert_int_equal(record.exit_code, 3);
	brood_reader_init(&r, record.truncated.data, record.truncated.len);
	assert_int_equal(brood_read_array(&r, &count), 0);
	assert_int_equal(cli_cut_read(&r, &cut), 0);
	assert_true(brood_slice_is(cut.what, "stdout"));
	assert_int_equal(cut.kept_bytes, 5);
	assert_int_equal(cut.cut_bytes, 6);
}

static void test_refused_records(void **state)
{
	struct cli_record record = {.exit_code = 42};

	(void)state;
	assert_int_equal(cli_record_parse(SLICE("\xc0"), &record), BROOD_E_TYPE);
	assert_int_equal(cli_record_parse(SLICE("\x80"), &record), BROOD_E_MISSING);
	assert_int_equal(cli_record_parse(SLICE("\x81\x01\x02"), &record), BROOD_E_TYPE);
	assert_int_equal(cli_record_parse(SLICE("\x81\xa6status\xa5"
						"happy"),
					  &record),
			 BROOD_E_UNKNOWN);
	assert_int_equal(cli_record_parse(SLICE("\x81\xa6status\x01"), &record), BROOD_E_TYPE);
	assert_int_equal(cli_record_parse(SLICE("\x82\xa6status\xa2ok\xa4repr\x01"), &record), BROOD_E_TYPE);
	assert_int_equal(cli_record_parse(SLICE("\x82\xa6status\xa2ok\xa9truncated\x80"), &record), BROOD_E_TYPE);
	assert_int_equal(cli_record_parse(SLICE("\x82\xa6status\xa2ok\xa5"
						"error\x01"),
					  &record),
			 BROOD_E_TYPE);
	assert_int_equal(record.exit_code, 42);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_result), cmocka_unit_test(test_error),
		cmocka_unit_test(test_output), cmocka_unit_test(test_refused_messages),
		cmocka_unit_test(test_record), cmocka_unit_test(test_refused_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
