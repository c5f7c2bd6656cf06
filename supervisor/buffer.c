/*
 * Runs in:   broodd
 * Trusts:    its callers
 * Blocks on: nothing
 */
#include "supervisor/buffer.h"

#include <stdlib.h>
#include <string.h>

int sup_buffer_write(void *context, const char *data, size_t len)
{
	struct sup_buffer *buffer = context;

	if (buffer->failed)
		return -1;
	if (buffer->len + len > buffer->room) {
		size_t room = buffer->room ? buffer->room : 1024;
		uint8_t *grown;

		while (room < buffer->len + len)
			room *= 2;
		grown = realloc(buffer->data, room);
		if (!grown) {
			buffer->failed = true;
			return -1;
		}
		buffer->data = grown;
		buffer->room = room;
	}
	if (len > 0)
		memcpy(buffer->data + buffer->len, data, len);
	buffer->len += len;
	return 0;
}

void sup_buffer_begin(struct sup_buffer *buffer, msgpack_packer *pk)
{
	if (buffer->room > SUP_BUFFER_KEEP)
		sup_buffer_free(buffer);
	buffer->len = 0;
	buffer->failed = false;
	msgpack_packer_init(pk, buffer, sup_buffer_write);
}

void sup_buffer_free(struct sup_buffer *buffer)
{
	free(buffer->data);
	memset(buffer, 0, sizeof(*buffer));
}
