/*
 * What a call wrote to one of its streams: kept up to a limit that is exact to the byte and never cuts a UTF-8
 * character, counted beyond it.
 */
#ifndef BROOD_SUPERVISOR_OUTPUT_H
#define BROOD_SUPERVISOR_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sup_output {
	uint8_t *data; /* kept and not yet taken; owned */
	size_t len, room;
	uint64_t limit; /* most bytes kept */
	uint64_t kept;	/* bytes kept, those already taken included */
	uint64_t total; /* bytes that came */
	bool full;	/* the limit was reached: nothing more is kept, whatever comes */
};

void sup_output_init(struct sup_output *out, uint64_t limit);
void sup_output_free(struct sup_output *out); /* leaves it empty */

/* Takes `len` more bytes. 0, or BROOD_E_MEMORY (the bytes then count as cut). */
int sup_output_add(struct sup_output *out, const uint8_t *data, size_t len);

/*
 * How many of the `len` bytes held can be sent on now: all but a character that is not whole yet. With `last`, all.
 */
size_t sup_output_ready(const struct sup_output *out, bool last);

/* Forgets the first n bytes, which were sent. */
void sup_output_take(struct sup_output *out, size_t n);

/* True once so much came beyond the limit that the call is to be ended (BROOD_OUTPUT_FLOOD_FACTOR). */
bool sup_output_flooded(const struct sup_output *out);

#endif
