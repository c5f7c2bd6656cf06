/* The requests that the command sends. PROTOCOL.md, part 1. */
#ifndef BROOD_CLIENT_REQUEST_H
#define BROOD_CLIENT_REQUEST_H

#include <stdbool.h>
#include <msgpack.h>

#include "client/options.h"
#include "protocol/reader.h"

struct cli_program {
	struct brood_slice code;
	const char *name; /* UTF-8 */
	bool text;	  /* a str, if it is UTF-8; else bytes, whose own encoding declaration counts */
};

/* Appends the request. 0, BROOD_E_TOO_LARGE (beyond BROOD_REQUEST_CEILING) or BROOD_E_MEMORY. */
int cli_request_run(msgpack_sbuffer *to, const struct cli_options *options, const struct cli_program *program);
int cli_request_status(msgpack_sbuffer *to);

#endif
