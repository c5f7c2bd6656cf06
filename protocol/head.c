/*
 * Runs in:   every process
 * Trusts:    nothing
 * Blocks on: nothing
 *
 * The formats are those of the MessagePack specification: five ranges of "fix" formats, and 32 bytes from 0xc0 to 0xdf with a row each.
 */
#include "protocol/head.h"

#include <string.h>

#include "protocol/error.h"

struct format {
	enum brood_type type;
	uint8_t number; /* bytes of a number, or of a length */
	bool is_signed;
	int8_t fixed_payload; /* of fixext; -1: the length says */
};

static const struct format FORMATS[32] = {
	[0x00] = {BROOD_T_NIL, 0, false, 0},   [0x01] = {BROOD_T_RESERVED, 0, false, 0},
	[0x02] = {BROOD_T_BOOL, 0, false, 0},  [0x03] = {BROOD_T_BOOL, 0, false, 0},
	[0x04] = {BROOD_T_BIN, 1, false, -1},  [0x05] = {BROOD_T_BIN, 2, false, -1},
	[0x06] = {BROOD_T_BIN, 4, false, -1},  [0x07] = {BROOD_T_EXT, 1, false, -1},
	[0x08] = {BROOD_T_EXT, 2, false, -1},  [0x09] = {BROOD_T_EXT, 4, false, -1},
	[0x0a] = {BROOD_T_FLOAT, 4, false, 0}, [0x0b] = {BROOD_T_FLOAT, 8, false, 0},
	[0x0c] = {BROOD_T_UINT, 1, false, 0},  [0x0d] = {BROOD_T_UINT, 2, false, 0},
	[0x0e] = {BROOD_T_UINT, 4, false, 0},  [0x0f] = {BROOD_T_UINT, 8, false, 0},
	[0x10] = {BROOD_T_UINT, 1, true, 0},   [0x11] = {BROOD_T_UINT, 2, true, 0},
	[0x12] = {BROOD_T_UINT, 4, true, 0},   [0x13] = {BROOD_T_UINT, 8, true, 0},
	[0x14] = {BROOD_T_EXT, 0, false, 1},   [0x15] = {BROOD_T_EXT, 0, false, 2},
	[0x16] = {BROOD_T_EXT, 0, false, 4},   [0x17] = {BROOD_T_EXT, 0, false, 8},
	[0x18] = {BROOD_T_EXT, 0, false, 16},  [0x19] = {BROOD_T_STR, 1, false, -1},
	[0x1a] = {BROOD_T_STR, 2, false, -1},  [0x1b] = {BROOD_T_STR, 4, false, -1},
	[0x1c] = {BROOD_T_ARRAY, 2, false, 0}, [0x1d] = {BROOD_T_ARRAY, 4, false, 0},
	[0x1e] = {BROOD_T_MAP, 2, false, 0},   [0x1f] = {BROOD_T_MAP, 4, false, 0},
};

static uint64_t big_endian(const uint8_t *data, size_t len)
{
	uint64_t value = 0;

	for (size_t i = 0; i < len; i++)
		value = value << 8 | data[i];
	return value;
}

static void fix_format(uint8_t first, struct brood_head *head)
{
	head->size = 1;
	if (first < 0x80) {
		head->type = BROOD_T_UINT;
		head->bits = first;
	} else if (first < 0x90) {
		head->type = BROOD_T_MAP;
		head->count = first & 0x0f;
	} else if (first < 0xa0) {
		head->type = BROOD_T_ARRAY;
		head->count = first & 0x0f;
	} else if (first < 0xc0) {
		head->type = BROOD_T_STR;
		head->payload = first & 0x1f;
	} else {
		head->type = BROOD_T_NEGINT;
		head->bits = (uint64_t)(int64_t)(int8_t)first;
	}
}

static void read_number(const struct format *format, uint64_t number, struct brood_head *head)
{
	unsigned unused_bits = 64 - 8u * format->number;
	float single;
	double wide;
	uint32_t bits = (uint32_t)number;

	head->bits = number;
	if (format->is_signed) {
		head->bits = (uint64_t)((int64_t)(number << unused_bits) >> unused_bits);
		if ((int64_t)head->bits < 0)
			head->type = BROOD_T_NEGINT;
	} else if (format->type == BROOD_T_FLOAT && format->number == 4) {
		memcpy(&single, &bits, sizeof(single));
		wide = (double)single;
		memcpy(&head->bits, &wide, sizeof(wide));
	}
}

int brood_head_read(const uint8_t *data, size_t len, struct brood_head *out)
{
	struct brood_head head = {0};
	const struct format *format;
	uint64_t number;

	if (len == 0)
		return 0;
	if (data[0] < 0xc0 || data[0] >= 0xe0) {
		fix_format(data[0], &head);
		*out = head;
		return 1;
	}
	format = &FORMATS[data[0] & 0x1f];
	if (format->type == BROOD_T_RESERVED)
		return BROOD_E_MALFORMED;
	head.type = format->type;
	head.size = 1u + format->number + (format->type == BROOD_T_EXT);
	if (len < head.size)
		return 0;
	number = big_endian(data + 1, format->number);
	if (format->type == BROOD_T_BOOL)
		head.bits = data[0] & 1;
	else if (format->type == BROOD_T_UINT || format->type == BROOD_T_FLOAT)
		read_number(format, number, &head);
	else if (format->type == BROOD_T_ARRAY || format->type == BROOD_T_MAP)
		head.count = (uint32_t)number;
	else
		head.payload = format->fixed_payload >= 0 ? (size_t)format->fixed_payload : (size_t)number;
	if (format->type == BROOD_T_EXT)
		head.ext_type = (int8_t)data[head.size - 1];
	*out = head;
	return 1;
}
