/* SIGINT and SIGTERM as a descriptor to poll. */
#ifndef BROOD_CLIENT_SIGNALS_H
#define BROOD_CLIENT_SIGNALS_H

#include <sys/types.h>

/*
 * From now on SIGINT and SIGTERM (where they were not ignored) make the returned descriptor readable, and interrupt system calls; the
 * second one ends this process at once. SIGPIPE is ignored, SIGCHLD has its default. Returns -1 with errno.
 */
int cli_signals_install(void);

/* Takes note of a signal, so that the descriptor is not readable any more. */
void cli_signals_drain(int fd);

/* The process that the second signal takes along; 0: none. It must not have been waited for. */
void cli_signals_take_along(pid_t pid);

#endif
