/* Helpers of messages_control.c, messages_start.c and messages_worker.c. Theirs only. */
#ifndef BROOD_PROTOCOL_MESSAGES_PARTS_H
#define BROOD_PROTOCOL_MESSAGES_PARTS_H

#include <string.h>
#include <msgpack.h>

#include "protocol/error.h"
#include "protocol/reader.h"
#include "protocol/scan.h"

/* Nesting of a message between our own processes, values apart. */
#define BROOD_MESSAGE_DEPTH 6

static inline void mp_text(msgpack_packer *pk, const char *text)
{
	size_t len = strlen(text);

	msgpack_pack_str(pk, len);
	msgpack_pack_str_body(pk, text, len);
}

static inline void mp_key_u64(msgpack_packer *pk, const char *key, uint64_t value)
{
	mp_text(pk, key);
	msgpack_pack_uint64(pk, value);
}

/* Opens [type, …]: an array of `count` elements whose first is this type. */
static inline int mp_open(struct brood_reader *r, const uint8_t *data, size_t len, unsigned depth, uint32_t count,
			  uint64_t type)
{
	uint64_t found;
	uint32_t elements;
	int result = brood_scan_whole(data, len, depth);

	if (result < 0)
		return result;
	brood_reader_init(r, data, len);
	if (brood_read_array(r, &elements) < 0 || elements != count || brood_read_u64(r, &found) < 0 || found != type)
		return BROOD_E_TYPE;
	return 0;
}

/*
 * The index in `names` of the key that comes next, each at most once (*seen), or BROOD_E_TYPE, BROOD_E_UNKNOWN, BROOD_E_MALFORMED.
 */
int brood_message_key(struct brood_reader *r, const char *const *names, unsigned count, unsigned *seen);

/* A str of at most `max` bytes without NUL, copied with a NUL into `to`, which has room for max + 1. */
int brood_message_text(struct brood_reader *r, char *to, size_t max);

/* The same, allocated; the caller frees *to. An old *to is not freed. */
int brood_message_strdup(struct brood_reader *r, char **to, size_t max);

/* All five limits as a map; and back, each within floor and ceiling. */
void brood_message_pack_limits(msgpack_packer *pk, const struct brood_limits *limits);
int brood_message_limits(struct brood_reader *r, struct brood_limits *out);

/*
 * The end of every writer. An sbuffer remembers no failed append, so what stands behind `before` is judged as its reader will judge it.
 * On failure it is taken away again.
 */
int brood_message_written(msgpack_sbuffer *to, size_t before);

#endif
