/*
 * Finds the end of one MessagePack value in a buffer that grows, and proves it harmless: well formed, at most
 * max_bytes long (declared lengths count before their bytes come), at most max_depth containers deep, every str
 * valid UTF-8, every nested extension (ext.h) exactly one value that is not itself a nested extension. An extension is no level of
 * its own: the array inside it is.
 *
 * Neither recursive nor allocating: state is a fixed stack, so a scan may stop for want of bytes and go on later at
 * no extra cost. Total work is linear in the input however it is sliced.
 */
#ifndef BROOD_PROTOCOL_SCAN_H
#define BROOD_PROTOCOL_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/limits.h"

struct brood_scan_level {
	uint64_t left; /* values still to come in this container */
	size_t limit;  /* offset that nothing inside may reach beyond */
	bool exact;    /* a nested extension: its one value must end at the limit */
};

struct brood_scan {
	size_t max_bytes;
	size_t pos;	    /* offset of the next byte that was not judged yet */
	unsigned max_depth; /* arrays and maps inside each other; at most BROOD_SCAN_DEPTH */
	unsigned depth;	    /* of those now */
	unsigned top;	    /* index of the innermost level */
	int failed;	    /* the error of an earlier feed, repeated by later ones */
	struct brood_scan_level level[2 * BROOD_SCAN_DEPTH + 2]; /* each may stand in an extension */
};

/* max_depth is clamped to BROOD_SCAN_DEPTH. */
void brood_scan_init(struct brood_scan *scan, size_t max_bytes, unsigned max_depth);

/*
 * `data` points to the value's first byte and holds `len` bytes of it so far; it may lie elsewhere at each call as
 * long as its contents are the same. Returns 1 when the value is whole (*end is its length), 0 when more bytes are
 * needed, BROOD_E_MALFORMED, BROOD_E_TOO_LARGE, BROOD_E_TOO_DEEP or BROOD_E_UTF8 otherwise.
 */
int brood_scan_feed(struct brood_scan *scan, const uint8_t *data, size_t len, size_t *end);

/* One whole value that fills `data` exactly: 0, or an error (BROOD_E_MALFORMED for too few or too many bytes). */
int brood_scan_whole(const uint8_t *data, size_t len, unsigned max_depth);

/* 1 if the bytes are well-formed UTF-8 (no surrogates, no overlong forms), else 0. */
int brood_utf8_valid(const uint8_t *data, size_t len);

/* The longest prefix of at most `max` bytes that does not cut a UTF-8 character in two. For valid or invalid input. */
size_t brood_utf8_prefix(const uint8_t *data, size_t len, size_t max);

#endif
