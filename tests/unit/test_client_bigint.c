/* Integers of any size: text to MessagePack and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "client/bigint.h"
#include "protocol/error.h"
#include "protocol/ext.h"
#include "protocol/reader.h"

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

/* The payload that the text packs to. */
static struct brood_slice packed(const char *text)
{
	struct brood_slice payload;
	struct brood_reader r;
	int type;

	buffer.size = 0;
	assert_int_equal(cli_bigint_pack(&pk, text, strlen(text)), 0);
	brood_reader_init(&r, (const uint8_t *)buffer.data, buffer.size);
	assert_int_equal(brood_read_ext(&r, &type, &payload), 0);
	assert_int_equal(type, BROOD_EXT_BIGINT);
	return payload;
}

static void check_text(const uint8_t *data, size_t len, const char *expected)
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	assert_int_equal(cli_bigint_write(to, data, len), 0);
	fclose(to);
	assert_string_equal(text, expected);
	free(text);
}

static void round_trip(const char *text)
{
	struct brood_slice payload = packed(text);

	check_text(payload.data, payload.len, text);
}

static void test_round_trips(void **state)
{
	char longest[CLI_INT_DIGITS_MAX + 2];

	(void)state;
	round_trip("18446744073709551616");
	round_trip("-18446744073709551616");
	round_trip("1000000000000000000000000000"); /* groups of zeros */
	round_trip("-1000000000000000000000000001");
	round_trip("1267650600228229401496703205376");
	memset(longest, '9', sizeof(longest));
	longest[CLI_INT_DIGITS_MAX - 2] = '\0';
	round_trip(longest);
	longest[0] = '-';
	round_trip(longest);
}

/* Known payloads, of the fewest bytes. */
static void test_payloads(void **state)
{
	static const struct {
		const char *text;
		size_t len;
		const char *bytes;
	} CASES[] = {
		{"18446744073709551616", 9, "\x01\0\0\0\0\0\0\0\0"},
		{"-9223372036854775809", 9, "\xff\x7f\xff\xff\xff\xff\xff\xff\xff"},
		{"-0x800000000000000000", 9, "\x80\0\0\0\0\0\0\0\0"}, /* its opposite needs a byte more */
		{"0x800000000000000000", 10, "\0\x80\0\0\0\0\0\0\0\0"},
		{"-0x800000000000000001", 10, "\xff\x7f\xff\xff\xff\xff\xff\xff\xff\xff"},
		{"0x0000000010000000000000000", 9, "\x01\0\0\0\0\0\0\0\0"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
		struct brood_slice payload = packed(CASES[i].text);

		assert_int_equal(payload.len, CASES[i].len);
		assert_memory_equal(payload.data, CASES[i].bytes, CASES[i].len);
	}
}

static void check_small(const char *text, int64_t expected)
{
	struct brood_reader r;
	int64_t number;

	buffer.size = 0;
	assert_int_equal(cli_bigint_pack(&pk, text, strlen(text)), 0);
	brood_reader_init(&r, (const uint8_t *)buffer.data, buffer.size);
	assert_int_equal(brood_read_i64(&r, &number), 0);
	assert_true(number == expected);
}

static void test_small_numbers_are_plain(void **state)
{
	(void)state;
	check_small("0", 0);
	check_small("-0", 0);
	check_small("0x0", 0);
	check_small("-1", -1);
	check_small("0xFf", 255);
	check_small("000000000000000000000000000007", 7);
	check_small("9223372036854775807", INT64_MAX);
	check_small("-9223372036854775808", INT64_MIN);
}

/* Longer numbers than decimal takes are written, and read, in hexadecimal. */
static void test_hexadecimal(void **state)
{
	static uint8_t payload[CLI_INT_DECIMAL_BYTES + 1];
	static char text[2 * sizeof(payload) + 4];

	(void)state;
	payload[0] = 0x01;
	memset(text, '0', sizeof(text));
	memcpy(text, "0x1", 3);
	text[3 + 2 * CLI_INT_DECIMAL_BYTES] = '\0';
	check_text(payload, sizeof(payload), text);
	round_trip(text);
	payload[0] = 0xff;
	payload[sizeof(payload) - 1] = 0xff; /* -0x00ff…ff01, near -2^(8n) */
	memcpy(text, "-0x", 3);
	for (size_t i = 0; i < CLI_INT_DECIMAL_BYTES; i++)
		memcpy(text + 3 + 2 * i, i + 1 == CLI_INT_DECIMAL_BYTES ? "01" : "ff", 2);
	text[3 + 2 * CLI_INT_DECIMAL_BYTES] = '\0';
	check_text(payload, sizeof(payload), text);
	round_trip(text);
}

/* Decimal of the largest payload that is written so stays within what is read. */
static void test_largest_decimal(void **state)
{
	static uint8_t payload[CLI_INT_DECIMAL_BYTES];
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);
	struct brood_slice again;

	(void)state;
	payload[0] = 0x80;
	assert_int_equal(cli_bigint_write(to, payload, sizeof(payload)), 0);
	fclose(to);
	assert_in_range(size, 4000, CLI_INT_DIGITS_MAX);
	again = packed(text);
	assert_int_equal(again.len, sizeof(payload));
	assert_memory_equal(again.data, payload, sizeof(payload));
	free(text);
}

static void test_redundant_bytes(void **state)
{
	(void)state;
	check_text((const uint8_t *)"\0\0\0\0", 4, "0");
	check_text((const uint8_t *)"\0\0\0\x05", 4, "5");
	check_text((const uint8_t *)"\xff\xff\xff\xff\xff", 5, "-1");
	check_text((const uint8_t *)"\x80", 1, "-128");
}

static void test_refused(void **state)
{
	static const char *const BAD[] = {"",	 "-",	"+1",  "1 ",  "1_000", "0x",
					  "0xg", "--1", "1.0", "0X1", "-0x",   "\xd9\xa1"};
	char digits[CLI_INT_DIGITS_MAX + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++)
		assert_int_equal(cli_bigint_pack(&pk, BAD[i], strlen(BAD[i])), BROOD_E_SYNTAX);
	memset(digits, '9', sizeof(digits));
	assert_int_equal(cli_bigint_pack(&pk, digits, sizeof(digits)), BROOD_E_TOO_LARGE);
	assert_int_equal(buffer.size, 0);
	assert_int_equal(cli_bigint_pack(&pk, digits, sizeof(digits) - 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_round_trips, setup, teardown),
		cmocka_unit_test_setup_teardown(test_payloads, setup, teardown),
		cmocka_unit_test_setup_teardown(test_small_numbers_are_plain, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hexadecimal, setup, teardown),
		cmocka_unit_test_setup_teardown(test_largest_decimal, setup, teardown),
		cmocka_unit_test_setup_teardown(test_redundant_bytes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
