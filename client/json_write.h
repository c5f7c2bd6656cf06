/* MessagePack values as JSON text. PROTOCOL.md, part 3, is the definition. */
#ifndef BROOD_CLIENT_JSON_WRITE_H
#define BROOD_CLIENT_JSON_WRITE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "protocol/reader.h"

/*
 * Writes one value, which brood_scan_* has judged, without a newline. Returns 0, or BROOD_E_MALFORMED or BROOD_E_TOO_DEEP
 * for bytes that were not judged, or BROOD_E_MEMORY; part of the text may be written then. Errors of the stream stay in it (ferror).
 */
int cli_json_write(FILE *to, struct brood_slice value);

/* The same for the record of a call: `stdout` and `stderr` that are bin become a string. */
int cli_json_write_record(FILE *to, struct brood_slice record);

/* A str as a JSON string. */
void cli_json_write_str(FILE *to, struct brood_slice text);

#endif
