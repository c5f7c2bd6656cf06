/*
 * Runs in:   every process
 * Trusts:    nothing
 * Blocks on: nothing
 */
#include "protocol/scan.h"

#include <string.h>

/* Length of the character at data, 0 when it is none. */
static size_t character(const uint8_t *data, size_t len)
{
	uint8_t c = data[0], low = 0x80, high = 0xbf;
	size_t n;

	if (c < 0x80)
		return 1;
	if (c >= 0xc2 && c <= 0xdf) {
		n = 2;
	} else if (c >= 0xe0 && c <= 0xef) {
		n = 3;
		if (c == 0xe0)
			low = 0xa0; /* shorter forms exist */
		else if (c == 0xed)
			high = 0x9f; /* surrogates */
	} else if (c >= 0xf0 && c <= 0xf4) {
		n = 4;
		if (c == 0xf0)
			low = 0x90; /* shorter forms exist */
		else if (c == 0xf4)
			high = 0x8f; /* beyond U+10FFFF */
	} else {
		return 0;
	}
	if (len < n || data[1] < low || data[1] > high)
		return 0;
	for (size_t i = 2; i < n; i++) {
		if ((data[i] & 0xc0) != 0x80)
			return 0;
	}
	return n;
}

int brood_utf8_valid(const uint8_t *data, size_t len)
{
	size_t at = 0;

	while (at < len) {
		uint64_t eight;
		size_t n;

		/* Most text is ASCII: eight bytes at a time. */
		while (len - at >= sizeof(eight)) {
			memcpy(&eight, data + at, sizeof(eight));
			if (eight & UINT64_C(0x8080808080808080))
				break;
			at += sizeof(eight);
		}
		if (at == len)
			break;
		n = character(data + at, len - at);
		if (n == 0)
			return 0;
		at += n;
	}
	return 1;
}

size_t brood_utf8_prefix(const uint8_t *data, size_t len, size_t max)
{
	size_t at = max;

	if (len <= max)
		return len;
	/* Back from a continuation byte to its first, if that one is near enough to own it. */
	while (at > 0 && max - at < 3 && (data[at] & 0xc0) == 0x80)
		at--;
	if ((data[at] & 0xc0) != 0xc0)
		return max; /* not UTF-8 there: nothing to keep whole */
	return character(data + at, len - at) > max - at ? at : max;
}
