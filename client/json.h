/* Values as JSON, both ways. PROTOCOL.md, part 3, is the definition. */
#ifndef BROOD_CLIENT_JSON_H
#define BROOD_CLIENT_JSON_H

#include <stdio.h>
#include <msgpack.h>

#include "protocol/reader.h"

#define CLI_JSON_ERROR_MAX 256

/* Writes the next value of the reader as JSON. 0, or a negative error (the bytes were no value, or out of memory). */
int cli_json_write(FILE *to, struct brood_reader *r);

/* Writes text (UTF-8) as a JSON string. */
void cli_json_write_text(FILE *to, struct brood_slice text);

/* Writes a call's record: as a value, but output that is not UTF-8 is escaped text. */
int cli_json_write_record(FILE *to, struct brood_reader *r);

/* Packs the value that the JSON text stands for. 0, or -1 with a phrase in `error`. */
int cli_json_pack(msgpack_packer *pk, const char *text, char error[CLI_JSON_ERROR_MAX]);

#endif
