/* One request and the way to its answer: output is shown meanwhile, a signal cancels. */
#ifndef BROOD_CLIENT_EXCHANGE_H
#define BROOD_CLIENT_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "client/answer.h"
#include "client/link.h"
#include "client/output.h"

/* The only request of a command. */
#define CLI_REQUEST_ID 1

/* As a shell reports a program that SIGPIPE ended. */
#define CLI_EXIT_READER_GONE 141

struct cli_exchange {
	struct cli_link *link; /* open; the request is in its `out` */
	bool show;	       /* write output notifications to out and err */
	struct cli_output out, err;
	int stopped; /* 0; else the exit status, as the call was cancelled for a signal or for want of a reader */
	int64_t give_up_ms; /* once stopped: when to wait no longer */
};

/*
 * Returns 0 with the result or error in *answer, valid until the link is freed; or an exit status, once the user was told why.
 */
int cli_exchange(struct cli_exchange *exchange, struct cli_answer *answer);

#endif
