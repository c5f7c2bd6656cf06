/*
 * Runs in:   brood-zygote, and for a moment in its new child.
 * Trusts:    nothing; there is no input.
 * Blocks on: nothing.
 *
 * The only fork() below the supervisor. The process has one thread, no event loop and no handler, so the child may do whatever the parent
 * might. The order of steps:
 *
 *   parent  1. Python takes its locks and runs the modules' hooks (PyOS_BeforeFork), so that the child finds them free.
 *           2. All signals are blocked: none can arrive between the fork and the state that the child declares.
 *           3. fork
 *           4. the former mask, Python's locks (PyOS_AfterFork_Parent).
 *   child   4. The four pipe ends take their places, over the zygote's log and control socket; all else is closed.
 *           5. Its own pid goes into its filter.
 *           6. The signal mask becomes empty; the dispositions are the default ones since the lock.
 *           7. wrk_main, which takes over Python's locks (PyOS_AfterFork_Child) and everything else.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "zygote/fork.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "protocol/status.h"
#include "zygote/zygote.h"

/* The sources are above the targets, so no move runs over a later source. Moving drops close-on-exec. */
static int place_descriptors(const int fds[BROOD_FORK_FDS])
{
	static const int PLACES[BROOD_FORK_FDS] = {
		[BROOD_FORK_STDOUT] = BROOD_WRK_FD_STDOUT,
		[BROOD_FORK_STDERR] = BROOD_WRK_FD_STDERR,
		[BROOD_FORK_REQUEST] = BROOD_WRK_FD_REQUEST,
		[BROOD_FORK_ANSWER] = BROOD_WRK_FD_ANSWER,
	};

	for (int i = 0; i < BROOD_FORK_FDS; i++)
		if (dup3(fds[i], PLACES[i], 0) < 0)
			return -errno;
	return close_range(BROOD_WRK_FD_COUNT, ~0U, 0) < 0 ? -errno : 0;
}

_Noreturn static void become_worker(struct zyg *z, const int fds[BROOD_FORK_FDS], bool warm)
{
	sigset_t none;

	if (place_descriptors(fds) < 0)
		_exit(BROOD_EXIT_FAILED);
	zyg_filter_set_self(&z->worker_filter, getpid());
	sigemptyset(&none);
	if (sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		_exit(BROOD_EXIT_FAILED);
	wrk_main(&z->setup, warm);
}

pid_t zyg_fork(struct zyg *z, const int fds[BROOD_FORK_FDS], bool warm)
{
	sigset_t all, before;
	pid_t pid;
	int error;

	for (int i = 0; i < BROOD_FORK_FDS; i++)
		if (fds[i] < BROOD_WRK_FD_COUNT)
			return -EBADF;
	PyOS_BeforeFork();
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	pid = fork();
	error = errno;
	if (pid == 0)
		become_worker(z, fds, warm);
	sigprocmask(SIG_SETMASK, &before, NULL);
	PyOS_AfterFork_Parent();
	return pid < 0 ? -error : pid;
}
