/* The head of a MessagePack value: what the first byte and the few after it say. Shared by scan.c and reader.c only. */
#ifndef BROOD_PROTOCOL_HEAD_H
#define BROOD_PROTOCOL_HEAD_H

#include "protocol/reader.h"

struct brood_head {
	enum brood_type type;
	size_t size;	/* bytes of the head, a number's own bytes included */
	size_t payload; /* bytes that follow it (str, bin, ext) */
	uint32_t count; /* values that follow (array), or pairs (map) */
	uint64_t bits;	/* of a number: uint, negative int (two's complement), bool, or a float 64 */
	int ext_type;
};

/* 1, 0 when the head is not whole yet, or BROOD_E_MALFORMED. `out` is untouched unless 1 is returned. */
int brood_head_read(const uint8_t *data, size_t len, struct brood_head *out);

#endif
