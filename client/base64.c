/*
 * Runs in:   brood
 * Trusts:    nothing about the text that is decoded
 * Blocks on: the stream that is written to
 */
#include "client/base64.h"

#include <string.h>

#include "protocol/error.h"

static const char ALPHABET[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void cli_base64_write(FILE *to, const uint8_t *data, size_t len)
{
	for (size_t i = 0; i < len; i += 3) {
		size_t n = len - i < 3 ? len - i : 3;
		uint32_t bits = (uint32_t)data[i] << 16;

		if (n > 1)
			bits |= (uint32_t)data[i + 1] << 8;
		if (n > 2)
			bits |= data[i + 2];
		putc_unlocked(ALPHABET[bits >> 18], to);
		putc_unlocked(ALPHABET[bits >> 12 & 63], to);
		putc_unlocked(n > 1 ? ALPHABET[bits >> 6 & 63] : '=', to);
		putc_unlocked(n > 2 ? ALPHABET[bits & 63] : '=', to);
	}
}

static int digit(char c)
{
	const char *at = c ? strchr(ALPHABET, c) : NULL;

	return at ? (int)(at - ALPHABET) : -1;
}

/* Four characters, of which the last `padding` are '='. */
static int decode_group(const char *text, unsigned padding, uint8_t *out)
{
	uint32_t bits = 0;

	for (unsigned i = 0; i < 4; i++) {
		int value = i < 4 - padding ? digit(text[i]) : 0;

		if (value < 0)
			return BROOD_E_SYNTAX;
		bits = bits << 6 | (uint32_t)value;
	}
	/* Bits that no byte takes must be zero, so that each value has one spelling. */
	if (bits & ((UINT32_C(1) << (8 * padding)) - 1))
		return BROOD_E_SYNTAX;
	out[0] = (uint8_t)(bits >> 16);
	if (padding < 2)
		out[1] = (uint8_t)(bits >> 8);
	if (padding < 1)
		out[2] = (uint8_t)bits;
	return 0;
}

int cli_base64_decode(const char *text, size_t len, uint8_t *out, size_t *out_len)
{
	unsigned padding = 0;

	if (len % 4 != 0)
		return BROOD_E_SYNTAX;
	if (len > 0 && text[len - 1] == '=')
		padding = text[len - 2] == '=' ? 2 : 1;
	for (size_t i = 0; i < len; i += 4) {
		if (decode_group(text + i, i + 4 == len ? padding : 0, out + i / 4 * 3) < 0)
			return BROOD_E_SYNTAX;
	}
	*out_len = len / 4 * 3 - padding;
	return 0;
}
