/* A private broodd: started for one command, ended with it. */
#ifndef BROOD_CLIENT_BROODD_H
#define BROOD_CLIENT_BROODD_H

#include <stddef.h>
#include <sys/types.h>

#include "client/options.h"

#define CLI_BROODD_ERROR_MAX 8192

struct cli_broodd {
	pid_t pid;  /* 0: none, or waited for */
	int pidfd;  /* owned */
	int status; /* as of waitpid, once it was waited for */
};

/*
 * Starts `broodd --stdio` with the configuration and the limits of `options`, ready to take a request of `request_bytes`. Returns our
 * end of a socket pair, which the caller owns; or -1 with a line for people in `error`. `broodd` must be zeroed with pidfd -1.
 */
int cli_broodd_start(struct cli_broodd *broodd, const struct cli_options *options, size_t request_bytes,
		     char error[CLI_BROODD_ERROR_MAX]);

/*
 * Waits for its end, for which the caller has closed our end of the socket pair or seen the end of file on it; kills it when that takes
 * too long. No zombie is left. Does nothing when there is none.
 */
void cli_broodd_end(struct cli_broodd *broodd);

#endif
