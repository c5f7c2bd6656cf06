/* Values as JSON, both ways: every row of PROTOCOL.md, part 3, and what must be refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "client/json_read.h"
#include "client/json_write.h"
#include "protocol/error.h"
#include "protocol/limits.h"
#include "protocol/scan.h"

#define BYTES(literal) (const uint8_t *)(literal), sizeof(literal) - 1

/* The text of one value; the caller frees it. */
static char *written(const uint8_t *data, size_t len, int (*write)(FILE *, struct brood_slice))
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	assert_non_null(to);
	assert_int_equal(brood_scan_whole(data, len, BROOD_SCAN_DEPTH), 0);
	assert_int_equal(write(to, (struct brood_slice){data, len}), 0);
	fclose(to);
	return text;
}

static void check_write(const uint8_t *data, size_t len, const char *expected)
{
	char *text = written(data, len, cli_json_write);

	assert_string_equal(text, expected);
	free(text);
}

static void check_read(const char *json, const uint8_t *expected, size_t len)
{
	char error[CLI_JSON_ERROR_MAX] = "";
	msgpack_sbuffer to;

	msgpack_sbuffer_init(&to);
	assert_int_equal(cli_json_read(&to, json, strlen(json), error), 0);
	assert_int_equal(to.size, len);
	assert_memory_equal(to.data, expected, len);
	msgpack_sbuffer_destroy(&to);
}

static void check_refused(const char *json, int expected, const char *phrase)
{
	char error[CLI_JSON_ERROR_MAX] = "";
	msgpack_sbuffer to;

	msgpack_sbuffer_init(&to);
	msgpack_sbuffer_write(&to, "x", 1);
	assert_int_equal(cli_json_read(&to, json, strlen(json), error), expected);
	assert_non_null(strstr(error, phrase));
	assert_int_equal(to.size, 1); /* what was there before stays, and nothing else */
	msgpack_sbuffer_destroy(&to);
}

/* Both directions of a value that has one spelling in each. */
static void both(const char *json, const uint8_t *data, size_t len)
{
	check_write(data, len, json);
	check_read(json, data, len);
}

static void test_plain(void **state)
{
	(void)state;
	both("null", BYTES("\xc0"));
	both("true", BYTES("\xc3"));
	both("false", BYTES("\xc2"));
	both("0", BYTES("\x00"));
	both("-32", BYTES("\xe0"));
	both("[]", BYTES("\x90"));
	both("{}", BYTES("\x80"));
	both("[1, [2]]", BYTES("\x92\x01\x91\x02"));
	both("{\"a\": 1, \"b\": null}", BYTES("\x82\xa1"
					      "a\x01\xa1"
					      "b\xc0"));
}

static void test_ints_at_the_edges(void **state)
{
	(void)state;
	both("9007199254740992", BYTES("\xcf\x00\x20\0\0\0\0\0\0"));
	both("-9007199254740992", BYTES("\xd3\xff\xe0\0\0\0\0\0\0"));
	both("{\"$int\": \"9007199254740993\"}", BYTES("\xcf\x00\x20\0\0\0\0\0\x01"));
	both("{\"$int\": \"-9223372036854775808\"}", BYTES("\xd3\x80\0\0\0\0\0\0\0"));
	both("{\"$int\": \"18446744073709551615\"}", BYTES("\xcf\xff\xff\xff\xff\xff\xff\xff\xff"));
	both("{\"$int\": \"18446744073709551616\"}", BYTES("\xc7\x09\x01\x01\0\0\0\0\0\0\0\0"));
	both("{\"$int\": \"-9223372036854775809\"}", BYTES("\xc7\x09\x01\xff\x7f\xff\xff\xff\xff\xff\xff\xff"));
	/* As a plain number too, as far as JSON's own integers go here. */
	check_read("9223372036854775807", BYTES("\xcf\x7f\xff\xff\xff\xff\xff\xff\xff"));
	check_refused("9223372036854775808", BROOD_E_RANGE, "$int");
	check_refused("{\"$int\": 5}", BROOD_E_SYNTAX, "$int");
	check_refused("{\"$int\": \"\"}", BROOD_E_SYNTAX, "$int");
	check_refused("{\"$int\": \"1\\u00002\"}", BROOD_E_SYNTAX, "$int");
}

static void test_floats(void **state)
{
	(void)state;
	both("0.5", BYTES("\xcb\x3f\xe0\0\0\0\0\0\0"));
	both("-0.0", BYTES("\xcb\x80\0\0\0\0\0\0\0"));
	both("1.0", BYTES("\xcb\x3f\xf0\0\0\0\0\0\0"));
	both("0.1", BYTES("\xcb\x3f\xb9\x99\x99\x99\x99\x99\x9a"));
	both("1e+300", BYTES("\xcb\x7e\x37\xe4\x3c\x88\x00\x75\x9c"));
	both("4.94065645841247e-324", BYTES("\xcb\0\0\0\0\0\0\0\x01")); /* the smallest there is */
	check_write(BYTES("\xca\x3f\x80\0\0"), "1.0");			/* a float of 32 bits */
	both("{\"$float\": \"inf\"}", BYTES("\xcb\x7f\xf0\0\0\0\0\0\0"));
	both("{\"$float\": \"-inf\"}", BYTES("\xcb\xff\xf0\0\0\0\0\0\0"));
	both("{\"$float\": \"nan\"}", BYTES("\xcb\x7f\xf8\0\0\0\0\0\0"));
	check_refused("{\"$float\": \"1.5\"}", BROOD_E_SYNTAX, "$float");
	check_refused("1e999", BROOD_E_RANGE, "overflow");
}

static void test_strings(void **state)
{
	(void)state;
	both("\"\"", BYTES("\xa0"));
	both("\"\\\"\\\\\\n\\t\\r\\b\\f\"", BYTES("\xa7\"\\\n\t\r\b\f"));
	both("\"\\u0000\\u001f\\u007f\"", BYTES("\xa3\0\x1f\x7f"));
	both("\"h\xc3\xa9\xf0\x9f\x90\xa3\"", BYTES("\xa7h\xc3\xa9\xf0\x9f\x90\xa3"));
	check_read("\"\\u00e9\\ud83d\\udc23\"", BYTES("\xa6\xc3\xa9\xf0\x9f\x90\xa3"));
	check_refused("\"\\ud800\"", BROOD_E_SYNTAX, "not JSON");
	check_refused("\"\xff\"", BROOD_E_SYNTAX, "not JSON");
}

static void test_surrogates(void **state)
{
	(void)state;
	both("{\"$str\": \"a\\\\ud800\\\\\\\\z\"}", BYTES("\xc7\x06\x02"
							  "a\xed\xa0\x80\\z"));
	both("{\"$str\": \"\\\\udfff\\\"\"}", BYTES("\xd6\x02\xed\xbf\xbf\""));
	/* A text that needs no surrogate is an ordinary one. */
	check_read("{\"$str\": \"a\\\\\\\\b\"}", BYTES("\xa3"
						       "a\\b"));
	check_read("{\"$str\": \"\\\\uDC80\"}", BYTES("\xc7\x03\x02\xed\xb2\x80"));
	check_refused("{\"$str\": \"\\\\u0041\"}", BROOD_E_SYNTAX, "$str");
	check_refused("{\"$str\": \"\\\\\"}", BROOD_E_SYNTAX, "$str");
	check_refused("{\"$str\": \"\\\\ud8\"}", BROOD_E_SYNTAX, "$str");
	check_refused("{\"$str\": 1}", BROOD_E_SYNTAX, "$str");
	/* A payload that is no such text is of no known type. */
	check_write(BYTES("\xd4\x02\xff"), "{\"$ext\": [2, \"/w==\"]}");
	check_write(BYTES("\xd5\x02\xed\xa0"), "{\"$ext\": [2, \"7aA=\"]}");
}

static void test_bytes(void **state)
{
	(void)state;
	both("{\"$bytes\": \"\"}", BYTES("\xc4\x00"));
	both("{\"$bytes\": \"AA==\"}", BYTES("\xc4\x01\x00"));
	both("{\"$bytes\": \"AP8=\"}", BYTES("\xc4\x02\x00\xff"));
	both("{\"$bytes\": \"AP8Q\"}", BYTES("\xc4\x03\x00\xff\x10"));
	both("{\"$bytes\": \"+/+/\"}", BYTES("\xc4\x03\xfb\xff\xbf"));
	check_refused("{\"$bytes\": \"AA=\"}", BROOD_E_SYNTAX, "base64");
	check_refused("{\"$bytes\": \"AB==\"}", BROOD_E_SYNTAX, "base64"); /* bits that no byte takes */
	check_refused("{\"$bytes\": \"A===\"}", BROOD_E_SYNTAX, "base64");
	check_refused("{\"$bytes\": \"AA==AA==\"}", BROOD_E_SYNTAX, "base64");
	check_refused("{\"$bytes\": \"A A=\"}", BROOD_E_SYNTAX, "base64");
	check_refused("{\"$bytes\": null}", BROOD_E_SYNTAX, "base64");
}

static void test_sequences(void **state)
{
	(void)state;
	both("{\"$tuple\": []}", BYTES("\xd4\x03\x90"));
	both("{\"$tuple\": [1, 2]}", BYTES("\xc7\x03\x03\x92\x01\x02"));
	both("{\"$set\": [1]}", BYTES("\xd5\x04\x91\x01"));
	both("{\"$frozenset\": [1]}", BYTES("\xd5\x05\x91\x01"));
	both("{\"$tuple\": [{\"$tuple\": [null]}]}", BYTES("\xc7\x05\x03\x91\xd5\x03\x91\xc0"));
	check_refused("{\"$tuple\": {}}", BROOD_E_SYNTAX, "$tuple");
	check_write(BYTES("\xd4\x03\x01"), "{\"$ext\": [3, \"AQ==\"]}"); /* not an array inside */
}

static void test_maps(void **state)
{
	(void)state;
	both("{\"$map\": [[1, 2]]}", BYTES("\x81\x01\x02"));
	both("{\"$map\": [[\"a\", 1], [null, 2]]}", BYTES("\x82\xa1"
							  "a\x01\xc0\x02"));
	both("{\"$map\": [[\"$int\", \"5\"]]}", BYTES("\x81\xa4$int\xa1"
						      "5"));
	both("{\"$map\": [[\"a\\u0000b\", 1]]}", BYTES("\x81\xa3"
						       "a\0b\x01"));
	both("{\"$map\": [[{\"$tuple\": [1]}, 2]]}", BYTES("\x81\xd5\x03\x91\x01\x02"));
	/* A key with `$` among others is an ordinary one. */
	both("{\"$int\": 1, \"b\": 2}", BYTES("\x82\xa4$int\x01\xa1"
					      "b\x02"));
	both("{\"\": 1}", BYTES("\x81\xa0\x01"));
	check_refused("{\"a\": 1, \"a\": 2}", BROOD_E_SYNTAX, "duplicate");
	check_refused("{\"a\\u0000\": 1}", BROOD_E_SYNTAX, "$map");
	check_refused("{\"$map\": [[1]]}", BROOD_E_SYNTAX, "pairs");
	check_refused("{\"$map\": {\"a\": 1}}", BROOD_E_SYNTAX, "pairs");
	check_refused("{\"$mpa\": []}", BROOD_E_SYNTAX, "'$mpa'");
}

static void test_moments(void **state)
{
	(void)state;
	both("{\"$date\": \"2024-02-29\"}", BYTES("\xc7\x0b\x06\xaa"
						  "2024-02-29"));
	both("{\"$time\": \"12:30:00\"}", BYTES("\xc7\x09\x07\xa8"
						"12:30:00"));
	both("{\"$datetime\": \"2024-02-29T12:30:00\"}", BYTES("\xc7\x14\x08\xb3"
							       "2024-02-29T12:30:00"));
	both("{\"$timedelta\": [-1, 2, 3]}", BYTES("\xd6\x09\x93\xff\x02\x03"));
	check_refused("{\"$date\": 5}", BROOD_E_SYNTAX, "$date");
	check_refused("{\"$timedelta\": [1, 2]}", BROOD_E_SYNTAX, "$timedelta");
	check_refused("{\"$timedelta\": [1, 2, 0.5]}", BROOD_E_SYNTAX, "$timedelta");
	check_write(BYTES("\xd4\x06\x05"), "{\"$ext\": [6, \"BQ==\"]}");
	check_write(BYTES("\xc7\x03\x09\x92\x01\x02"), "{\"$ext\": [9, \"kgEC\"]}"); /* two ints of three */
	check_write(BYTES("\xd6\x09\x93\x01\x02\xa0"), "{\"$ext\": [9, \"kwECoA==\"]}");
}

static void test_complex(void **state)
{
	static const char NAN_PART[] = "\xc7\x13\x0a\x92\xcb\x7f\xf8\0\0\0\0\0\0\xcb\x3f\xf0\0\0\0\0\0\0";

	(void)state;
	both("{\"$complex\": [{\"$float\": \"nan\"}, 1.0]}", BYTES(NAN_PART));
	check_read("{\"$complex\": [{\"$float\": \"nan\"}, 1]}", BYTES(NAN_PART)); /* an int will do */
	check_refused("{\"$complex\": [1]}", BROOD_E_SYNTAX, "$complex");
	check_refused("{\"$complex\": [1, {\"$float\": \"x\"}]}", BROOD_E_SYNTAX, "$complex");
	check_refused("{\"$complex\": [1, {\"$int\": \"1\"}]}", BROOD_E_SYNTAX, "$complex");
}

static void test_for_answers_only(void **state)
{
	(void)state;
	check_write(BYTES("\xc7\x05\x0b\x92\xa1"
			  "d\xa1"
			  "1"),
		    "{\"$typed\": [\"d\", \"1\"]}");
	check_write(BYTES("\xc7\x05\x0c\x92\xa1"
			  "m\xa1"
			  "r"),
		    "{\"$opaque\": [\"m\", \"r\"]}");
	check_write(BYTES("\xc7\x08\x0d\x92\xa5"
			  "cycle\xa0"),
		    "{\"$cut\": [\"cycle\", \"\"]}");
	check_write(BYTES("\xd6\xff\0\0\0\x01"), "{\"$ext\": [-1, \"AAAAAQ==\"]}");
	check_write(BYTES("\xd4\x64\x01"), "{\"$ext\": [100, \"AQ==\"]}");
	check_write(BYTES("\xc7\x00\x01"), "{\"$ext\": [1, \"\"]}"); /* an int of no bytes is none */
	check_refused("{\"$typed\": [\"a\", \"b\"]}", BROOD_E_SYNTAX, "$typed");
	check_refused("{\"$opaque\": [\"a\", \"b\"]}", BROOD_E_SYNTAX, "$opaque");
	check_refused("{\"$cut\": [\"a\", \"b\"]}", BROOD_E_SYNTAX, "$cut");
	check_refused("{\"$ext\": [1, \"\"]}", BROOD_E_SYNTAX, "$ext");
}

static void test_not_json(void **state)
{
	(void)state;
	check_refused("", BROOD_E_SYNTAX, "not JSON");
	check_refused("hello", BROOD_E_SYNTAX, "hello");
	check_refused("1 2", BROOD_E_SYNTAX, "not JSON");
	check_refused("[1,", BROOD_E_SYNTAX, "not JSON");
	check_refused("NaN", BROOD_E_SYNTAX, "not JSON");
	check_refused("{'a': 1}", BROOD_E_SYNTAX, "not JSON");
}

/* `depth` times `open`, then the middle, then as many times `close`. */
static char *nested(const char *open, const char *middle, const char *close, size_t depth)
{
	char *text = malloc(depth * (strlen(open) + strlen(close)) + strlen(middle) + 1), *end = text;

	assert_non_null(text);
	for (size_t i = 0; i < depth; i++)
		end = stpcpy(end, open);
	end = stpcpy(end, middle);
	for (size_t i = 0; i < depth; i++)
		end = stpcpy(end, close);
	return text;
}

static void check_depth(const char *open, const char *close)
{
	char error[CLI_JSON_ERROR_MAX], *most = nested(open, "[]", close, BROOD_NESTING_MAX - 1);
	char *beyond = nested(open, "[]", close, BROOD_NESTING_MAX), *again;
	msgpack_sbuffer to;

	msgpack_sbuffer_init(&to);
	assert_int_equal(cli_json_read(&to, most, strlen(most), error), 0);
	again = written((const uint8_t *)to.data, to.size, cli_json_write);
	assert_string_equal(again, most);
	check_refused(beyond, BROOD_E_TOO_DEEP, "64");
	msgpack_sbuffer_destroy(&to);
	free(again);
	free(most);
	free(beyond);
}

static void test_depth(void **state)
{
	char *hostile = nested("[", "", "]", 100000);

	(void)state;
	check_depth("[", "]");
	check_depth("{\"a\": ", "}");
	check_depth("{\"$tuple\": [", "]}");
	check_depth("{\"$map\": [[1, ", "]]}");
	check_refused(hostile, BROOD_E_TOO_DEEP, "64");
	free(hostile);
}

/* Bytes that no scan has judged make an error, not a crash. */
static void test_unjudged_bytes(void **state)
{
	static const char *const BAD[] = {"\xc1", "\x92\x01", "\x81\xa1", "\xa5\x61\x62", "\xc7\x09\x01\x01"};
	uint8_t deep[1000];
	FILE *to = fopen("/dev/null", "w");

	(void)state;
	assert_non_null(to);
	memset(deep, 0x91, sizeof(deep));
	for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++)
		assert_int_equal(cli_json_write(to, (struct brood_slice){(const uint8_t *)BAD[i], strlen(BAD[i])}),
				 BROOD_E_MALFORMED);
	assert_int_equal(cli_json_write(to, (struct brood_slice){deep, 0}), BROOD_E_MALFORMED);
	assert_int_equal(cli_json_write(to, (struct brood_slice){deep, sizeof(deep)}), BROOD_E_TOO_DEEP);
	fclose(to);
}

static void test_record(void **state)
{
	static const char RECORD[] = "\x83\xa6stdout\xc4\x05"
				     "a\xff\xc3\xa9\\\xa6stderr\xa2ok\xa5value\xc4\x01\xff";
	char *text = written(BYTES(RECORD), cli_json_write_record);

	(void)state;
	assert_string_equal(
		text, "{\"stdout\": \"a\\\\xff\xc3\xa9\\\\\", \"stderr\": \"ok\", \"value\": {\"$bytes\": \"/w==\"}}");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_ints_at_the_edges),
		cmocka_unit_test(test_floats),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_surrogates),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_sequences),
		cmocka_unit_test(test_maps),
		cmocka_unit_test(test_moments),
		cmocka_unit_test(test_complex),
		cmocka_unit_test(test_for_answers_only),
		cmocka_unit_test(test_not_json),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_unjudged_bytes),
		cmocka_unit_test(test_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
