/*
 * A growing buffer for msgpack-c's packer that remembers when memory ran out, so that callers check once at the end.
 */
#ifndef BROOD_SUPERVISOR_BUFFER_H
#define BROOD_SUPERVISOR_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <msgpack.h>

struct sup_buffer {
	uint8_t *data; /* owned */
	size_t len, room;
	bool failed; /* an append found no memory; what is in the buffer is not to be used */
};

#define SUP_BUFFER_KEEP (64 * 1024) /* more room than this is given back by sup_buffer_reset */

/* Appends; 0 or -1. The callback of msgpack_packer_init. */
int sup_buffer_write(void *buffer, const char *data, size_t len);

/* Empties it, keeping a modest allocation, and prepares a packer over it. */
void sup_buffer_begin(struct sup_buffer *buffer, msgpack_packer *pk);

void sup_buffer_free(struct sup_buffer *buffer);

#endif
