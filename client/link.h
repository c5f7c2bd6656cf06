/* The connection to a broodd: whole messages come in, bytes go out, signals are heard. */
#ifndef BROOD_CLIENT_LINK_H
#define BROOD_CLIENT_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <msgpack.h>

#include "client/broodd.h"
#include "client/options.h"
#include "protocol/reader.h"
#include "protocol/scan.h"

/* The largest answer that the limits' ceilings allow: value and repr, both outputs, and the rest. */
#define CLI_MESSAGE_MAX (4 * 64 * BROOD_MIB + 8 * BROOD_MIB)

enum cli_event {
	CLI_EV_MESSAGE, /* *message is whole and well formed, until the next call */
	CLI_EV_SIGNAL,	/* SIGINT or SIGTERM */
	CLI_EV_TIMEOUT,
	CLI_EV_CLOSED,	  /* by the other side, between two messages */
	CLI_EV_CUT_SHORT, /* by the other side, inside a message */
	CLI_EV_GARBAGE,	  /* no message can be found in what comes, or it is too large */
	CLI_EV_FAILED,	  /* a system call, or out of memory; errno says why */
};

struct cli_link {
	int fd;	     /* owned; -1: closed */
	int signals; /* of cli_signals_install */
	struct cli_broodd broodd;
	bool is_private; /* `broodd` is the other side */
	bool eof;

	msgpack_sbuffer out; /* what is to be sent; packers append to it */
	size_t sent;	     /* of it */

	uint8_t *in;
	size_t in_start, in_len, in_room; /* start: of the current message; len: of all bytes, from `in` */
	size_t message_len;		  /* of the message that was handed out */
	struct brood_scan scan;
};

/* A link that is not open. */
void cli_link_init(struct cli_link *link, int signals);

/* Connects to options->socket, or starts a private broodd. Returns 0, or says why not and returns -1. */
int cli_link_open(struct cli_link *link, const struct cli_options *options);

/* The monotonic clock. */
int64_t cli_now_ms(void);

/* Waits for the next thing to happen, and sends meanwhile. `deadline_ms` is a time of cli_now_ms; -1: there is none. */
enum cli_event cli_link_next(struct cli_link *link, int64_t deadline_ms, struct brood_slice *message);

/* Closes it and waits for a private broodd to end. What was to be sent and came in is kept until cli_link_free. */
void cli_link_close(struct cli_link *link);

void cli_link_free(struct cli_link *link);

#endif
