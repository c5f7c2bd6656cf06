/* The connection to a supervisor: an existing one by its socket, or a private one that lives as long as this command. */
#ifndef BROOD_CLIENT_LINK_H
#define BROOD_CLIENT_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/options.h"
#include "protocol/scan.h"

/* Nothing that a server sends is longer: an answer is its value, repr and output at their ceilings. */
#define CLI_MESSAGE_MAX (512 * BROOD_MIB)

struct cli_link {
	int in_fd, out_fd; /* the same for a socket */
	pid_t child;	   /* of a private supervisor; 0: none */
	int signal_fd;	   /* SIGINT and SIGTERM, which are blocked */
	int child_status;  /* once it ended by itself: its exit status */
	uint8_t *data;	   /* received, not yet taken */
	size_t len, room;
	size_t taken; /* bytes of the message that cli_link_next gave last */
	struct brood_scan scan;
};

/* 0, or -1 with one line in `error`. `link` is to be closed in either case. */
int cli_link_open(struct cli_link *link, const struct cli_options *options, char error[CLI_ERROR_MAX]);

/* Sends all of it, or fails with -1 and errno. */
int cli_link_send(struct cli_link *link, const void *data, size_t len);

enum cli_event {
	CLI_MESSAGE, /* *message is whole and judged; it lasts until the next call */
	CLI_SIGNAL,  /* SIGINT or SIGTERM came */
	CLI_END,     /* the server closed the connection */
	CLI_BAD,     /* the server sent what is no message */
};

/* Waits for the next of them. */
enum cli_event cli_link_next(struct cli_link *link, const uint8_t **message, size_t *len);

/* Ends a private supervisor, and waits until it is gone. Safe on a link that was never opened. */
void cli_link_close(struct cli_link *link);

#endif
