/*
 * Runs in:   brood
 * Trusts:    its user
 * Blocks on: what its subcommands block on
 */
#include <stdio.h>
#include <string.h>

#include "brood_version.h"
#include "client/command.h"
#include "protocol/status.h"

static const char HELP[] = "Usage: brood COMMAND [options]\n"
			   "\n"
			   "  run       run Python in a fresh, locked process and show how it went\n"
			   "  status    what a running supervisor is doing\n"
			   "  help      this text; `brood COMMAND --help` tells more\n"
			   "\n"
			   "  brood run -c '6 * 7'\n"
			   "  brood run --wall 2s --input 'n=[1, 2, 3]' -c 'sum(n)'\n"
			   "  brood run script.py\n";

static int help(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	fputs(HELP, stdout);
	return 0;
}

static int version(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	puts("brood " BROOD_VERSION);
	return 0;
}

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} COMMANDS[] = {
	{"run", cli_run},   {"status", cli_status}, {"help", help},	       {"--help", help},
	{"-h", help},	    {"version", version},   {"--version", version},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(COMMANDS) / sizeof(COMMANDS[0]); i++) {
		if (strcmp(argv[1], COMMANDS[i].name) == 0)
			return COMMANDS[i].run(argc - 1, argv + 1);
	}
	if (argc > 1)
		cli_say("unknown command '%s'; try 'brood help'", argv[1]);
	else
		fputs(HELP, stderr);
	return BROOD_EXIT_USAGE;
}
