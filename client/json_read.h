/* JSON text as MessagePack values, for `--input`. PROTOCOL.md, part 3, is the definition. */
#ifndef BROOD_CLIENT_JSON_READ_H
#define BROOD_CLIENT_JSON_READ_H

#include <stddef.h>
#include <msgpack.h>

#define CLI_JSON_ERROR_MAX 320

/*
 * Appends the value that the text spells. Returns 0; or BROOD_E_SYNTAX (not JSON, or not this notation), BROOD_E_RANGE (a
 * number without place), BROOD_E_TOO_DEEP, BROOD_E_MEMORY with a phrase for people in `error`; nothing is appended then.
 */
int cli_json_read(msgpack_sbuffer *to, const char *text, size_t len, char error[CLI_JSON_ERROR_MAX]);

#endif
