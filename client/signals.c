/*
 * Runs in:   brood
 * Trusts:    nobody is asked
 * Blocks on: nothing
 */
#include "client/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#include "protocol/status.h"

static int wake_fd = -1;
static volatile sig_atomic_t count;
static volatile sig_atomic_t along;

static void on_signal(int number)
{
	int saved = errno;

	(void)number;
	if (count > 0) {
		if (along > 0)
			kill((pid_t)along, SIGKILL);
		_exit(BROOD_EXIT_FAILED);
	}
	count = 1;
	/* The pipe is empty, as only the first signal writes: this cannot fail. */
	if (write(wake_fd, "", 1) < 0)
		_exit(BROOD_EXIT_FAILED);
	errno = saved;
}

int cli_signals_install(void)
{
	static const int CAUGHT[] = {SIGINT, SIGTERM};
	struct sigaction action = {.sa_handler = on_signal}, old;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return -1;
	wake_fd = fds[1];
	sigemptyset(&action.sa_mask);
	sigaddset(&action.sa_mask, SIGINT);
	sigaddset(&action.sa_mask, SIGTERM);
	for (size_t i = 0; i < sizeof(CAUGHT) / sizeof(CAUGHT[0]); i++) {
		/* A shell that starts us in the background, or nohup, has reasons to ignore them. */
		if (sigaction(CAUGHT[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaction(CAUGHT[i], &action, NULL);
	}
	signal(SIGPIPE, SIG_IGN);
	/* Where it is ignored, children vanish without being waited for, and their pid may be someone else's. */
	signal(SIGCHLD, SIG_DFL);
	return fds[0];
}

void cli_signals_drain(int fd)
{
	char byte;

	if (read(fd, &byte, 1) < 0)
		return;
}

void cli_signals_take_along(pid_t pid)
{
	along = pid;
}
