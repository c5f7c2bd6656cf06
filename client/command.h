/* The subcommands of `brood`. Each gets what follows its own name (its name is argv[0]) and returns the exit status. */
#ifndef BROOD_CLIENT_COMMAND_H
#define BROOD_CLIENT_COMMAND_H

int cli_run(int argc, char **argv);
int cli_status(int argc, char **argv);

/* One line "brood: TEXT" on standard error. */
void cli_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
