/*
 * Runs in:   broodd
 * Trusts:    a zygote to have forked what it says and to report how it ended; not to be well: each packet is judged, and one
 *            that is malformed or out of turn replaces the zygote
 * Blocks on: nothing
 *
 * A zygote's end, however it comes about (its exit, a closed channel, a packet out of turn, an order to go), takes one way:
 * sup_zygote_fail kills it and everything below it dies with it (its pid namespace, or the zygote's own care where there is none); then, from the
 * event loop and on nobody's stack, on_dead answers its workers' calls, reaps it and frees it.
 */
#include "supervisor/zygote.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/log.h"
#include "supervisor/spawn.h"
#include "supervisor/worker.h"
#include "supervisor/zygote_packets.h"

#define WATCH_US 1000000
#define DYING_MAX_US ((uint64_t)BROOD_PARK_TIMEOUT_MS * 1000)

void sup_zygote_fail(struct sup_zygote *zygote, const char *format, ...)
{
	va_list args;

	if (zygote->state == BROOD_ZYGOTE_GONE)
		return;
	va_start(args, format);
	if (zygote->message[0] == '\0')
		vsnprintf(zygote->message, sizeof(zygote->message), format, args);
	va_end(args);
	zygote->state = BROOD_ZYGOTE_GONE;
	syscall(SYS_pidfd_send_signal, zygote->pidfd, SIGKILL, NULL, 0);
	event_active(zygote->ev_dead, 0, 0);
}

static void free_event(struct event **event)
{
	if (*event)
		event_free(*event);
	*event = NULL;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void log_flush(struct sup_zygote *zygote);

void sup_zygote_destroy(struct sup_zygote *zygote)
{
	struct sup_worker *worker;

	if (zygote->pidfd >= 0)
		syscall(SYS_pidfd_send_signal, zygote->pidfd, SIGKILL, NULL, 0);
	while ((worker = TAILQ_FIRST(&zygote->workers)) != NULL)
		sup_worker_lost(worker, "its zygote ended while the call was running");
	log_flush(zygote);
	free_event(&zygote->ev_control);
	free_event(&zygote->ev_log);
	free_event(&zygote->ev_exit);
	free_event(&zygote->ev_watch);
	free_event(&zygote->ev_dead);
	close_fd(&zygote->control_fd);
	close_fd(&zygote->log_fd);
	/* It was sent SIGKILL: this waits for the kernel's tear-down only. */
	if (zygote->pid > 0)
		while (waitpid(zygote->pid, NULL, 0) < 0 && errno == EINTR)
			;
	close_fd(&zygote->pidfd);
	TAILQ_REMOVE(&zygote->profile->zygotes, zygote, link);
	free(zygote);
}

static void on_dead(evutil_socket_t fd, short what, void *context)
{
	struct sup_zygote *zygote = context;
	struct sup_profile *profile = zygote->profile;
	bool was_ready = zygote->was_ready, retiring = zygote->retiring;
	char message[SUP_FAILURE_MAX];

	(void)fd;
	(void)what;
	snprintf(message, sizeof(message), "%s", zygote->message);
	if (was_ready && !retiring)
		sup_log(SUP_LOG_WARNING, "zygote %s/%u ended: %s", profile->name, zygote->serial, message);
	else if (retiring)
		sup_log(SUP_LOG_INFO, "zygote %s/%u has retired", profile->name, zygote->serial);
	sup_zygote_destroy(zygote);
	sup_profile_on_zygote_end(profile, was_ready, retiring, message);
}

/* --- forking --- */

int sup_zygote_fork(struct sup_zygote *zygote, bool warm)
{
	int child_ends[BROOD_FORK_FDS], result = -1;
	struct sup_worker *worker = sup_worker_new(zygote, child_ends);
	msgpack_sbuffer packet;

	if (!worker) {
		sup_log(SUP_LOG_WARNING, "profile %s: no pipes for a new worker: %s", zygote->profile->name,
			strerror(errno));
		sup_timer_set(zygote->profile->wake, WATCH_US); /* descriptors may be free then */
		return -1;
	}
	msgpack_sbuffer_init(&packet);
	if (brood_fork_write(&packet, worker->id, warm) == 0)
		result = sup_zygote_send(zygote, &packet, child_ends, BROOD_FORK_FDS);
	msgpack_sbuffer_destroy(&packet);
	for (int i = 0; i < BROOD_FORK_FDS; i++)
		close(child_ends[i]);
	if (result == 0) {
		if (!evtimer_pending(zygote->ev_watch, NULL))
			sup_timer_set(zygote->ev_watch, WATCH_US);
		return 0;
	}
	if (errno != EAGAIN)
		sup_zygote_fail(zygote, "the zygote of profile '%s' takes no orders: %s", zygote->profile->name,
				strerror(errno));
	sup_worker_lost(worker, "");
	sup_timer_set(zygote->profile->wake, 1000);
	return -1;
}

void sup_zygote_retire(struct sup_zygote *zygote)
{
	struct sup_worker *worker, *next;

	if (zygote->retiring)
		return;
	zygote->retiring = true;
	for (worker = TAILQ_FIRST(&zygote->workers); worker; worker = next) {
		next = TAILQ_NEXT(worker, link);
		if (worker->state == SUP_WORKER_PARKED)
			sup_worker_discard(worker);
	}
	sup_zygote_worker_freed(zygote);
}

void sup_zygote_worker_freed(struct sup_zygote *zygote)
{
	if (zygote->profile->park_failures >= SUP_PARK_FAILURES_MAX)
		sup_zygote_fail(zygote, "profile '%s': %u workers in a row ended before they were ready",
				zygote->profile->name, zygote->profile->park_failures);
	else if (zygote->retiring && zygote->workers_count == 0)
		sup_zygote_fail(zygote, "retired");
	else
		sup_profile_wake(zygote->profile);
}

/* A zygote that does not do its part (stopped, wedged) is noticed by what waits for it for too long. */
static void on_watch(evutil_socket_t fd, short what, void *context)
{
	struct sup_zygote *zygote = context;
	uint64_t now = sup_now_us();
	struct sup_worker *worker;

	(void)fd;
	(void)what;
	if (zygote->channel_closed) {
		sup_zygote_fail(zygote, "the zygote of profile '%s' closed its channel and lived on",
				zygote->profile->name);
		return;
	}
	if (zygote->state == BROOD_ZYGOTE_STARTING) {
		sup_zygote_fail(
			zygote,
			"profile '%s': its zygote was not ready within %d s; is a module in `preload` very slow?",
			zygote->profile->name, BROOD_START_TIMEOUT_MS / 1000);
		return;
	}
	TAILQ_FOREACH(worker, &zygote->workers, link)
	{
		if (worker->state == SUP_WORKER_DYING && now - worker->since_us > DYING_MAX_US) {
			sup_zygote_fail(zygote, "the zygote of profile '%s' does not report the end of its workers",
					zygote->profile->name);
			return;
		}
	}
	if (zygote->workers_count > 0)
		sup_timer_set(zygote->ev_watch, WATCH_US);
}

/* --- its log pipe --- */

static void log_flush(struct sup_zygote *zygote)
{
	if (zygote->log_len > 0)
		sup_log(SUP_LOG_INFO, "zygote %s/%u says: %.*s", zygote->profile->name, zygote->serial,
			(int)zygote->log_len, zygote->log_line);
	zygote->log_len = 0;
}

static void on_log(evutil_socket_t fd, short what, void *context)
{
	struct sup_zygote *zygote = context;
	char text[4096];
	ssize_t n = read(fd, text, sizeof(text));

	(void)what;
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		event_del(zygote->ev_log);
	for (ssize_t i = 0; i < n; i++) {
		if (text[i] == '\n' || zygote->log_len == sizeof(zygote->log_line))
			log_flush(zygote);
		if (text[i] != '\n')
			zygote->log_line[zygote->log_len++] = text[i];
	}
}

static void on_exit_seen(evutil_socket_t fd, short what, void *context)
{
	struct sup_zygote *zygote = context;
	siginfo_t info = {0};

	(void)what;
	event_del(zygote->ev_exit);
	/* Its last words (FAILED, lines for the log) may be unread. */
	if (!zygote->channel_closed)
		sup_zygote_on_control(zygote->control_fd, EV_READ, zygote);
	on_log(zygote->log_fd, EV_READ, zygote);
	if (waitid(P_PIDFD, (id_t)fd, &info, WEXITED | WNOWAIT | WNOHANG) == 0 && info.si_pid != 0)
		sup_zygote_fail(zygote, "the zygote of profile '%s' ended (%s %d)%s%.*s", zygote->profile->name,
				info.si_code == CLD_EXITED ? "exit status" : "signal", info.si_status,
				zygote->log_len ? ": " : "", (int)zygote->log_len, zygote->log_line);
}

/* --- making --- */

static int send_start(struct sup_zygote *zygote, uint32_t layers_given)
{
	const struct sup_profile_config *config = zygote->profile->config;
	const struct sup_config *whole = zygote->profile->config_owner;
	bool root = geteuid() == 0;
	struct brood_start start = {
		.profile = config->name,
		.python = config->python,
		.preload = (char **)(uintptr_t)config->preload,
		.preload_count = config->preload_count,
		.paths = (char **)(uintptr_t)config->paths,
		.paths_count = config->paths_count,
		.env = (struct brood_env *)(uintptr_t)config->env,
		.env_count = config->env_count,
		.site_packages = config->site_packages != 0,
		.layers_given = layers_given,
		.uid = root ? (uint32_t)whole->worker_uid : 0,
		.gid = root ? (uint32_t)whole->worker_gid : 0,
		.workers_max = (uint32_t)config->workers,
		.limits = config->limits,
	};
	msgpack_sbuffer packet;
	int result = -1;

#ifndef BROOD_SANITIZED
	start.filter = true; /* sanitizers make system calls of their own */
#endif
	msgpack_sbuffer_init(&packet);
	if (brood_start_write(&packet, &start) == 0)
		result = sup_zygote_send(zygote, &packet, NULL, 0);
	msgpack_sbuffer_destroy(&packet);
	return result;
}

static int make_events(struct sup_zygote *zygote)
{
	struct event_base *base = zygote->profile->server->base;

	zygote->ev_control = event_new(base, zygote->control_fd, EV_READ | EV_PERSIST, sup_zygote_on_control, zygote);
	zygote->ev_log = event_new(base, zygote->log_fd, EV_READ | EV_PERSIST, on_log, zygote);
	zygote->ev_exit = event_new(base, zygote->pidfd, EV_READ, on_exit_seen, zygote);
	zygote->ev_watch = evtimer_new(base, on_watch, zygote);
	zygote->ev_dead = evtimer_new(base, on_dead, zygote);
	if (!zygote->ev_control || !zygote->ev_log || !zygote->ev_exit || !zygote->ev_watch || !zygote->ev_dead)
		return -1;
	if (event_add(zygote->ev_control, NULL) < 0 || event_add(zygote->ev_log, NULL) < 0)
		return -1;
	sup_timer_set(zygote->ev_watch, (uint64_t)BROOD_START_TIMEOUT_MS * 1000);
	return event_add(zygote->ev_exit, NULL);
}

/* The channel, the log pipe, the process. Descriptors of the child's ends are closed here; ours stay in the structure. */
static int launch(struct sup_zygote *zygote, uint32_t *layers)
{
	int channel[2] = {-1, -1}, log[2] = {-1, -1}, result = -1, saved;
	struct sup_spawned spawned;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel) == 0 && pipe2(log, O_CLOEXEC) == 0 &&
	    fcntl(log[0], F_SETFL, O_NONBLOCK) == 0)
		result = sup_spawn_zygote(zygote->profile->server->zygote_path, channel[1], log[1], &spawned);
	saved = errno;
	close_fd(&channel[1]);
	close_fd(&log[1]);
	zygote->control_fd = channel[0];
	zygote->log_fd = log[0];
	if (result == 0) {
		zygote->pid = spawned.pid;
		zygote->pidfd = spawned.pidfd;
		*layers = spawned.layers;
	}
	errno = saved;
	return result;
}

struct sup_zygote *sup_zygote_new(struct sup_profile *profile, char error[SUP_FAILURE_MAX])
{
	struct sup_zygote *zygote = calloc(1, sizeof(*zygote));
	uint32_t layers = 0;

	if (!zygote) {
		snprintf(error, SUP_FAILURE_MAX, "profile '%s' cannot start: out of memory", profile->name);
		return NULL;
	}
	zygote->profile = profile;
	zygote->serial = ++profile->zygote_serial;
	zygote->generation = profile->generation;
	zygote->pidfd = zygote->control_fd = zygote->log_fd = -1;
	zygote->limits = profile->config->limits;
	zygote->started_us = sup_now_us();
	TAILQ_INIT(&zygote->workers);
	TAILQ_INSERT_TAIL(&profile->zygotes, zygote, link);
	if (launch(zygote, &layers) == 0 && make_events(zygote) == 0 && send_start(zygote, layers) == 0) {
		zygote->state = BROOD_ZYGOTE_STARTING;
		return zygote;
	}
	snprintf(error, SUP_FAILURE_MAX, "profile '%s' cannot start: no process for its zygote (%.700s): %s",
		 profile->name, profile->server->zygote_path, strerror(errno));
	sup_zygote_destroy(zygote);
	return NULL;
}
