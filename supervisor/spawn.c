/*
 * Runs in:   broodd, and the child up to its exec
 * Trusts:    the zygote's path (configuration)
 * Blocks on: nothing
 *
 * The only fork of the supervisor, by clone3 so that the child is born in its namespaces and with a pidfd. Order:
 *
 *   1. The parent prepares all that the child needs (descriptors, text of the id maps): the child allocates nothing.
 *   2. clone3. All signals are blocked across it, so that no handler of libevent runs in the child.
 *   3. Child: dies with its parent; a session of its own, so no controlling terminal; id maps when it is in a new user
 *      namespace; descriptors 0 to 3, all others closed; signals as at birth; exec with an environment of our own.
 *
 * As root the namespaces belong to the initial user namespace and the zygote enters a user namespace of its own later. An ordinary user needs
 * a user namespace first: then the zygote is uid 0 in that one, which gives it what it needs to build its root.
 * In a place that forbids both, it starts without namespaces; the receipt shows that.
 */
#include "supervisor/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/fds.h"
#include "protocol/layers.h"

struct plan {
	uint64_t flags;
	uint32_t layers;
};

#define BIT(name) BROOD_LAYER_BIT((uint32_t)BROOD_LAYER_##name)
#define NAMESPACE_FLAGS (CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNS)
#define NAMESPACE_LAYERS (BIT(PID_NS) | BIT(NET_NS) | BIT(IPC_NS) | BIT(UTS_NS) | BIT(MOUNT_NS))

/* From most to least; the first that the kernel grants is taken. */
static const struct plan PLANS[] = {
	{NAMESPACE_FLAGS | CLONE_NEWCGROUP, NAMESPACE_LAYERS | BIT(CGROUP_NS)},
	{NAMESPACE_FLAGS, NAMESPACE_LAYERS},
	{NAMESPACE_FLAGS | CLONE_NEWUSER | CLONE_NEWCGROUP, NAMESPACE_LAYERS | BIT(USER_NS) | BIT(CGROUP_NS)},
	{NAMESPACE_FLAGS | CLONE_NEWUSER, NAMESPACE_LAYERS | BIT(USER_NS)},
	{0, 0},
};

struct child {
	const char *path;
	int null_fd, log_fd, control_fd;
	char uid_map[64], gid_map[64];
};

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = write(fd, text, strlen(text));
	close(fd);
	return n < 0 ? -1 : 0;
}

/* What went wrong before the exec reaches the operator by the log pipe. */
static _Noreturn void child_fail(const char *what)
{
	dprintf(STDERR_FILENO, "cannot start the zygote: %s: %s\n", what, strerror(errno));
	_exit(127);
}

static void place(int from, int to)
{
	/* The sources are all above the targets (see lift), so that none is overwritten before its turn. */
	if (dup2(from, to) < 0)
		child_fail("dup2");
}

static _Noreturn void child_main(const struct child *child, uint64_t flags)
{
	static char *const ENVIRONMENT[] = {
		/* All symbols are resolved once, in the zygote, and not in every worker anew. */
		"LD_BIND_NOW=1",
#ifdef BROOD_SANITIZED
		"ASAN_OPTIONS=detect_leaks=0",
#endif
		NULL};
	char *const argv[] = {"brood-zygote", NULL};
	sigset_t none;

	place(child->null_fd, 0);
	place(child->log_fd, 1);
	place(child->log_fd, 2);
	place(child->control_fd, BROOD_ZYG_FD_CONTROL);
	if (close_range(BROOD_ZYG_FD_COUNT, ~0U, 0) < 0)
		child_fail("close_range");
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		child_fail("prctl(PR_SET_PDEATHSIG)");
	setsid();
	if (flags & CLONE_NEWUSER) {
		/* The files below /proc/self are root's while a process is not dumpable; exec sets that anew. */
		prctl(PR_SET_DUMPABLE, 1);
		if (write_file("/proc/self/setgroups", "deny") < 0 ||
		    write_file("/proc/self/uid_map", child->uid_map) < 0 ||
		    write_file("/proc/self/gid_map", child->gid_map) < 0)
			child_fail("write the id maps of the user namespace under /proc/self");
	}
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execve(child->path, argv, ENVIRONMENT);
	child_fail(child->path);
}

static pid_t clone_child(const struct child *child, uint64_t flags, int *pidfd)
{
	struct clone_args args = {
		.flags = flags | CLONE_PIDFD, .pidfd = (uint64_t)(uintptr_t)pidfd, .exit_signal = SIGCHLD};
	sigset_t all, old;
	pid_t pid;
	int saved;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0)
		child_main(child, flags);
	saved = errno;
	sigprocmask(SIG_SETMASK, &old, NULL);
	errno = saved;
	return pid;
}

/* A copy of the descriptor above all those that the child is to have. */
static int lift(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, 16);
}

/* Errors that mean "not these namespaces here", as against "no process at all". */
static int refused(int error)
{
	return error == EPERM || error == EINVAL || error == ENOSPC || error == EUSERS || error == ENOSYS;
}

static int spawn(const struct child *child, struct sup_spawned *out)
{
	for (size_t i = 0; i < sizeof(PLANS) / sizeof(PLANS[0]); i++) {
		int pidfd = -1;
		pid_t pid = clone_child(child, PLANS[i].flags, &pidfd);

		if (pid > 0) {
			out->pid = pid;
			out->pidfd = pidfd;
			out->layers = PLANS[i].layers;
			return 0;
		}
		if (!refused(errno))
			return -1;
	}
	return -1;
}

int sup_spawn_zygote(const char *path, int control_fd, int log_fd, struct sup_spawned *out)
{
	struct child child = {.path = path, .null_fd = -1, .log_fd = -1, .control_fd = -1};
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	int result = -1, saved;

	snprintf(child.uid_map, sizeof(child.uid_map), "0 %u 1", (unsigned)geteuid());
	snprintf(child.gid_map, sizeof(child.gid_map), "0 %u 1", (unsigned)getegid());
	if (null_fd >= 0) {
		child.null_fd = lift(null_fd);
		child.log_fd = lift(log_fd);
		child.control_fd = lift(control_fd);
	}
	if (child.null_fd >= 0 && child.log_fd >= 0 && child.control_fd >= 0)
		result = spawn(&child, out);
	saved = errno;
	if (null_fd >= 0)
		close(null_fd);
	if (child.null_fd >= 0)
		close(child.null_fd);
	if (child.log_fd >= 0)
		close(child.log_fd);
	if (child.control_fd >= 0)
		close(child.control_fd);
	errno = saved;
	return result;
}
