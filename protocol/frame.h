/*
 * Frames between supervisor and worker: a 32-bit little-endian length, then that many bytes.
 */
#ifndef BROOD_PROTOCOL_FRAME_H
#define BROOD_PROTOCOL_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "protocol/reader.h"

#define BROOD_FRAME_HEADER 4

void brood_frame_header(uint8_t out[BROOD_FRAME_HEADER], uint32_t payload_len);

/*
 * Looks for a frame at the start of `data`. Returns 1 (*payload is set, *used bytes are consumed), 0 when more bytes are needed, or
 * BROOD_E_TOO_LARGE as soon as the header declares more than max_payload, BROOD_E_MALFORMED for a length of 0.
 */
int brood_frame_parse(const uint8_t *data, size_t len, size_t max_payload, struct brood_slice *payload, size_t *used);

#endif
