/* Base64 with padding (RFC 4648, part 4), as `$bytes` and `$ext` carry it. */
#ifndef BROOD_CLIENT_BASE64_H
#define BROOD_CLIENT_BASE64_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

void cli_base64_write(FILE *to, const uint8_t *data, size_t len);

/* Bytes that a text of this length decodes to at most. */
#define CLI_BASE64_DECODED_MAX(text_len) ((text_len) / 4 * 3)

/*
 * Decodes into `out`, which has room for CLI_BASE64_DECODED_MAX(len), and sets *out_len. 0 or BROOD_E_SYNTAX: another character, a length that
 * is no multiple of four, padding elsewhere than at the end. What `out` holds after an error is not defined.
 */
int cli_base64_decode(const char *text, size_t len, uint8_t *out, size_t *out_len);

#endif
