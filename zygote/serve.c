/*
 * Runs in:   brood-zygote, after READY.
 * Trusts:    the supervisor, though every packet is judged.
 * Blocks on: the control socket and SIGCHLD.
 *
 * Answers FORK with a worker and tells of each worker's end. One thread does one thing after another, so a worker's EXITED can never
 * overtake its FORKED, and a pid is not given to anyone else before it was reaped here. A packet that the protocol does not
 * allow ends the zygote, and the supervisor starts another.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/fds.h"
#include "zygote/control.h"
#include "zygote/fork.h"
#include "zygote/zygote.h"

/* The workers go with their zygote: as the first process of a pid namespace by the kernel's hand, else by ours. */
_Noreturn static void leave(const struct zyg *z, int status)
{
	if (!(z->layers & BROOD_LAYER_BIT(BROOD_LAYER_PID_NS)))
		for (size_t i = 0; i < z->workers.count; i++)
			kill(z->workers.entry[i].pid, SIGKILL);
	_exit(status);
}

/* What became of a packet that was sent: a supervisor that is gone is the ordinary end. */
static void must_send(const struct zyg *z, int error)
{
	if (error == 0)
		return;
	if (error == -EPIPE || error == -ECONNRESET || error == -ENOTCONN)
		leave(z, EXIT_SUCCESS);
	zyg_log("zygote: cannot send to the supervisor: %s", strerror(-error));
	leave(z, EXIT_FAILURE);
}

static void send_ready(const struct zyg *z)
{
	struct brood_ready ready = {
		.layers = z->layers,
		.base_data_bytes = z->setup.base_data_bytes,
		.base_as_bytes = z->setup.base_as_bytes,
		.start_us = zyg_now_us() - z->born_us,
	};

	snprintf(ready.python, sizeof(ready.python), "%s (%.90s)", z->python.version, z->python.executable);
	zyg_make_line(ready.python);
	must_send(z, zyg_control_ready(&ready));
}

/* A child that the supervisor will never hear of. */
static void undo_fork(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
}

/* Forks and reports it. 0, or the negative errno for FORK_FAILED. The packet's descriptors are closed in either case. */
static int fork_worker(struct zyg *z, uint64_t worker, bool warm, struct zyg_packet *packet)
{
	pid_t pid;
	int pidfd;

	if (packet->fd_count != BROOD_FORK_FDS || packet->fds_cut) {
		zyg_packet_close(packet);
		return -EBADF;
	}
	if (zyg_table_full(&z->workers) || zyg_table_has(&z->workers, worker)) {
		zyg_packet_close(packet);
		return zyg_table_full(&z->workers) ? -EAGAIN : -EEXIST;
	}
	pid = zyg_fork(z, packet->fds, warm);
	zyg_packet_close(packet);
	if (pid < 0)
		return pid;
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0) {
		int error = -errno;

		undo_fork(pid);
		return error;
	}
	zyg_table_add(&z->workers, pid, worker);
	must_send(z, zyg_control_forked(worker, pid, pidfd));
	close(pidfd);
	return 0;
}

_Noreturn static void bad_packet(const struct zyg *z, struct zyg_packet *packet, const char *why)
{
	zyg_packet_close(packet);
	zyg_log("zygote: bad packet from the supervisor: %s; leaving", why);
	leave(z, EXIT_FAILURE);
}

static void on_packet(struct zyg *z, struct zyg_packet *packet)
{
	enum brood_control type;
	uint64_t worker = 0;
	bool warm = true;
	int error = brood_control_type(packet->data, packet->len, &type);

	if (error == 0 && !brood_control_allowed(BROOD_PEER_SUPERVISOR, BROOD_ZYGOTE_READY, type))
		error = BROOD_E_STATE;
	/* FORK is all that may come now. */
	if (error == 0)
		error = brood_fork_parse(packet->data, packet->len, &worker, &warm);
	if (error < 0)
		bad_packet(z, packet, brood_strerror(error));
	error = fork_worker(z, worker, warm, packet);
	if (error < 0)
		must_send(z, zyg_control_fork_failed(worker, -error));
}

static void on_control(struct zyg *z)
{
	/* Too large for a stack whose pages every worker would copy. */
	static struct zyg_packet packet;
	int got = zyg_control_read(&packet);

	if (got == 0)
		leave(z, EXIT_SUCCESS);
	if (got == -EMSGSIZE)
		bad_packet(z, &packet, brood_strerror(BROOD_E_TOO_LARGE));
	if (got < 0)
		bad_packet(z, &packet, strerror(-got));
	on_packet(z, &packet);
}

static uint64_t microseconds(struct timeval t)
{
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_usec;
}

static void report_exit(const struct zyg *z, uint64_t worker, int status, const struct rusage *usage)
{
	struct brood_exited exited = {
		.worker = worker,
		.signalled = WIFSIGNALED(status),
		.code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
		.cpu_us = microseconds(usage->ru_utime) + microseconds(usage->ru_stime),
		.max_rss_bytes = (uint64_t)usage->ru_maxrss * 1024,
	};

	must_send(z, zyg_control_exited(&exited));
}

/* Signals merge, so every child that has ended is taken. Orphans that a pid namespace hands to its first process are no workers. */
static void on_child(struct zyg *z)
{
	struct signalfd_siginfo info;
	struct rusage usage;
	uint64_t worker;
	int status;
	pid_t pid;

	while (read(z->signals, &info, sizeof(info)) > 0)
		;
	while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0 || (pid < 0 && errno == EINTR))
		if (pid > 0 && zyg_table_take(&z->workers, pid, &worker))
			report_exit(z, worker, status, &usage);
}

_Noreturn void zyg_serve(struct zyg *z)
{
	struct pollfd watched[] = {
		{.fd = BROOD_ZYG_FD_CONTROL, .events = POLLIN},
		{.fd = z->signals, .events = POLLIN},
	};

	send_ready(z);
	for (;;) {
		if (poll(watched, 2, -1) < 0) {
			if (errno == EINTR)
				continue;
			zyg_log("zygote: cannot wait: %s", strerror(errno));
			leave(z, EXIT_FAILURE);
		}
		/* Ends first: they make room in the table for the forks. */
		if (watched[1].revents)
			on_child(z);
		if (watched[0].revents)
			on_control(z);
	}
}
