/*
 * Runs in:   a new worker, before any byte of a request
 * Trusts:    the zygote that it was a moment ago
 * Blocks on: nothing
 *
 * What a worker gives up. Any step that fails ends the process, with a status that names the step: a worker that is not confined does not
 * exist.
 */
#include "zygote/worker/parts.h"

#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define DESCRIPTORS_MAX 256

/*
 * All dispositions are the default ones since the zygote's lock, and the mask is empty since the fork (fork.c). A write to a closed pipe is an
 * exception of Python's (BrokenPipeError), as in any Python.
 */
static void ignore_broken_pipes(void)
{
	const struct sigaction ignore = {.sa_handler = SIG_IGN};

	if (sigaction(SIGPIPE, &ignore, NULL) < 0)
		_exit(WRK_EXIT_SIGNALS);
}

static void follow_parent(int parent_pid)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent_pid)
		_exit(WRK_EXIT_PARENT);
}

static void limit(int resource, uint64_t soft, uint64_t hard)
{
	struct rlimit wanted = {soft, hard}, now;

	if (setrlimit(resource, &wanted) == 0)
		return;
	/* Refused because the hard limit is lower already, which serves as well. */
	if (getrlimit(resource, &now) == 0 && now.rlim_max <= hard) {
		wanted.rlim_max = now.rlim_max;
		wanted.rlim_cur = soft < now.rlim_max ? soft : now.rlim_max;
		if (setrlimit(resource, &wanted) == 0)
			return;
	}
	_exit(WRK_EXIT_LIMITS);
}

int wrk_limit_memory(const struct wrk_setup *setup, uint64_t bytes)
{
	uint64_t data = setup->base_data_bytes + bytes, as = setup->base_as_bytes + bytes + BROOD_AS_RESERVE;

	if (setrlimit(RLIMIT_DATA, &(struct rlimit){data, data}) < 0)
		return -1;
	return setrlimit(RLIMIT_AS, &(struct rlimit){as, as});
}

static void set_limits(const struct wrk_setup *setup)
{
	const uint64_t *v = setup->limits.v;
	struct timespec used = {0};
	uint64_t cpu_s;

	/* The supervisor keeps the exact limit; this one holds should the supervisor be late. Whole seconds, this process's own past counts. */
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	cpu_s = (uint64_t)used.tv_sec + (v[BROOD_LIMIT_CPU] + 999) / 1000 + 2;
	limit(RLIMIT_CPU, cpu_s, cpu_s + 1);
	if (wrk_limit_memory(setup, v[BROOD_LIMIT_MEMORY]) < 0)
		_exit(WRK_EXIT_LIMITS);
	limit(RLIMIT_CORE, 0, 0);
	limit(RLIMIT_FSIZE, 0, 0); /* of regular files, of which none can be written; pipes have no size */
	limit(RLIMIT_NOFILE, DESCRIPTORS_MAX, DESCRIPTORS_MAX);
	limit(RLIMIT_MEMLOCK, 0, 0);
	limit(RLIMIT_MSGQUEUE, 0, 0);
}

void wrk_confine(const struct wrk_setup *setup)
{
	ignore_broken_pipes();
	follow_parent(setup->parent_pid);
	set_limits(setup);
	/* Last: the filter forbids most of the above. */
	if (setup->filter && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, setup->filter) < 0)
		_exit(WRK_EXIT_FILTER);
}
