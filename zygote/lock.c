/*
 * Runs in:   brood-zygote, after the preload.
 * Trusts:    nothing that the preload has left behind.
 * Blocks on: nothing.
 *
 * Makes sure that the process is what its workers shall be copies of: one task, no descriptors but its own, default signal
 * dispositions, bounded; and then puts the filter on. From here on no Python code runs in this process but the fork hooks of
 * preloaded modules.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "protocol/fds.h"
#include "zygote/image.h"
#include "zygote/proc.h"
#include "zygote/text.h"
#include "zygote/zygote.h"

#define DESCRIPTORS_MAX 1024
/* A backstop for all workers together; each worker's own limits are far tighter. */
#define TASKS_PER_WORKER 64
#define TASKS_SPARE 64

static int check_one_task(struct zyg *z)
{
	int tasks = zyg_proc_tasks(z->proc);

	if (tasks == 1)
		return 0;
	if (tasks < 0)
		return zyg_fail(z, -tasks, "cannot count the tasks of this process: %s", strerror(-tasks));
	return zyg_fail(z, 0,
			"profile '%s': %d tasks exist after the preload, and threads do not survive a fork; remove the "
			"module that "
			"starts them from `preload`",
			z->start.profile, tasks);
}

static int measure(struct zyg *z)
{
	int error = zyg_proc_status(z->proc, "VmData", &z->setup.base_data_bytes);

	if (!error)
		error = zyg_proc_status(z->proc, "VmSize", &z->setup.base_as_bytes);
	if (error)
		return zyg_fail(z, -error, "cannot read the memory of this process from /proc: %s", strerror(-error));
	return 0;
}

/* Everything that the preload opened, and the way into the host's /proc. */
static int close_descriptors(struct zyg *z)
{
	sigset_t child;

	z->proc = z->pagemap = z->memory = -1;
	if (close_range(BROOD_ZYG_FD_COUNT, ~0U, 0) < 0)
		return zyg_fail(z, errno, "cannot close descriptors: %s; Brood needs Linux 5.9", strerror(errno));
	for (int fd = 0; fd < BROOD_ZYG_FD_COUNT; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			return zyg_fail(z, errno, "descriptor %d is closed; a preloaded module must have done it", fd);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	if (sigprocmask(SIG_SETMASK, &child, NULL) < 0)
		return zyg_fail(z, errno, "cannot block SIGCHLD: %s", strerror(errno));
	z->signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	if (z->signals < 0)
		return zyg_fail(z, errno, "cannot watch for SIGCHLD: %s", strerror(errno));
	return 0;
}

/* Handlers and the alternative stack of the preload (faulthandler) are not what a worker starts with. */
static void reset_signals(void)
{
	const stack_t none = {.ss_flags = SS_DISABLE};
	const struct itimerval never = {.it_value = {.tv_sec = 0}};

	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	sigaltstack(&none, NULL);
	setitimer(ITIMER_REAL, &never, NULL);
	setitimer(ITIMER_VIRTUAL, &never, NULL);
	setitimer(ITIMER_PROF, &never, NULL);
}

/* Lowers a limit, soft and hard, and reads it back. */
static int limit(struct zyg *z, int resource, const char *name, rlim_t most)
{
	struct rlimit now, wanted;

	if (getrlimit(resource, &now) < 0)
		return zyg_fail(z, errno, "cannot read %s: %s", name, strerror(errno));
	wanted.rlim_max = now.rlim_max < most ? now.rlim_max : most;
	wanted.rlim_cur = wanted.rlim_max;
	if (setrlimit(resource, &wanted) < 0)
		return zyg_fail(z, errno, "cannot lower %s: %s", name, strerror(errno));
	if (getrlimit(resource, &now) < 0 || now.rlim_max > most || now.rlim_cur > most)
		return zyg_fail(z, 0, "%s has not become lower", name);
	return 0;
}

static int set_limits(struct zyg *z)
{
	rlim_t tasks = (rlim_t)z->start.workers_max * TASKS_PER_WORKER + TASKS_SPARE;

	if (limit(z, RLIMIT_CORE, "RLIMIT_CORE", 0) < 0 ||
	    limit(z, RLIMIT_NOFILE, "RLIMIT_NOFILE", DESCRIPTORS_MAX) < 0 ||
	    limit(z, RLIMIT_MEMLOCK, "RLIMIT_MEMLOCK", 0) < 0 || limit(z, RLIMIT_MSGQUEUE, "RLIMIT_MSGQUEUE", 0) < 0 ||
	    limit(z, RLIMIT_RTPRIO, "RLIMIT_RTPRIO", 0) < 0 || limit(z, RLIMIT_NICE, "RLIMIT_NICE", 0) < 0)
		return -1;
	/* Counted within our user namespace. Without one it would count what else its user runs, and be no measure of ours. */
	if ((z->layers & BROOD_LAYER_BIT(BROOD_LAYER_USER_NS)) && limit(z, RLIMIT_NPROC, "RLIMIT_NPROC", tasks) < 0)
		return -1;
	z->layers |= BROOD_LAYER_BIT(BROOD_LAYER_RLIMITS);
	return 0;
}

/* The programs are built before the zygote's is on: building needs calls that a zygote no longer has. */
static int build_filters(struct zyg *z, struct zyg_filter *own)
{
	bool own_root = z->layers & BROOD_LAYER_BIT(BROOD_LAYER_ROOT);
	int error = zyg_filter_build(ZYG_FILTER_WORKER, own_root, &z->worker_filter);

	if (!error)
		error = zyg_filter_build(ZYG_FILTER_ZYGOTE, own_root, own);
	if (error)
		return zyg_fail(z, -error, "cannot build the seccomp filters: %s", strerror(-error));
	z->setup.filter = &z->worker_filter.prog;
	return 0;
}

static int load_filter(struct zyg *z, struct zyg_filter *own)
{
	int error;

	error = zyg_filter_load(&own->prog);
	zyg_filter_free(own);
	if (error)
		return zyg_fail(z, -error,
				"cannot load the seccomp filter: %s; Brood needs a kernel with seccomp filters",
				strerror(-error));
	/* A probe besides the kernel's word: without the filter, getting the personality always succeeds. */
	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != SECCOMP_MODE_FILTER || syscall(SYS_personality, 0xffffffffUL) != -1 ||
	    errno != EPERM)
		return zyg_fail(z, 0, "the seccomp filter was loaded but does not hold");
	z->layers |= BROOD_LAYER_BIT(BROOD_LAYER_SECCOMP);
	return 0;
}

int zyg_step_lock(struct zyg *z)
{
	struct zyg_filter own;
	int error = zyg_table_init(&z->workers, z->start.workers_max);

	if (error)
		return zyg_fail(z, -error, "cannot make room for %u workers: %s", z->start.workers_max,
				strerror(-error));
	reset_signals();
	if (check_one_task(z) < 0 || (z->start.filter && build_filters(z, &own) < 0))
		return -1;
	zyg_text_inherit(z);
	/* The image is complete now: nothing but what forks is yet to be allocated. */
	zyg_image_pack();
	if (measure(z) < 0)
		return -1;
	z->setup.limits = z->start.limits;
	z->setup.parent_pid = getpid();
	if (zyg_image_learn(z) < 0 || close_descriptors(z) < 0 || set_limits(z) < 0)
		return -1;
	return z->start.filter ? load_filter(z, &own) : 0;
}
