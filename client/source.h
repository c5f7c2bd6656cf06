/* The code to run: from the command line, a file or standard input. */
#ifndef BROOD_CLIENT_SOURCE_H
#define BROOD_CLIENT_SOURCE_H

#include <stddef.h>

#include "protocol/limits.h"

#define CLI_SOURCE_ERROR_MAX 512

struct cli_source {
	char *data; /* owned; NULL when nothing was read */
	size_t len;
	char name[BROOD_NAME_MAX + 1]; /* for tracebacks; UTF-8 */
};

/* `path` is a file, or "-" for standard input, read to its end. Returns 0, or -1 with a phrase for people in `error`. */
int cli_source_read(struct cli_source *out, const char *path, char error[CLI_SOURCE_ERROR_MAX]);

void cli_source_free(struct cli_source *source);

#endif
