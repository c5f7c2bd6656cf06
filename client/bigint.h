/* Integers of any size between their text in JSON (`$int`) and MessagePack. PROTOCOL.md, parts 2 and 3. */
#ifndef BROOD_CLIENT_BIGINT_H
#define BROOD_CLIENT_BIGINT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <msgpack.h>

/*
 * Most digits that a decimal text may have, as in Python's own int(): the conversion's time grows with their square. The
 * largest payload that is written in decimal makes fewer digits than that, so all that is written can be read.
 */
#define CLI_INT_DIGITS_MAX 4300
#define CLI_INT_DECIMAL_BYTES 1785

/*
 * Writes the payload of an ext 1 (two's complement, big-endian, at least one byte): in decimal, or as "0x…" when it is longer than
 * CLI_INT_DECIMAL_BYTES. Returns 0 or BROOD_E_MEMORY.
 */
int cli_bigint_write(FILE *to, const uint8_t *data, size_t len);

/*
 * Packs the number that the text spells ("-12", "0xff"): as an int where it fits, else as ext 1. Returns 0, BROOD_E_SYNTAX,
 * BROOD_E_TOO_LARGE (more than CLI_INT_DIGITS_MAX decimal digits) or BROOD_E_MEMORY.
 */
int cli_bigint_pack(msgpack_packer *pk, const char *text, size_t len);

#endif
