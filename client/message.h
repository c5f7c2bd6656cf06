/* What the command says about itself, on standard error. */
#ifndef BROOD_CLIENT_MESSAGE_H
#define BROOD_CLIENT_MESSAGE_H

#include <stdarg.h>

/*
 * "brood: …" and a newline. Always one line: control characters, which may come from a server or from code, become spaces. Longer
 * texts than 4,096 bytes are cut.
 */
void cli_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same, and then where to find help. Returns BROOD_EXIT_USAGE. `command` may be NULL. */
int cli_usage_error(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
