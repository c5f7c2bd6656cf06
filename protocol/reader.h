/*
 * Reads typed values one after another from a slice that brood_scan_* has judged.
 *
 * Each function reads one value, or returns an error and leaves the reader where it was: BROOD_E_TYPE for another
 * type, BROOD_E_RANGE for a number that does not fit, BROOD_E_MALFORMED at the end of the slice. Even over bytes that were never
 * scanned, no function reads outside the slice. Slices point into the input; nothing is copied or owned.
 */
#ifndef BROOD_PROTOCOL_READER_H
#define BROOD_PROTOCOL_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct brood_slice {
	const uint8_t *data;
	size_t len;
};

struct brood_reader {
	const uint8_t *pos;
	const uint8_t *end;
};

enum brood_type {
	BROOD_T_END, /* nothing left in the slice */
	BROOD_T_NIL,
	BROOD_T_BOOL,
	BROOD_T_UINT, /* an integer of 0 or more, in any of its encodings */
	BROOD_T_NEGINT,
	BROOD_T_FLOAT, /* 32 or 64 bits */
	BROOD_T_STR,
	BROOD_T_BIN,
	BROOD_T_ARRAY,
	BROOD_T_MAP,
	BROOD_T_EXT,
	BROOD_T_RESERVED, /* the byte 0xc1 */
};

void brood_reader_init(struct brood_reader *r, const uint8_t *data, size_t len);

enum brood_type brood_peek(const struct brood_reader *r);

int brood_read_nil(struct brood_reader *r);
int brood_read_bool(struct brood_reader *r, bool *out);
int brood_read_u64(struct brood_reader *r, uint64_t *out);
int brood_read_i64(struct brood_reader *r, int64_t *out);
int brood_read_double(struct brood_reader *r, double *out);
int brood_read_str(struct brood_reader *r, struct brood_slice *out);
int brood_read_bin(struct brood_reader *r, struct brood_slice *out);
int brood_read_ext(struct brood_reader *r, int *type, struct brood_slice *out);
/* These read only the head; `count` values (pairs for a map) follow. */
int brood_read_array(struct brood_reader *r, uint32_t *count);
int brood_read_map(struct brood_reader *r, uint32_t *count);
/* One value of any type, whole; not recursive. `out` may be NULL. */
int brood_read_any(struct brood_reader *r, struct brood_slice *out);

/* True if the slice holds exactly this text. */
bool brood_slice_is(struct brood_slice s, const char *text);

#endif
