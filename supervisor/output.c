/*
 * Runs in:   broodd
 * Trusts:    nothing: these are the untrusted code's bytes, kept and counted, never interpreted
 * Blocks on: nothing
 */
#include "supervisor/output.h"

#include <stdlib.h>
#include <string.h>

#include "protocol/error.h"
#include "protocol/limits.h"

#define FIRST_ROOM 4096

void sup_output_init(struct sup_output *out, uint64_t limit)
{
	memset(out, 0, sizeof(*out));
	out->limit = limit;
}

void sup_output_free(struct sup_output *out)
{
	free(out->data);
	memset(out, 0, sizeof(*out));
}

/* Bytes that a UTF-8 character with this first byte has; 1 for what can begin none. */
static size_t utf8_length(uint8_t first)
{
	if (first >= 0xf0 && first <= 0xf4)
		return 4;
	if (first >= 0xe0 && first <= 0xef)
		return 3;
	return first >= 0xc2 && first <= 0xdf ? 2 : 1;
}

/* Length of a UTF-8 character at the end of the data that still lacks bytes; 0 when there is none. */
static size_t unfinished(const uint8_t *data, size_t len)
{
	for (size_t back = 1; back <= 3 && back <= len; back++) {
		uint8_t byte = data[len - back];

		if ((byte & 0xc0) == 0x80)
			continue;
		return utf8_length(byte) > back ? back : 0;
	}
	return 0;
}

static int reserve(struct sup_output *out, size_t wanted)
{
	size_t room = out->room ? out->room : FIRST_ROOM;
	uint8_t *grown;

	if (wanted <= out->room)
		return 0;
	while (room < wanted)
		room *= 2;
	grown = realloc(out->data, room);
	if (!grown)
		return BROOD_E_MEMORY;
	out->data = grown;
	out->room = room;
	return 0;
}

int sup_output_add(struct sup_output *out, const uint8_t *data, size_t len)
{
	uint64_t left = out->limit - out->kept;
	size_t keep = len < left ? len : (size_t)left;

	out->total += len;
	if (out->full || len == 0)
		return 0;
	if (reserve(out, out->len + keep) < 0) {
		out->full = true;
		return BROOD_E_MEMORY;
	}
	if (keep > 0)
		memcpy(out->data + out->len, data, keep);
	out->len += keep;
	out->kept += keep;
	if (keep < len) {
		/* The cut comes before a character that would straddle it. What was sent on before ended whole. */
		size_t torn = unfinished(out->data, out->len);

		out->len -= torn;
		out->kept -= torn;
		out->full = true;
	}
	return 0;
}

size_t sup_output_ready(const struct sup_output *out, bool last)
{
	if (last || out->full)
		return out->len;
	return out->len - unfinished(out->data, out->len);
}

void sup_output_take(struct sup_output *out, size_t n)
{
	out->len -= n;
	memmove(out->data, out->data + n, out->len);
}

bool sup_output_flooded(const struct sup_output *out)
{
	uint64_t most = out->limit * BROOD_OUTPUT_FLOOD_FACTOR;

	if (most < BROOD_OUTPUT_FLOOD_FLOOR)
		most = BROOD_OUTPUT_FLOOD_FLOOR;
	return out->total > most;
}
