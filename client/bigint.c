/*
 * Runs in:   brood
 * Trusts:    nothing about the digits
 * Blocks on: the stream that is written to
 *
 * Decimal by schoolbook: 32-bit limbs, the least significant first, divided or multiplied by 10^9 again and again. That takes time with the square
 * of the length, so longer numbers are written in hexadecimal, which takes linear time.
 */
#include "client/bigint.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/error.h"
#include "protocol/ext.h"

#define GROUP 1000000000U /* the largest power of ten in 32 bits */
#define GROUP_DIGITS 9
#define LIMBS_MAX ((CLI_INT_DECIMAL_BYTES + 3) / 4 + 2)

/* A decimal digit takes 3.33 bits; the limbs must hold CLI_INT_DIGITS_MAX of them. */
_Static_assert(LIMBS_MAX * 32 * 3 >= CLI_INT_DIGITS_MAX * 10, "too few limbs");

/* Changes the sign of a two's complement number in place. */
static void negate(uint8_t *data, size_t len)
{
	unsigned carry = 1;

	for (size_t i = len; i-- > 0;) {
		carry += (uint8_t)~data[i];
		data[i] = (uint8_t)carry;
		carry >>= 8;
	}
}

/* Divides by GROUP and returns the remainder. *count shrinks with the number. */
static uint32_t divide(uint32_t *limbs, size_t *count)
{
	uint64_t rest = 0;

	for (size_t i = *count; i-- > 0;) {
		rest = rest << 32 | limbs[i];
		limbs[i] = (uint32_t)(rest / GROUP);
		rest %= GROUP;
	}
	while (*count > 0 && limbs[*count - 1] == 0)
		(*count)--;
	return (uint32_t)rest;
}

static void write_decimal(FILE *to, const uint8_t *magnitude, size_t len)
{
	uint32_t limbs[LIMBS_MAX] = {0}, groups[LIMBS_MAX * 2];
	size_t count = (len + 3) / 4, n = 0;

	for (size_t i = 0; i < len; i++)
		limbs[i / 4] |= (uint32_t)magnitude[len - 1 - i] << (8 * (i % 4));
	do
		groups[n++] = divide(limbs, &count);
	while (count > 0);
	fprintf(to, "%u", groups[--n]);
	while (n > 0)
		fprintf(to, "%09u", groups[--n]);
}

static void write_hex(FILE *to, const uint8_t *magnitude, size_t len)
{
	static const char DIGITS[] = "0123456789abcdef";
	size_t i = 0;

	while (i + 1 < len && magnitude[i] == 0)
		i++;
	fprintf(to, "0x%x", magnitude[i]);
	for (i++; i < len; i++) {
		putc_unlocked(DIGITS[magnitude[i] >> 4], to);
		putc_unlocked(DIGITS[magnitude[i] & 15], to);
	}
}

int cli_bigint_write(FILE *to, const uint8_t *data, size_t len)
{
	bool negative = data[0] & 0x80;
	uint8_t *magnitude = malloc(len);

	if (!magnitude)
		return BROOD_E_MEMORY;
	memcpy(magnitude, data, len);
	if (negative) {
		putc_unlocked('-', to);
		/* The most negative number has no opposite in as many bytes; unsigned, its pattern is its magnitude all the same. */
		negate(magnitude, len);
	}
	if (len <= CLI_INT_DECIMAL_BYTES)
		write_decimal(to, magnitude, len);
	else
		write_hex(to, magnitude, len);
	free(magnitude);
	return 0;
}

/* --- reading --- */

/* Fills the LIMBS_MAX * 4 bytes at `out`. */
static int parse_decimal(const char *text, size_t len, uint8_t *out)
{
	uint32_t limbs[LIMBS_MAX] = {0};

	for (size_t at = 0; at < len;) {
		size_t n = (len - at) % GROUP_DIGITS ? (len - at) % GROUP_DIGITS : GROUP_DIGITS;
		uint64_t carry = 0;

		for (; n > 0; n--, at++) {
			if (text[at] < '0' || text[at] > '9')
				return BROOD_E_SYNTAX;
			carry = carry * 10 + (uint64_t)(text[at] - '0');
		}
		for (size_t i = 0; i < LIMBS_MAX; i++) {
			carry += (uint64_t)limbs[i] * GROUP;
			limbs[i] = (uint32_t)carry;
			carry >>= 32;
		}
	}
	for (size_t i = 0; i < sizeof(limbs); i++)
		out[sizeof(limbs) - 1 - i] = (uint8_t)(limbs[i / 4] >> (8 * (i % 4)));
	return 0;
}

static int nibble(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Fills the (len + 1) / 2 bytes at `out`. */
static int parse_hex(const char *text, size_t len, uint8_t *out)
{
	memset(out, 0, (len + 1) / 2);
	for (size_t i = 0; i < len; i++) {
		int value = nibble(text[i]);
		size_t place = len - 1 - i; /* from the right */

		if (value < 0)
			return BROOD_E_SYNTAX;
		out[(len + 1) / 2 - 1 - place / 2] |= (uint8_t)(value << (4 * (place % 2)));
	}
	return 0;
}

/* True if the number fits MessagePack's own ints, and was packed. */
static bool pack_small(msgpack_packer *pk, bool negative, const uint8_t *magnitude, size_t len)
{
	uint64_t number = 0;

	if (len > sizeof(number))
		return false;
	for (size_t i = 0; i < len; i++)
		number = number << 8 | magnitude[i];
	if (negative && number > (uint64_t)INT64_MAX + 1)
		return false;
	if (negative)
		msgpack_pack_int64(pk, (int64_t)(0 - number));
	else
		msgpack_pack_uint64(pk, number);
	return true;
}

/* `bytes` is one byte of room and then the magnitude. The fewest bytes that hold the number are packed. */
static void pack_magnitude(msgpack_packer *pk, bool negative, uint8_t *bytes, size_t len)
{
	uint8_t *start = bytes + 1;

	for (; len > 0 && *start == 0; len--)
		start++;
	if (pack_small(pk, negative, start, len))
		return;
	if (negative)
		negate(start, len);
	/* The first bit is the sign: where it says something else, another byte is needed. */
	if ((*start & 0x80) != (negative ? 0x80 : 0)) {
		*--start = negative ? 0xff : 0;
		len++;
	}
	msgpack_pack_ext(pk, len, BROOD_EXT_BIGINT);
	msgpack_pack_ext_body(pk, start, len);
}

int cli_bigint_pack(msgpack_packer *pk, const char *text, size_t len)
{
	bool negative = len > 0 && text[0] == '-', hex;
	size_t room;
	uint8_t *bytes;
	int result;

	text += negative;
	len -= negative;
	hex = len > 2 && text[0] == '0' && text[1] == 'x';
	if (len == 0)
		return BROOD_E_SYNTAX;
	if (!hex && len > CLI_INT_DIGITS_MAX)
		return BROOD_E_TOO_LARGE;
	room = hex ? (len - 2 + 1) / 2 : LIMBS_MAX * sizeof(uint32_t);
	bytes = malloc(1 + room);
	if (!bytes)
		return BROOD_E_MEMORY;
	result = hex ? parse_hex(text + 2, len - 2, bytes + 1) : parse_decimal(text, len, bytes + 1);
	if (result == 0)
		pack_magnitude(pk, negative, bytes, room);
	free(bytes);
	return result;
}
