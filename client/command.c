/*
 * Runs in:   brood
 * Trusts:    its user
 * Blocks on: what the subcommand blocks on
 */
#include "client/command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "brood_version.h"
#include "client/message.h"
#include "protocol/status.h"

static int command_help(int argc, char **argv);
static int command_version(int argc, char **argv);

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *summary; /* NULL: not listed */
} COMMANDS[] = {
	{"run", cli_command_run, "run Python code in a fresh, locked process"},
	{"status", cli_command_status, "show what a running broodd does"},
	{"help", command_help, "show this, or the help of a command"},
	{"version", command_version, NULL},
	{"--help", command_help, NULL},
	{"-h", command_help, NULL},
	{"--version", command_version, NULL},
};

#define COMMANDS_COUNT (sizeof(COMMANDS) / sizeof(COMMANDS[0]))

static const struct command *find(const char *name)
{
	for (size_t i = 0; i < COMMANDS_COUNT; i++) {
		if (strcmp(COMMANDS[i].name, name) == 0)
			return &COMMANDS[i];
	}
	return NULL;
}

static void print_help(FILE *to)
{
	fputs("Usage: brood COMMAND [options]\n\nRuns untrusted Python in fresh, locked, pre-forked processes.\n\n",
	      to);
	for (size_t i = 0; i < COMMANDS_COUNT; i++) {
		if (COMMANDS[i].summary)
			fprintf(to, "  %-10s %s\n", COMMANDS[i].name, COMMANDS[i].summary);
	}
	fputs("\n'brood COMMAND --help' shows its options; 'brood --version' the version. See also brood(1).\n", to);
}

static int command_help(int argc, char **argv)
{
	static char HELP[] = "--help";
	const struct command *command = argc > 1 ? find(argv[1]) : NULL;
	char *asked[] = {argc > 1 ? argv[1] : NULL, HELP, NULL};

	if (argc > 2)
		return cli_usage_error(NULL, "unexpected argument '%s'", argv[2]);
	if (argc > 1 && !command)
		return cli_usage_error(NULL, "unknown command '%s'", argv[1]);
	if (command && command->summary && command->run != command_help)
		return command->run(2, asked);
	print_help(stdout);
	return 0;
}

static int command_version(int argc, char **argv)
{
	if (argc > 1)
		return cli_usage_error(NULL, "unexpected argument '%s'", argv[1]);
	puts("brood " BROOD_VERSION);
	return 0;
}

int cli_main(int argc, char **argv)
{
	const struct command *command = argc > 1 ? find(argv[1]) : NULL;
	int result;

	if (argc < 2) {
		print_help(stderr);
		return BROOD_EXIT_USAGE;
	}
	if (!command)
		return cli_usage_error(NULL, "unknown command '%s'", argv[1]);
	result = command->run(argc - 1, argv + 1);
	/* Help and versions go through stdio; that a disk is full shows only now. */
	if (fflush(stdout) == 0 || result != 0)
		return result;
	cli_complain("cannot write to standard output: %s", strerror(errno));
	return BROOD_EXIT_FAILED;
}
