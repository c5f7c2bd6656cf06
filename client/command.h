/* The subcommands of `brood`. A new one is a file of its own and a row in command.c. */
#ifndef BROOD_CLIENT_COMMAND_H
#define BROOD_CLIENT_COMMAND_H

/* argv[0] is the subcommand's name. Returns the exit status. */
int cli_command_run(int argc, char **argv);
int cli_command_status(int argc, char **argv);

/* The whole command line. */
int cli_main(int argc, char **argv);

#endif
