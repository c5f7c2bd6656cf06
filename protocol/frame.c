/*
 * Runs in:   broodd and workers
 * Trusts:    nothing
 * Blocks on: nothing
 */
#include "protocol/frame.h"

#include "protocol/error.h"

void brood_frame_header(uint8_t out[BROOD_FRAME_HEADER], uint32_t payload_len)
{
	for (int i = 0; i < BROOD_FRAME_HEADER; i++)
		out[i] = (uint8_t)(payload_len >> (8 * i));
}

int brood_frame_parse(const uint8_t *data, size_t len, size_t max_payload, struct brood_slice *payload, size_t *used)
{
	uint32_t declared = 0;

	if (len < BROOD_FRAME_HEADER)
		return 0;
	for (int i = 0; i < BROOD_FRAME_HEADER; i++)
		declared |= (uint32_t)data[i] << (8 * i);
	if (declared == 0)
		return BROOD_E_MALFORMED;
	if (declared > max_payload)
		return BROOD_E_TOO_LARGE;
	if (len - BROOD_FRAME_HEADER < declared)
		return 0;
	payload->data = data + BROOD_FRAME_HEADER;
	payload->len = declared;
	*used = BROOD_FRAME_HEADER + (size_t)declared;
	return 1;
}
