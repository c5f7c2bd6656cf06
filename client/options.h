/* The command lines of `brood run` and `brood status`. */
#ifndef BROOD_CLIENT_OPTIONS_H
#define BROOD_CLIENT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <msgpack.h>

#include "protocol/limits.h"

#define CLI_INPUTS_MAX 1024

/* Strings belong to the command line or the environment, unless said otherwise. */
struct cli_options {
	const char *code;    /* -c; or NULL */
	const char *file;    /* FILE or "-"; or NULL */
	const char *profile; /* NULL: the server's default */
	const char *socket;  /* NULL: a private broodd */
	const char *config;  /* for the private broodd; or NULL */
	bool json;
	bool help; /* nothing else counts then */
	struct brood_limits limits;
	bool limit_given[BROOD_LIMIT_COUNT];
	msgpack_sbuffer inputs; /* packed pairs of name and value, one after another; owned */
	uint32_t inputs_count;
	const char *input_names[CLI_INPUTS_MAX]; /* "NAME=…": the name ends at the '=' */
};

/*
 * argv[0] is the command's own name. Returns 0; or says on standard error what is wrong and returns an exit status. The caller
 * frees `out` in either case.
 */
int cli_options_run(int argc, char **argv, struct cli_options *out);
int cli_options_status(int argc, char **argv, struct cli_options *out);

void cli_options_free(struct cli_options *options);

/* What `brood run --help` says about limits, from BROOD_LIMITS. */
void cli_options_print_limits(FILE *to);

#endif
