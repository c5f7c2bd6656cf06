/* Writing to our standard output and standard error, so that a reader who does not read cannot keep us from a signal. */
#ifndef BROOD_CLIENT_OUTPUT_H
#define BROOD_CLIENT_OUTPUT_H

#include <stddef.h>
#include <stdio.h>

struct cli_output {
	int fd;
	int signals; /* of cli_signals_install, or -1 */
	int error;   /* errno of the first failure, which all later writes repeat; EINTR when a signal came */
};

/* All of it, or returns -1 and sets error. */
int cli_output_write(struct cli_output *output, const void *data, size_t len);

/* A stream whose bytes go there; fclose() ends it and leaves the descriptor open. NULL: out of memory. */
FILE *cli_output_stream(struct cli_output *output);

#endif
