/*
 * Runs in:   brood-zygote, before its lock (data only).
 * Trusts:    nothing; there is no input.
 * Blocks on: nothing.
 *
 * Which system calls a worker may make, and which its zygote besides. Whatever is not in a table fails with EPERM; a call
 * of another architecture or of x32 kills the process. One line per rule, with the reason why it is needed.
 *
 * A condition is (argument & mask) == value, and the mask says how wide the kernel looks. Where the kernel takes an `int`
 * it ignores bits 32 to 63, and so do we (the _32 forms): comparing them too would let nobody in, but a libc that leaves rubbish
 * there would break. Where the kernel takes a `long` or a pointer, all 64 bits are compared (the _64 forms): a pointer of
 * 0x100000000 is not NULL.
 *
 * The zygote's program allows what the worker's does, because both are on in a worker and only what both allow is allowed.
 */
#include "zygote/filter_table.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#define PR_GET_MDWE 66
#endif
#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

/* One line per rule, its reason in a column of its own: the formatter would break them. */
/* clang-format off */
#define INT_MASK UINT64_C(0xffffffff)
#define EQ_32(n, v) { .argument = (n), .mask = INT_MASK, .value = (uint64_t)(v) & INT_MASK }
#define EQ_64(n, v) { .argument = (n), .mask = UINT64_MAX, .value = (uint64_t)(v) }
#define ZERO_64(n, bits) { .argument = (n), .mask = (uint64_t)(bits), .value = 0 }
/* No bits but these, in an int. */
#define ONLY_32(n, bits) { .argument = (n), .mask = INT_MASK & ~(uint64_t)(bits), .value = 0 }
/* This value, whatever these bits say, in an int. */
#define EQ_BUT_32(n, v, bits) { .argument = (n), .mask = INT_MASK & ~(uint64_t)(bits), .value = (uint64_t)(v) }
#define BITS_32(n, m, v) { .argument = (n), .mask = (uint64_t)(m), .value = (uint64_t)(v) }

#define RULE(call, w, e, n, ...) \
	{ .name = #call, .number = SCMP_SYS(call), .error = (e), .when = (w), .count = (n), .condition = { __VA_ARGS__ } }
#define ALLOW(call) { .name = #call, .number = SCMP_SYS(call), .error = 0, .when = ZYG_RULE_ALWAYS, .count = 0 }
#define ALLOW_1(call, a) RULE(call, ZYG_RULE_ALWAYS, 0, 1, a)
#define ALLOW_2(call, a, b) RULE(call, ZYG_RULE_ALWAYS, 0, 2, a, b)
#define ALLOW_3(call, a, b, c) RULE(call, ZYG_RULE_ALWAYS, 0, 3, a, b, c)
#define REFUSE(call, e) { .name = #call, .number = SCMP_SYS(call), .error = (e), .when = ZYG_RULE_ALWAYS, .count = 0 }

/* Exactly what glibc's pthread_create passes: a task of this process, never a process. */
#define THREAD_FLAGS \
	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | CLONE_SIGHAND | CLONE_THREAD | CLONE_SETTLS | CLONE_PARENT_SETTID | \
	 CLONE_CHILD_CLEARTID)
/* Exactly what glibc's fork passes. */
#define FORK_FLAGS (CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID | SIGCHLD)

#define FUTEX_FREE_BITS (FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME)
#define MAP_REFUSED (MAP_HUGETLB | MAP_LOCKED)
/* Per-thread CPU clocks have bits 2 and 1 set and are negative; the kernel refuses those of other processes itself. */
#define THREAD_CLOCK_MASK UINT64_C(0x80000007)
#define THREAD_CLOCK UINT64_C(0x80000006)
/* Clocks of the machine and of the caller are 0 to 15; negative numbers name another process, a thread or a descriptor. */
#define CLOCK_BITS 0xf
#define SEND_FLAGS (MSG_DONTWAIT | MSG_NOSIGNAL)
#define RECV_FLAGS (MSG_DONTWAIT | MSG_PEEK | MSG_WAITALL | MSG_TRUNC)

static const struct zyg_rule WORKER[] = {
	/* Memory. */
	ALLOW(brk),						/* malloc */
	ALLOW_1(mmap, ZERO_64(3, MAP_REFUSED)),			/* malloc, libraries; not huge or locked pages, which are the host's */
	ALLOW(mprotect),					/* relocation of libraries, thread stacks, ctypes closures */
	ALLOW(munmap),						/* free */
	ALLOW(mremap),						/* realloc */
	ALLOW(msync),						/* mmap.flush() */
	ALLOW_1(madvise, EQ_32(2, MADV_NORMAL)),		/* mmap.madvise() */
	ALLOW_1(madvise, EQ_32(2, MADV_RANDOM)),		/* likewise */
	ALLOW_1(madvise, EQ_32(2, MADV_SEQUENTIAL)),		/* likewise */
	ALLOW_1(madvise, EQ_32(2, MADV_WILLNEED)),		/* likewise */
	ALLOW_1(madvise, EQ_32(2, MADV_DONTNEED)),		/* free, end of a thread */
	ALLOW_1(madvise, EQ_32(2, MADV_FREE)),			/* allocators */
	ALLOW_1(madvise, EQ_32(2, MADV_DONTFORK)),		/* mmap.madvise() */
	ALLOW_1(madvise, EQ_32(2, MADV_DOFORK)),		/* likewise */
	ALLOW_1(madvise, EQ_32(2, MADV_HUGEPAGE)),		/* numpy on large arrays */
	ALLOW_1(madvise, EQ_32(2, MADV_NOHUGEPAGE)),		/* allocators */
	ALLOW_1(madvise, EQ_32(2, MADV_DONTDUMP)),		/* allocators, key material */
	ALLOW_1(madvise, EQ_32(2, MADV_DODUMP)),		/* likewise */
	ALLOW_1(madvise, EQ_32(2, MADV_POPULATE_READ)),		/* the warm-up after the fork */
	ALLOW_1(madvise, EQ_32(2, MADV_POPULATE_WRITE)),	/* likewise */

	/* Files: looking and reading. Opening is free where the root is ours, as there is nothing to write to. */
	RULE(openat, ZYG_RULE_OWN_ROOT, 0, 0),			/* import, open() */
	RULE(openat, ZYG_RULE_HOST_ROOT, 0, 1, BITS_32(2, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY)), /* the same, to read */
	ALLOW(close),						/* every file */
	ALLOW(close_range),					/* os.closerange() */
	ALLOW(read),						/* every file */
	ALLOW(readv),						/* os.readv() */
	ALLOW(pread64),						/* libraries, os.pread() */
	ALLOW(preadv),						/* os.preadv() */
	ALLOW(preadv2),						/* likewise */
	ALLOW(write),						/* output, answers */
	ALLOW(writev),						/* stdio, os.writev() */
	ALLOW(pwrite64),					/* os.pwrite() */
	ALLOW(pwritev),						/* os.pwritev() */
	ALLOW(pwritev2),					/* likewise */
	ALLOW(lseek),						/* every buffered file */
	ALLOW(newfstatat),					/* import, os.stat() */
	ALLOW(fstat),						/* open() */
	ALLOW(statx),						/* os.stat() of newer versions */
	ALLOW(statfs),						/* os.statvfs() */
	ALLOW(fstatfs),						/* likewise */
	ALLOW(access),						/* os.access() */
	ALLOW(faccessat),					/* likewise */
	ALLOW(faccessat2),					/* likewise */
	ALLOW(readlink),					/* os.path.realpath() */
	ALLOW(readlinkat),					/* likewise */
	ALLOW(getdents64),					/* import, os.scandir() */
	ALLOW(getcwd),						/* os.path.abspath() */
	ALLOW(chdir),						/* os.chdir(), of this process only */
	ALLOW(fchdir),						/* likewise */
	ALLOW(umask),						/* os.umask(), of this process only */

	/* Descriptors. No record locks, leases, owners of signals: those reach other processes. */
	ALLOW(dup),						/* os.dup() */
	ALLOW(dup2),						/* redirections of 1 and 2 */
	ALLOW(dup3),						/* likewise */
	ALLOW_1(fcntl, EQ_32(1, F_DUPFD)),			/* os.dup() */
	ALLOW_1(fcntl, EQ_32(1, F_DUPFD_CLOEXEC)),		/* likewise */
	ALLOW_1(fcntl, EQ_32(1, F_GETFD)),			/* os.get_inheritable() */
	ALLOW_1(fcntl, EQ_32(1, F_SETFD)),			/* os.set_inheritable() */
	ALLOW_1(fcntl, EQ_32(1, F_GETFL)),			/* os.get_blocking() */
	ALLOW_1(fcntl, EQ_32(1, F_SETFL)),			/* os.set_blocking() */
	ALLOW_1(fcntl, EQ_32(1, F_GETPIPE_SZ)),			/* fcntl tests for a pipe */
	ALLOW_1(ioctl, EQ_32(1, FIONREAD)),			/* bytes waiting */
	ALLOW_1(ioctl, EQ_32(1, FIOCLEX)),			/* open() sets close-on-exec so */
	ALLOW_1(ioctl, EQ_32(1, FIONCLEX)),			/* os.set_inheritable() */
	ALLOW_1(ioctl, EQ_32(1, FIONBIO)),			/* socket.setblocking() */
	ALLOW_1(ioctl, EQ_32(1, TCGETS)),			/* isatty() in every open() */
	ALLOW_1(ioctl, EQ_32(1, TIOCGWINSZ)),			/* os.get_terminal_size() fails with ENOTTY, as elsewhere */

	/* Pipes, waiting and the pair of sockets in asyncio's loop. No other family, nothing but sending to the other end. */
	ALLOW(pipe),						/* os.pipe() of some libraries */
	ALLOW_1(pipe2, ONLY_32(1, O_CLOEXEC | O_NONBLOCK | O_DIRECT)), /* os.pipe(); not a notification queue */
	ALLOW_1(eventfd2, ONLY_32(1, O_CLOEXEC | O_NONBLOCK | 1)), /* os.eventfd(); 1 is EFD_SEMAPHORE */
	ALLOW_3(socketpair, EQ_32(0, AF_UNIX), EQ_BUT_32(1, SOCK_STREAM, SOCK_CLOEXEC | SOCK_NONBLOCK), EQ_32(2, 0)), /* asyncio */
	ALLOW_2(sendto, ONLY_32(3, SEND_FLAGS), EQ_64(4, 0)),	/* socket.send() to the pair's end; no MSG_OOB, no address */
	ALLOW_1(recvfrom, ONLY_32(3, RECV_FLAGS)),		/* socket.recv() */
	ALLOW(shutdown),					/* socket.shutdown() */
	ALLOW(getsockname),					/* socket objects ask for it when made */
	ALLOW(getpeername),					/* transports of asyncio */
	ALLOW_1(getsockopt, EQ_32(1, SOL_SOCKET)),		/* type and error of a socket */
	ALLOW(poll),						/* select.poll() */
	ALLOW(ppoll),						/* likewise */
	ALLOW(select),						/* select.select() */
	ALLOW(pselect6),					/* likewise */
	ALLOW(epoll_create1),					/* asyncio, selectors */
	ALLOW(epoll_ctl),					/* likewise */
	ALLOW(epoll_wait),					/* likewise */
	ALLOW(epoll_pwait),					/* likewise */

	/* Threads. clone never makes a process; clone3 is refused with ENOSYS below, as its flags lie in memory. */
	ALLOW_1(clone, EQ_32(0, THREAD_FLAGS)),			/* threading */
	ALLOW(set_robust_list),					/* start of a thread */
	ALLOW(rseq),						/* likewise */
	ALLOW(set_tid_address),					/* likewise */
	ALLOW_1(futex, EQ_BUT_32(1, FUTEX_WAIT, FUTEX_FREE_BITS)), /* locks */
	ALLOW_1(futex, EQ_BUT_32(1, FUTEX_WAKE, FUTEX_FREE_BITS)), /* locks */
	ALLOW_1(futex, EQ_BUT_32(1, FUTEX_WAIT_BITSET, FUTEX_FREE_BITS)), /* locks with a time limit, join() */
	ALLOW_1(futex, EQ_BUT_32(1, FUTEX_WAKE_BITSET, FUTEX_FREE_BITS)), /* read-write locks of libraries */
	ALLOW_1(futex, EQ_BUT_32(1, FUTEX_CMP_REQUEUE, FUTEX_FREE_BITS)), /* condition variables of libraries */
	ALLOW(gettid),						/* threading.get_native_id() */
	ALLOW(sched_yield),					/* spinning locks of libraries */
	ALLOW_1(sched_getaffinity, EQ_32(0, 0)),		/* os.cpu_count(), OpenBLAS */
	ALLOW_1(sched_getaffinity, EQ_32(0, ZYG_SELF_PID)),	/* pthread_getattr_np() of the first thread */
	ALLOW(getcpu),						/* allocators; mostly answered by the vdso */

	/* Signals, to this process only: siblings have the same uid and are visible by pid. */
	ALLOW(rt_sigaction),					/* signal.signal() */
	ALLOW(rt_sigprocmask),					/* start of a thread */
	ALLOW(rt_sigreturn),					/* end of a handler */
	ALLOW(rt_sigpending),					/* signal.sigpending() */
	ALLOW(rt_sigsuspend),					/* sigsuspend() of libraries */
	ALLOW(rt_sigtimedwait),					/* signal.sigwait() */
	ALLOW(sigaltstack),					/* faulthandler */
	ALLOW(pause),						/* signal.pause() */
	ALLOW(alarm),						/* signal.alarm() */
	ALLOW(setitimer),					/* signal.setitimer() */
	ALLOW(getitimer),					/* likewise */
	ALLOW_1(kill, EQ_32(0, ZYG_SELF_PID)),			/* os.kill(os.getpid(), …) */
	ALLOW_1(tgkill, EQ_32(0, ZYG_SELF_PID)),		/* abort(), raise(), signal.pthread_kill() */

	/* Time. Clocks of other processes have negative numbers and are refused. */
	ALLOW_1(clock_gettime, ONLY_32(0, CLOCK_BITS)),		/* time; CPU clocks are not answered by the vdso */
	ALLOW_1(clock_gettime, BITS_32(0, THREAD_CLOCK_MASK, THREAD_CLOCK)), /* time.pthread_getcpuclockid() */
	ALLOW_1(clock_getres, ONLY_32(0, CLOCK_BITS)),		/* time.get_clock_info() */
	ALLOW_1(clock_nanosleep, ONLY_32(0, CLOCK_BITS)),	/* time.sleep() */
	ALLOW(nanosleep),					/* sleep of libraries */
	ALLOW(gettimeofday),					/* where the vdso cannot answer */
	ALLOW(time),						/* likewise */
	ALLOW(times),						/* os.times() */
	ALLOW(getrusage),					/* resource.getrusage(), of this process and its threads */

	/* What a process may know of itself. */
	ALLOW(getpid),						/* os.getpid(), raise() */
	ALLOW(getppid),						/* os.getppid() */
	ALLOW(getuid),						/* os.getuid() */
	ALLOW(geteuid),						/* likewise */
	ALLOW(getgid),						/* likewise */
	ALLOW(getegid),						/* likewise */
	ALLOW(getresuid),					/* likewise */
	ALLOW(getresgid),					/* likewise */
	ALLOW(getgroups),					/* likewise */
	ALLOW(getpgrp),						/* likewise */
	ALLOW_1(getpgid, EQ_32(0, 0)),				/* likewise; other pids would show who lives */
	ALLOW_1(getpgid, EQ_32(0, ZYG_SELF_PID)),		/* likewise */
	ALLOW_1(getsid, EQ_32(0, 0)),				/* likewise */
	ALLOW_1(getsid, EQ_32(0, ZYG_SELF_PID)),		/* likewise */
	ALLOW(uname),						/* platform */
	ALLOW(sysinfo),						/* sysconf(_SC_PHYS_PAGES), which qsort() asks for */
	ALLOW(getrandom),					/* os.urandom(), random */
	ALLOW(sched_get_priority_max),				/* constants; thread attributes of libraries */
	ALLOW(sched_get_priority_min),				/* likewise */
	ALLOW_2(prlimit64, EQ_32(0, 0), EQ_64(2, 0)),		/* resource.getrlimit(); setting would need argument 2 */
	ALLOW_2(prlimit64, EQ_32(0, ZYG_SELF_PID), EQ_64(2, 0)), /* likewise */
	ALLOW_2(prlimit64, EQ_32(0, 0), EQ_32(1, RLIMIT_DATA)), /* a call that asks for less memory: lowered before its code runs */
	ALLOW_2(prlimit64, EQ_32(0, 0), EQ_32(1, RLIMIT_AS)),	/* likewise; raising needs a capability that is gone */
	ALLOW_1(prctl, EQ_32(0, PR_SET_NAME)),			/* names of threads */
	ALLOW_1(prctl, EQ_32(0, PR_GET_NAME)),			/* likewise */
	ALLOW_1(prctl, EQ_32(0, PR_SET_VMA)),			/* names of mappings, in newer libcs */
	ALLOW_1(prctl, EQ_32(0, PR_GET_DUMPABLE)),		/* read-back of the layers */
	ALLOW_1(prctl, EQ_32(0, PR_GET_SECCOMP)),		/* likewise */
	ALLOW_1(prctl, EQ_32(0, PR_GET_NO_NEW_PRIVS)),		/* likewise */
	ALLOW_1(prctl, EQ_32(0, PR_CAPBSET_READ)),		/* likewise */
	ALLOW_1(prctl, EQ_32(0, PR_GET_PDEATHSIG)),		/* likewise */
	ALLOW_1(prctl, EQ_32(0, PR_GET_MDWE)),			/* likewise */

	/* The end. */
	ALLOW(wait4),						/* os.waitpid() fails with ECHILD, as it should */
	ALLOW(restart_syscall),					/* the kernel's own, after a stop */
	ALLOW(exit),						/* end of a thread */
	ALLOW(exit_group),					/* end of the process */
};

static const struct zyg_rule ZYGOTE[] = {
	ALLOW_1(clone, EQ_32(0, FORK_FLAGS)),			/* the one fork, fork.c */
	ALLOW(recvmsg),						/* FORK and its descriptors */
	ALLOW(sendmsg),						/* FORKED and its pidfd, EXITED */
	ALLOW(pidfd_open),					/* the pidfd that goes with FORKED */
	ALLOW(kill),						/* ends its workers where no pid namespace does; the worker's rule is narrower */
	ALLOW(tgkill),						/* abort() of a child before its own filter, whose pid is not known here */
	ALLOW(sched_getaffinity),				/* likewise: the worker's rule is narrower */
	ALLOW(getpgid),						/* likewise */
	ALLOW(getsid),						/* likewise */
	ALLOW(prlimit64),					/* a worker lowers its limits; raising needs a capability that is gone */
	ALLOW(setrlimit),					/* likewise */
	ALLOW_2(seccomp, EQ_32(0, SECCOMP_SET_MODE_FILTER), EQ_32(1, 0)), /* a worker's own filter */
	ALLOW_1(prctl, EQ_32(0, PR_SET_PDEATHSIG)),		/* a worker ends with its zygote */
	ALLOW_1(prctl, EQ_32(0, PR_SET_DUMPABLE)),		/* a worker makes sure that it is not */
	ALLOW_1(prctl, EQ_32(0, PR_SET_NO_NEW_PRIVS)),		/* likewise, that it is on */
	ALLOW_1(prctl, EQ_32(0, PR_SET_MDWE)),			/* write-or-execute for a worker */
	ALLOW_1(prctl, EQ_32(0, PR_SET_TIMERSLACK)),		/* a worker's sleeps */
};

/* Refused like the rest, but with the errno at which libraries turn to an older call or do without. */
static const struct zyg_rule REFUSED[] = {
	REFUSE(clone3, ENOSYS),			/* pthread_create() turns to clone */
	REFUSE(openat2, ENOSYS),		/* callers turn to openat */
	REFUSE(epoll_pwait2, ENOSYS),		/* libuv and others turn to epoll_pwait */
	REFUSE(membarrier, ENOSYS),		/* user-space RCU turns to signals or fences */
	REFUSE(get_mempolicy, ENOSYS),		/* libnuma and OpenBLAS take the machine for one node */
	REFUSE(set_mempolicy, ENOSYS),		/* likewise */
	REFUSE(mbind, ENOSYS),			/* likewise */
	REFUSE(copy_file_range, ENOSYS),	/* callers turn to read and write */
	REFUSE(pkey_alloc, ENOSYS),		/* callers do without keys */
	REFUSE(io_uring_setup, ENOSYS),		/* libuv and others do without */
	REFUSE(futex_waitv, ENOSYS),		/* callers turn to futex */
	REFUSE(landlock_create_ruleset, ENOSYS), /* callers do without */
};

/* clang-format on */

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

const struct zyg_rules ZYG_WORKER_RULES = {WORKER, COUNT(WORKER)};
const struct zyg_rules ZYG_ZYGOTE_RULES = {ZYGOTE, COUNT(ZYGOTE)};
const struct zyg_rules ZYG_REFUSED_RULES = {REFUSED, COUNT(REFUSED)};
