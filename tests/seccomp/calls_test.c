/*
 * Runs in:   tests.
 * Trusts:    nothing.
 * Blocks on: its children, each of which makes one system call.
 *
 * Real calls under the real filters. Each probe is made by raw system call in a child of its own, once without a filter (the negative
 * control) and once under each program. A probe says what the programs must do: let it through, and then it ends as it does without
 * a filter, or refuse it with an errno. A refused probe that ends the same without the filter proves nothing and is counted apart; too
 * few that do prove something turn the test red.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "zygote/filter.h"

#define HIGH (UINT64_C(1) << 32)
/* Arguments that only the child, or the test at run time, can know. */
#define SELF UINT64_C(0xfeed000000000001)
#define SIBLING UINT64_C(0xfeed000000000002)
#define BUFFER UINT64_C(0xfeed000000000003)
#define SELF_HIGH UINT64_C(0xfeed000000000004)
#define PATH UINT64_C(0xfeed000000000005)
#define NOWHERE UINT64_C(8) /* an address where nothing is */
#define BAD_FD UINT64_C(0xffffffffffffffff)

enum verdict { LET, EPERM_, ENOSYS_ };

struct probe {
	const char *what;
	long number;
	enum verdict worker, zygote;
	uint64_t args[6];
};

/* clang-format off */
#define P(call, w, z, ...) \
	{ .what = #call "(" #__VA_ARGS__ ")", .number = SYS_##call, .worker = (w), .zygote = (z), .args = { __VA_ARGS__ } }
/* clang-format on */
#define THREAD_FLAGS UINT64_C(0x3d0f00)

/* Never here, as they would not come back or not alone: pause, exit, the thread's clone (a test of its own below). */
static const struct probe PROBES[] = {
	/* let through, by both */
	P(read, LET, LET, BAD_FD, NOWHERE, 1),
	P(write, LET, LET, BAD_FD, NOWHERE, 1),
	P(readv, LET, LET, BAD_FD, NOWHERE, 1),
	P(close, LET, LET, BAD_FD),
	P(openat, LET, LET, AT_FDCWD, PATH, O_RDONLY),
	P(newfstatat, LET, LET, AT_FDCWD, PATH, BUFFER, 0),
	P(statx, LET, LET, AT_FDCWD, PATH, 0, 0, BUFFER),
	P(faccessat2, LET, LET, AT_FDCWD, PATH, R_OK, 0),
	P(getcwd, LET, LET, BUFFER, 4096),
	P(getdents64, LET, LET, BAD_FD, BUFFER, 4096),
	P(getpid, LET, LET, 0),
	P(getuid, LET, LET, 0),
	P(gettid, LET, LET, 0),
	P(uname, LET, LET, BUFFER),
	P(sysinfo, LET, LET, BUFFER),
	P(getrandom, LET, LET, BUFFER, 8, 0),
	P(getrusage, LET, LET, RUSAGE_SELF, BUFFER),
	P(times, LET, LET, NOWHERE),
	P(sched_yield, LET, LET, 0),
	P(wait4, LET, LET, BAD_FD, 0, 0, 0),
	P(epoll_create1, LET, LET, 0),
	P(poll, LET, LET, 0, 0, 0),
	P(rt_sigaction, LET, LET, SIGUSR1, 0, BUFFER, 8),
	P(rt_sigtimedwait, LET, LET, NOWHERE, 0, 0, 3),
	P(sigaltstack, LET, LET, 0, BUFFER),
	P(set_robust_list, LET, LET, BUFFER, 3),
	P(brk, LET, LET, 0),
	P(munmap, LET, LET, 1, 1),
	P(mprotect, LET, LET, 1, 1, 1),
	P(mremap, LET, LET, 1, 1, 1, 0),

	/* conditions, both ways, high bits as wide as the kernel looks */
	P(mmap, LET, LET, 0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, BAD_FD, 0),
	P(mmap, EPERM_, EPERM_, 0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, BAD_FD, 0),
	P(mmap, EPERM_, EPERM_, 0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, BAD_FD, 0),
	P(mmap, EPERM_, EPERM_, 0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | HIGH, BAD_FD, 0),
	P(madvise, LET, LET, 0, 0, MADV_DONTNEED),
	P(madvise, EPERM_, EPERM_, 0, 0, MADV_MERGEABLE),
	P(madvise, EPERM_, EPERM_, 0, 0, MADV_PAGEOUT),
	P(fcntl, LET, LET, BAD_FD, F_GETFD),
	P(fcntl, LET, LET, BAD_FD, F_GETFD | HIGH),
	P(fcntl, EPERM_, EPERM_, BAD_FD, F_SETOWN, 1),
	P(fcntl, EPERM_, EPERM_, BAD_FD, F_SETLK, BUFFER),
	P(fcntl, EPERM_, EPERM_, BAD_FD, F_OFD_SETLK, BUFFER),
	P(fcntl, EPERM_, EPERM_, BAD_FD, F_SETLEASE, F_RDLCK),
	P(fcntl, EPERM_, EPERM_, BAD_FD, F_NOTIFY, 1),
	P(fcntl, EPERM_, EPERM_, BAD_FD, F_SETPIPE_SZ, 1048576),
	P(fcntl, EPERM_, EPERM_, BAD_FD, F_SETOWN | HIGH, 1),
	P(ioctl, LET, LET, BAD_FD, FIONREAD, BUFFER),
	P(ioctl, LET, LET, BAD_FD, TCGETS, BUFFER),
	P(ioctl, LET, LET, BAD_FD, TCGETS | HIGH, BUFFER),
	P(ioctl, EPERM_, EPERM_, BAD_FD, TIOCSTI, BUFFER),
	P(ioctl, EPERM_, EPERM_, BAD_FD, TIOCSTI | HIGH, BUFFER),
	P(ioctl, EPERM_, EPERM_, BAD_FD, TIOCLINUX, BUFFER),
	P(ioctl, EPERM_, EPERM_, BAD_FD, TIOCLINUX | HIGH, BUFFER),
	P(ioctl, EPERM_, EPERM_, BAD_FD, TIOCSCTTY, 0),
	P(ioctl, EPERM_, EPERM_, BAD_FD, FIOASYNC, BUFFER),
	P(ioctl, EPERM_, EPERM_, BAD_FD, TCSETS, BUFFER),
	P(pipe2, LET, LET, BUFFER, O_CLOEXEC),
	P(pipe2, EPERM_, EPERM_, BUFFER, O_EXCL), /* a notification queue */
	P(socketpair, LET, LET, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, BUFFER),
	P(socketpair, LET, LET, AF_UNIX | HIGH, SOCK_STREAM, 0, BUFFER),
	P(socketpair, EPERM_, EPERM_, AF_UNIX, SOCK_DGRAM, 0, BUFFER),
	P(socketpair, EPERM_, EPERM_, AF_TIPC, SOCK_STREAM, 0, BUFFER),
	P(sendto, LET, LET, BAD_FD, BUFFER, 1, MSG_NOSIGNAL, 0, 0),
	P(sendto, EPERM_, EPERM_, BAD_FD, BUFFER, 1, MSG_NOSIGNAL, BUFFER, 16),
	P(sendto, EPERM_, EPERM_, BAD_FD, BUFFER, 1, MSG_NOSIGNAL, HIGH, 16),
	P(sendto, EPERM_, EPERM_, BAD_FD, BUFFER, 1, MSG_OOB, 0, 0),
	P(recvfrom, LET, LET, BAD_FD, BUFFER, 1, 0, 0, 0),
	P(recvfrom, EPERM_, EPERM_, BAD_FD, BUFFER, 1, MSG_OOB, 0, 0),
	P(getsockopt, LET, LET, BAD_FD, SOL_SOCKET, SO_TYPE, BUFFER, BUFFER),
	P(getsockopt, EPERM_, EPERM_, BAD_FD, 6, 1, BUFFER, BUFFER),
	P(futex, LET, LET, BUFFER, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1),
	P(futex, LET, LET, BUFFER, FUTEX_WAKE_BITSET | HIGH, 1, 0, 0, 1),
	P(futex, EPERM_, EPERM_, BUFFER, FUTEX_LOCK_PI, 0, 0),
	P(futex, EPERM_, EPERM_, BUFFER, FUTEX_WAKE_OP, 0, 0, BUFFER, 0),
	P(clock_gettime, LET, LET, CLOCK_MONOTONIC, BUFFER),
	P(clock_gettime, EPERM_, EPERM_, 0xfffffffa & ~UINT64_C(4), BUFFER), /* CPU clock of another process */
	P(clock_gettime, LET, LET, 0xfffffffe, BUFFER),			     /* of a thread of our own */
	P(clock_nanosleep, LET, LET, CLOCK_MONOTONIC, 0, NOWHERE, 0),
	P(clock_nanosleep, EPERM_, EPERM_, 0xfffffffa, 0, NOWHERE, 0),
	P(prlimit64, LET, LET, 0, RLIMIT_NOFILE, 0, BUFFER),
	P(prlimit64, LET, LET, SELF, RLIMIT_NOFILE, 0, BUFFER),
	P(prlimit64, EPERM_, LET, 0, RLIMIT_NOFILE, NOWHERE, 0),
	P(prlimit64, EPERM_, LET, 0, RLIMIT_NOFILE, HIGH, 0),
	P(prlimit64, LET, LET, 0, RLIMIT_DATA, NOWHERE, 0),
	P(prlimit64, LET, LET, 0, RLIMIT_AS, NOWHERE, 0),
	P(prlimit64, EPERM_, LET, SELF, RLIMIT_DATA, NOWHERE, 0),
	P(prlimit64, EPERM_, LET, SIBLING, RLIMIT_AS, NOWHERE, 0),
	P(prlimit64, EPERM_, LET, SIBLING, RLIMIT_NOFILE, 0, BUFFER),
	P(kill, LET, LET, SELF, 0),
	P(kill, LET, LET, SELF_HIGH, 0),
	P(kill, EPERM_, LET, SIBLING, 0),
	P(kill, EPERM_, LET, 0, 0),
	P(tgkill, LET, LET, SELF, SELF, 0),
	P(tgkill, EPERM_, LET, SIBLING, SIBLING, 0),
	P(sched_getaffinity, LET, LET, 0, 128, BUFFER),
	P(sched_getaffinity, LET, LET, SELF, 128, BUFFER),
	P(sched_getaffinity, EPERM_, LET, SIBLING, 128, BUFFER),
	P(getpgid, LET, LET, SELF),
	P(getpgid, EPERM_, LET, SIBLING),
	P(getsid, EPERM_, LET, SIBLING),
	P(prctl, LET, LET, PR_GET_SECCOMP | HIGH, 0, 0, 0, 1),
	P(prctl, LET, LET, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0),
	P(prctl, EPERM_, EPERM_, PR_SET_PTRACER, 1),
	P(prctl, EPERM_, EPERM_, PR_SET_MM, 1),
	P(prctl, EPERM_, EPERM_, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NOWHERE),
	P(prctl, EPERM_, EPERM_, PR_SET_CHILD_SUBREAPER, 1),
	P(prctl, EPERM_, EPERM_, PR_SET_SECUREBITS, 0),
	P(prctl, EPERM_, LET, PR_SET_DUMPABLE, 7),
	P(prctl, EPERM_, LET, PR_SET_PDEATHSIG, 1000),
	P(prctl, EPERM_, LET, PR_SET_DUMPABLE | HIGH, 7),

	/* what only a zygote may */
	P(recvmsg, EPERM_, LET, BAD_FD, BUFFER, 0),
	P(sendmsg, EPERM_, LET, BAD_FD, BUFFER, 0),
	P(pidfd_open, EPERM_, LET, SELF, 0),
	P(setrlimit, EPERM_, LET, 1000, BUFFER),
	P(seccomp, EPERM_, LET, SECCOMP_SET_MODE_FILTER, 0, NOWHERE),
	P(seccomp, EPERM_, EPERM_, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, NOWHERE),
	P(seccomp, EPERM_, EPERM_, SECCOMP_GET_ACTION_AVAIL, 0, NOWHERE),
	P(clone, EPERM_, LET, CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID | SIGCHLD, 0, 0, BUFFER, 0),

	/* new processes, programs and namespaces */
	P(clone, EPERM_, EPERM_, SIGCHLD, 0, 0, 0, 0),
	P(clone, EPERM_, EPERM_, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0),
	P(clone, EPERM_, EPERM_, CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID | CLONE_PARENT | SIGCHLD, 0, 0, BUFFER, 0),
	P(clone, EPERM_, EPERM_, THREAD_FLAGS & ~(uint64_t)CLONE_SETTLS, NOWHERE, 0, 0, 0),
	P(clone3, ENOSYS_, ENOSYS_, NOWHERE, 1),
	P(fork, EPERM_, EPERM_, 0),
	P(execve, EPERM_, EPERM_, NOWHERE, 0, 0),
	P(execveat, EPERM_, EPERM_, BAD_FD, NOWHERE, 0, 0, 0),
	P(unshare, EPERM_, EPERM_, 0),
	P(unshare, EPERM_, EPERM_, HIGH),
	P(setns, EPERM_, EPERM_, BAD_FD, 0),
	P(setsid, EPERM_, EPERM_, 0),
	P(setpgid, EPERM_, EPERM_, 0, 0),

	/* other processes */
	P(ptrace, EPERM_, EPERM_, PTRACE_TRACEME, 0, 0, 0),
	P(process_vm_readv, EPERM_, EPERM_, SELF, 0, 0, 0, 0, 0),
	P(process_vm_writev, EPERM_, EPERM_, SELF, 0, 0, 0, 0, 0),
	P(pidfd_getfd, EPERM_, EPERM_, BAD_FD, 0, 0),
	P(pidfd_send_signal, EPERM_, EPERM_, BAD_FD, 0, 0, 0),
	P(kcmp, EPERM_, EPERM_, SELF, SELF, 0, 0, 0),
	P(tkill, EPERM_, EPERM_, SELF, 0),
	P(rt_sigqueueinfo, EPERM_, EPERM_, SELF, 0, NOWHERE),
	P(rt_tgsigqueueinfo, EPERM_, EPERM_, SELF, SELF, 0, NOWHERE),
	P(setpriority, EPERM_, EPERM_, 0, 0, 5),
	P(getpriority, EPERM_, EPERM_, 0, SIBLING),
	P(sched_setaffinity, EPERM_, EPERM_, 0, 0, NOWHERE),
	P(sched_setscheduler, EPERM_, EPERM_, 0, 0, NOWHERE),
	P(ioprio_set, EPERM_, EPERM_, 1, 0, 0),
	P(get_robust_list, EPERM_, EPERM_, 0, BUFFER, BUFFER),
	P(process_madvise, EPERM_, EPERM_, BAD_FD, 0, 0, 0, 0),
	P(capget, EPERM_, EPERM_, NOWHERE, 0),

	/* sockets and shared kernel objects */
	P(socket, EPERM_, EPERM_, AF_UNIX, SOCK_STREAM, 0),
	P(socket, EPERM_, EPERM_, AF_INET, SOCK_STREAM, 0),
	P(socket, EPERM_, EPERM_, AF_ALG, SOCK_SEQPACKET, 0),
	P(socket, EPERM_, EPERM_, AF_NETLINK, SOCK_RAW, 0),
	P(socket, EPERM_, EPERM_, AF_VSOCK, SOCK_STREAM, 0),
	P(connect, EPERM_, EPERM_, BAD_FD, BUFFER, 16),
	P(bind, EPERM_, EPERM_, BAD_FD, BUFFER, 16),
	P(listen, EPERM_, EPERM_, BAD_FD, 1),
	P(accept4, EPERM_, EPERM_, BAD_FD, 0, 0, 0),
	P(setsockopt, EPERM_, EPERM_, BAD_FD, SOL_SOCKET, SO_SNDBUF, BUFFER, 4),
	P(sendmmsg, EPERM_, EPERM_, BAD_FD, BUFFER, 0, 0),
	P(recvmmsg, EPERM_, EPERM_, BAD_FD, BUFFER, 0, 0, 0),
	P(shmget, EPERM_, EPERM_, 0, 4096, 0600),
	P(shmat, EPERM_, EPERM_, BAD_FD, 0, 0),
	P(semget, EPERM_, EPERM_, 0, 1, 0600),
	P(msgget, EPERM_, EPERM_, 0, 0600),
	P(mq_open, EPERM_, EPERM_, NOWHERE, 0, 0, 0),
	P(memfd_create, EPERM_, EPERM_, NOWHERE, 0),
	P(keyctl, EPERM_, EPERM_, 0, 0xfffffffd, 0),
	P(add_key, EPERM_, EPERM_, NOWHERE, NOWHERE, 0, 0, 0),
	P(request_key, EPERM_, EPERM_, NOWHERE, NOWHERE, 0, 0),
	P(flock, EPERM_, EPERM_, BAD_FD, LOCK_SH),
	P(inotify_init1, EPERM_, EPERM_, 0),
	P(fanotify_init, EPERM_, EPERM_, 0, 0),

	/* wide or risky parts of the kernel */
	P(bpf, EPERM_, EPERM_, 0, NOWHERE, 8),
	P(perf_event_open, EPERM_, EPERM_, NOWHERE, 0, 0, BAD_FD, 0),
	P(userfaultfd, EPERM_, EPERM_, UINT64_C(1) << 20),
	P(io_uring_setup, ENOSYS_, ENOSYS_, 1, NOWHERE),
	P(io_uring_enter, EPERM_, EPERM_, BAD_FD, 0, 0, 0, 0, 0),
	P(io_uring_register, EPERM_, EPERM_, BAD_FD, 0, 0, 0),
	P(io_setup, EPERM_, EPERM_, 1, NOWHERE),
	P(splice, EPERM_, EPERM_, BAD_FD, 0, BAD_FD, 0, 1, 0),
	P(vmsplice, EPERM_, EPERM_, BAD_FD, BUFFER, 0, 0),
	P(tee, EPERM_, EPERM_, BAD_FD, BAD_FD, 1, 0),
	P(personality, EPERM_, EPERM_, 0xffffffff),
#ifdef SYS_modify_ldt
	P(modify_ldt, EPERM_, EPERM_, 0, BUFFER, 8),
#endif
	P(mount, EPERM_, EPERM_, NOWHERE, NOWHERE, 0, 0, 0),
	P(umount2, EPERM_, EPERM_, NOWHERE, 0),
	P(pivot_root, EPERM_, EPERM_, NOWHERE, NOWHERE),
	P(chroot, EPERM_, EPERM_, NOWHERE),
	P(open_tree, EPERM_, EPERM_, BAD_FD, NOWHERE, 0),
	P(fsopen, EPERM_, EPERM_, NOWHERE, 0),
	P(mount_setattr, EPERM_, EPERM_, BAD_FD, NOWHERE, 0, 0, 0),
	P(open_by_handle_at, EPERM_, EPERM_, BAD_FD, NOWHERE, 0),
	P(mlock, EPERM_, EPERM_, BUFFER, 1),
	P(mlockall, EPERM_, EPERM_, 1),
	P(mincore, EPERM_, EPERM_, BUFFER, 1, BUFFER),
	P(setuid, EPERM_, EPERM_, SELF),
	P(capset, EPERM_, EPERM_, NOWHERE, 0),
	P(signalfd4, EPERM_, EPERM_, BAD_FD, BUFFER, 8, 0),
	P(timer_create, EPERM_, EPERM_, 0, 0, BUFFER),
	P(membarrier, ENOSYS_, ENOSYS_, 0, 0, 0),
	P(openat2, ENOSYS_, ENOSYS_, BAD_FD, NOWHERE, 0, 0),
	P(copy_file_range, ENOSYS_, ENOSYS_, BAD_FD, 0, BAD_FD, 0, 1, 0),
	P(epoll_pwait2, ENOSYS_, ENOSYS_, BAD_FD, BUFFER, 1, 0, 0, 0),
	P(get_mempolicy, ENOSYS_, ENOSYS_, 0, 0, 0, 0, 0),

	/* changing files: refused although the root is read-only */
	P(mkdir, EPERM_, EPERM_, NOWHERE, 0700),
	P(unlink, EPERM_, EPERM_, NOWHERE),
	P(rename, EPERM_, EPERM_, NOWHERE, NOWHERE),
	P(symlink, EPERM_, EPERM_, NOWHERE, NOWHERE),
	P(link, EPERM_, EPERM_, NOWHERE, NOWHERE),
	P(mknodat, EPERM_, EPERM_, BAD_FD, NOWHERE, 0, 0),
	P(chmod, EPERM_, EPERM_, NOWHERE, 0),
	P(fchmod, EPERM_, EPERM_, BAD_FD, 0),
	P(chown, EPERM_, EPERM_, NOWHERE, 0, 0),
	P(utimensat, EPERM_, EPERM_, BAD_FD, NOWHERE, 0, 0),
	P(truncate, EPERM_, EPERM_, NOWHERE, 0),
	P(setxattr, EPERM_, EPERM_, NOWHERE, NOWHERE, 0, 0, 0),
	P(sync, EPERM_, EPERM_, 0),
	P(fsync, EPERM_, EPERM_, BAD_FD),
};

/* Under the programs for a zygote that sees the host's files: reading only. */
static const struct probe HOST_ROOT_PROBES[] = {
	P(openat, LET, LET, AT_FDCWD, PATH, O_RDONLY | O_CLOEXEC),
	P(openat, LET, LET, AT_FDCWD, PATH, O_RDONLY | HIGH),
	P(openat, EPERM_, EPERM_, AT_FDCWD, PATH, O_WRONLY),
	P(openat, EPERM_, EPERM_, AT_FDCWD, PATH, O_RDWR | HIGH),
	P(openat, EPERM_, EPERM_, AT_FDCWD, PATH, O_RDONLY | O_CREAT, 0600),
	P(openat, EPERM_, EPERM_, AT_FDCWD, NOWHERE, O_RDONLY | O_TRUNC),
	P(openat, EPERM_, EPERM_, AT_FDCWD, PATH, O_ACCMODE),
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define KILLED_BASE 100000 /* outcome of a child that a signal ended: this plus the signal */

struct result {
	bool done;
	int outcome; /* 0, or the errno */
};

static struct result *shared;
static char *buffer;
static unsigned checks, failures;

static void check(bool good, const char *who, const char *what, int outcome, int expected)
{
	checks++;
	if (good)
		return;
	failures++;
	printf("FAIL %s: %s: outcome %d, expected %d\n", who, what, outcome, expected);
}

static uint64_t real_argument(uint64_t argument)
{
	if (argument == SELF)
		return (uint64_t)getpid();
	if (argument == SELF_HIGH)
		return (uint64_t)getpid() | HIGH;
	if (argument == SIBLING)
		return (uint64_t)getppid();
	if (argument == BUFFER)
		return (uint64_t)(uintptr_t)buffer;
	if (argument == PATH)
		return (uint64_t)(uintptr_t) "/dev/null";
	return argument;
}

_Noreturn static void child(const struct probe *probe, struct zyg_filter *filter)
{
	uint64_t a[6];
	pid_t self = getpid();
	long got;

	for (int i = 0; i < 6; i++)
		a[i] = real_argument(probe->args[i]);
	if (filter) {
		zyg_filter_set_self(filter, self);
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || zyg_filter_load(&filter->prog) < 0)
			_exit(3);
	}
	got = syscall(probe->number, a[0], a[1], a[2], a[3], a[4], a[5]);
	/* Some probes fork when they are let through. */
	if (syscall(SYS_getpid) != self)
		_exit(0);
	*shared = (struct result){.done = true, .outcome = got == -1 ? errno : 0};
	_exit(0);
}

/* The outcome of one probe in a fresh child: 0, an errno, or KILLED_BASE plus a signal. */
static int run(const struct probe *probe, struct zyg_filter *filter)
{
	int status;
	pid_t pid;

	*shared = (struct result){.done = false};
	memset(buffer, 0, 4096);
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		child(probe, filter);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	if (WIFSIGNALED(status))
		return KILLED_BASE + WTERMSIG(status);
	return shared->done ? shared->outcome : -1;
}

static int expected_of(enum verdict verdict, int bare)
{
	switch (verdict) {
	case LET:
		return bare;
	case EPERM_:
		return EPERM;
	case ENOSYS_:
		return ENOSYS;
	}
	return -1;
}

/* Runs a table under both programs. Returns how many refusals the bare run tells apart. */
static unsigned run_table(const struct probe *probes, size_t count, struct zyg_filter *worker,
			  struct zyg_filter *zygote)
{
	unsigned decisive = 0;

	for (size_t i = 0; i < count; i++) {
		const struct probe *p = &probes[i];
		int bare = run(p, NULL), got;

		check(bare >= 0, "without a filter", p->what, bare, 0);
		got = run(p, worker);
		check(got == expected_of(p->worker, bare), "worker", p->what, got, expected_of(p->worker, bare));
		decisive += p->worker != LET && bare != got;
		got = run(p, zygote);
		check(got == expected_of(p->zygote, bare), "zygote", p->what, got, expected_of(p->zygote, bare));
		/* What is let through must not look like a refusal, or the probe says nothing. */
		check(p->worker != LET || (bare != EPERM && bare != ENOSYS), "without a filter", p->what, bare, 0);
	}
	return decisive;
}

static void *thread(void *seen)
{
	*(int *)seen = prctl(PR_GET_SECCOMP, 0, 0, 0, 0);
	return NULL;
}

/* A thread is allowed, clone3 having been refused, and is under the filter itself. */
static int try_thread(void)
{
	pthread_t id;
	int seen = -1;

	if (pthread_create(&id, NULL, thread, &seen) != 0 || pthread_join(id, NULL) != 0)
		return 1;
	return seen == SECCOMP_MODE_FILTER ? 0 : 1;
}

/* abort() must end a process as it does anywhere: its signal goes to itself. */
static int try_abort(void)
{
	abort();
}

#ifdef __x86_64__
static int try_x32(void)
{
	syscall(0x40000000 | SYS_getpid);
	return 0;
}
#endif

static int in_child(int (*body)(void), struct zyg_filter *filter)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		zyg_filter_set_self(filter, getpid());
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || zyg_filter_load(&filter->prog) < 0)
			_exit(3);
		_exit(body());
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFSIGNALED(status) ? KILLED_BASE + WTERMSIG(status) : WEXITSTATUS(status);
}

static void run_bodies(const char *who, struct zyg_filter *filter)
{
	int got = in_child(try_thread, filter);

	check(got == 0, who, "pthread_create", got, 0);
	got = in_child(try_abort, filter);
	check(got == KILLED_BASE + SIGABRT, who, "abort", got, KILLED_BASE + SIGABRT);
#ifdef __x86_64__
	got = in_child(try_x32, filter);
	check(got == KILLED_BASE + SIGSYS, who, "an x32 call", got, KILLED_BASE + SIGSYS);
#endif
}

static void build(enum zyg_filter_kind kind, bool own_root, struct zyg_filter *out)
{
	int error = zyg_filter_build(kind, own_root, out);

	if (!error)
		return;
	printf("FAIL a filter cannot be built: %s\n", strerror(-error));
	exit(1);
}

int main(void)
{
	struct rlimit no_core = {0, 0};
	struct zyg_filter worker, zygote, host_worker, host_zygote;
	unsigned decisive, refused = 0;

#ifdef BROOD_SANITIZED
	printf("SKIP: a sanitizer makes calls of its own that the filters refuse\n");
	return 77;
#endif
	setrlimit(RLIMIT_CORE, &no_core);
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	buffer = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED || buffer == MAP_FAILED)
		return 1;
	build(ZYG_FILTER_WORKER, true, &worker);
	build(ZYG_FILTER_ZYGOTE, true, &zygote);
	build(ZYG_FILTER_WORKER, false, &host_worker);
	build(ZYG_FILTER_ZYGOTE, false, &host_zygote);
	decisive = run_table(PROBES, COUNT(PROBES), &worker, &zygote);
	run_table(HOST_ROOT_PROBES, COUNT(HOST_ROOT_PROBES), &host_worker, &host_zygote);
	run_bodies("worker", &worker);
	run_bodies("zygote", &zygote);
	for (size_t i = 0; i < COUNT(PROBES); i++)
		refused += PROBES[i].worker != LET;
	/* Without privileges the kernel itself answers EPERM to some. */
	check(decisive * 3 >= refused * 2, "control", "refusals that differ without the filter", (int)decisive,
	      (int)refused);
	zyg_filter_free(&worker);
	zyg_filter_free(&zygote);
	zyg_filter_free(&host_worker);
	zyg_filter_free(&host_zygote);
	printf("%zu probes, %u refused by the worker's filter, %u of these differ without it; %u checks, %u failures\n",
	       COUNT(PROBES) + COUNT(HOST_ROOT_PROBES), refused, decisive, checks, failures);
	return failures ? 1 : 0;
}
