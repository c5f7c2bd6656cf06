/*
 * Runs in:   broodd
 * Trusts:    nothing that a worker says or does; its zygote for FORKED and EXITED only
 * Blocks on: nothing
 *
 * A worker is hostile from the first byte of its request. What it can reach of us is two output pipes, which carry bytes that are kept and
 * counted, and one answer pipe, on which exactly two frames are good: PARKED, then RESULT. Anything else there ends this worker and
 * spoils this call, and nobody else's: a pipe belongs to one worker, a worker to one call.
 *
 * How a call ends, whichever comes first:
 *   RESULT             answered with what it says
 *   a deadline         killed by pidfd, answered with what was written until then
 *   EXITED             (the zygote reaped it) answered by how it ended
 *   end of file        on the answer pipe: EXITED is about to come; if it does not, the code closed the pipe itself
 *   the zygote's end   answered `lost`
 * In each case the call and the worker part at once, so that nothing can answer twice.
 */
#include "supervisor/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "protocol/frame.h"
#include "supervisor/call.h"
#include "supervisor/log.h"
#include "supervisor/usage.h"
#include "supervisor/worker_parts.h"

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void free_event(struct event **event)
{
	if (*event)
		event_free(*event);
	*event = NULL;
}

/* Events before descriptors: epoll must not be left with one that a process still holds elsewhere. */
void wp_close_pipes(struct sup_worker *worker)
{
	free_event(&worker->ev_out);
	free_event(&worker->ev_err);
	free_event(&worker->ev_answer);
	free_event(&worker->ev_request);
	for (int i = 0; i < BROOD_FORK_FDS; i++)
		close_fd(&worker->fds[i]);
	free(worker->buf);
	worker->buf = NULL;
	worker->len = worker->room = 0;
	free(worker->pending);
	worker->pending = NULL;
}

/* --- making and freeing --- */

static unsigned *pool_count(struct sup_worker *worker)
{
	struct sup_pool *pool = &worker->zygote->profile->pool;

	switch (worker->state) {
	case SUP_WORKER_WARMING:
		return &pool->warming;
	case SUP_WORKER_PARKED:
		return &pool->parked;
	case SUP_WORKER_RUNNING:
		return &pool->running;
	case SUP_WORKER_DYING:
		break;
	}
	return &pool->dying;
}

void wp_enter(struct sup_worker *worker, enum sup_worker_state state)
{
	--*pool_count(worker);
	if (worker->state == SUP_WORKER_PARKED)
		TAILQ_REMOVE(&worker->zygote->profile->parked, worker, park_link);
	worker->state = state;
	worker->since_us = sup_now_us();
	++*pool_count(worker);
}

void wp_free(struct sup_worker *worker)
{
	struct sup_zygote *zygote = worker->zygote;

	--*pool_count(worker);
	if (worker->state == SUP_WORKER_PARKED)
		TAILQ_REMOVE(&zygote->profile->parked, worker, park_link);
	TAILQ_REMOVE(&zygote->workers, worker, link);
	zygote->workers_count--;
	wp_close_pipes(worker);
	free_event(&worker->ev_timer);
	close_fd(&worker->pidfd);
	close_fd(&worker->status_fd);
	free(worker);
}

static void on_request(evutil_socket_t fd, short what, void *context);
static void on_timer(evutil_socket_t fd, short what, void *context);

/* Our ends do not block; the worker's do, so that back-pressure reaches the code. */
static int make_pipes(struct sup_worker *worker, int child_ends[BROOD_FORK_FDS])
{
	for (int i = 0; i < BROOD_FORK_FDS; i++) {
		int ends[2];
		int ours = i == BROOD_FORK_REQUEST; /* which end of the pair is ours */

		if (pipe2(ends, O_CLOEXEC) < 0)
			return -1;
		worker->fds[i] = ends[ours];
		child_ends[i] = ends[!ours];
		if (fcntl(ends[ours], F_SETFL, O_NONBLOCK) < 0)
			return -1;
	}
	return 0;
}

static int make_events(struct sup_worker *worker)
{
	struct event_base *base = wp_server(worker)->base;

	worker->ev_out = event_new(base, worker->fds[BROOD_FORK_STDOUT], EV_READ | EV_PERSIST, wp_on_stdout, worker);
	worker->ev_err = event_new(base, worker->fds[BROOD_FORK_STDERR], EV_READ | EV_PERSIST, wp_on_stderr, worker);
	worker->ev_answer = event_new(base, worker->fds[BROOD_FORK_ANSWER], EV_READ | EV_PERSIST, wp_on_answer, worker);
	worker->ev_request =
		event_new(base, worker->fds[BROOD_FORK_REQUEST], EV_WRITE | EV_PERSIST, on_request, worker);
	worker->ev_timer = evtimer_new(base, on_timer, worker);
	if (!worker->ev_out || !worker->ev_err || !worker->ev_answer || !worker->ev_request || !worker->ev_timer)
		return -1;
	if (event_add(worker->ev_out, NULL) < 0 || event_add(worker->ev_err, NULL) < 0)
		return -1;
	return event_add(worker->ev_answer, NULL);
}

struct sup_worker *sup_worker_new(struct sup_zygote *zygote, int child_ends[BROOD_FORK_FDS])
{
	struct sup_worker *worker = calloc(1, sizeof(*worker));
	int saved;

	for (int i = 0; i < BROOD_FORK_FDS; i++)
		child_ends[i] = -1;
	if (!worker)
		return NULL;
	worker->zygote = zygote;
	worker->id = zygote->profile->server->next_worker++;
	worker->pidfd = worker->status_fd = -1;
	worker->pid = -1;
	worker->since_us = sup_now_us();
	for (int i = 0; i < BROOD_FORK_FDS; i++)
		worker->fds[i] = -1;
	TAILQ_INSERT_TAIL(&zygote->workers, worker, link);
	zygote->workers_count++;
	++*pool_count(worker);
	if (make_pipes(worker, child_ends) == 0 && make_events(worker) == 0) {
		sup_timer_set(worker->ev_timer, (uint64_t)BROOD_PARK_TIMEOUT_MS * 1000);
		return worker;
	}
	saved = errno;
	for (int i = 0; i < BROOD_FORK_FDS; i++)
		close_fd(&child_ends[i]);
	wp_free(worker);
	errno = saved;
	return NULL;
}

/* --- handing over a call --- */

static void on_timer(evutil_socket_t fd, short what, void *context)
{
	struct sup_worker *worker = context;

	(void)fd;
	(void)what;
	if (worker->vanished)
		wp_misbehaved(worker, "the worker closed its answer pipe and lived on");
	else if (worker->state == SUP_WORKER_WARMING)
		sup_zygote_fail(worker->zygote, "a worker did not park within %d ms", BROOD_PARK_TIMEOUT_MS);
	else if (worker->state == SUP_WORKER_RUNNING)
		wp_on_deadline(worker);
}

static void on_request(evutil_socket_t fd, short what, void *context)
{
	struct sup_worker *worker = context;
	ssize_t n = write(fd, worker->pending + worker->pending_pos, worker->pending_len - worker->pending_pos);

	(void)what;
	if (n > 0)
		worker->pending_pos += (size_t)n;
	/* An error is EPIPE: the worker is gone or closed its pipe; its ending is told elsewhere. */
	if (worker->pending_pos == worker->pending_len || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		event_del(worker->ev_request);
		free(worker->pending);
		worker->pending = NULL;
	}
}

/* What the pipe did not take at once is copied and written later. */
static int write_later(struct sup_worker *worker, const struct iovec *parts, size_t count, size_t written)
{
	size_t total = 0, at = 0;

	for (size_t i = 0; i < count; i++)
		total += parts[i].iov_len;
	worker->pending = malloc(total);
	if (!worker->pending)
		return -1;
	for (size_t i = 0; i < count; i++) {
		memcpy(worker->pending + at, parts[i].iov_base, parts[i].iov_len);
		at += parts[i].iov_len;
	}
	worker->pending_len = total;
	worker->pending_pos = written;
	return event_add(worker->ev_request, NULL);
}

static int send_run(struct sup_worker *worker, const struct sup_call *call)
{
	uint8_t header[BROOD_FRAME_HEADER];
	struct iovec parts[3];
	msgpack_sbuffer head;
	size_t total;
	ssize_t n;
	int result = -1;

	msgpack_sbuffer_init(&head);
	if (brood_run_write_head(&head, &call->limits) == 0) {
		brood_frame_header(header, (uint32_t)(head.size + call->params.len));
		parts[0] = (struct iovec){header, sizeof(header)};
		parts[1] = (struct iovec){head.data, head.size};
		parts[2] = (struct iovec){(void *)(uintptr_t)call->params.data, call->params.len};
		total = sizeof(header) + head.size + call->params.len;
		n = writev(worker->fds[BROOD_FORK_REQUEST], parts, 3);
		if (n == (ssize_t)total)
			result = 0;
		else if (n >= 0 || errno == EAGAIN)
			result = write_later(worker, parts, 3, n > 0 ? (size_t)n : 0);
	}
	msgpack_sbuffer_destroy(&head);
	return result;
}

int sup_worker_run(struct sup_worker *worker, struct sup_call *call)
{
	uint64_t now = sup_now_us(); /* before the worker can begin */

	if (send_run(worker, call) < 0) {
		sup_log(SUP_LOG_WARNING, "worker %llu of %s is not usable: %s", (unsigned long long)worker->id,
			worker->zygote->profile->name, strerror(errno));
		sup_worker_discard(worker);
		return -1;
	}
	wp_enter(worker, SUP_WORKER_RUNNING);
	worker->call = call;
	call->worker = worker;
	call->worker_id = worker->id;
	call->layers = worker->zygote->ready.layers;
	call->started_us = now;
	worker->deadline_us = now + call->limits.v[BROOD_LIMIT_WALL] * 1000;
	wp_arm_deadline(worker, now, call->limits.v[BROOD_LIMIT_CPU] * 1000);
	return 0;
}

void sup_worker_on_forked(struct sup_worker *worker, int pidfd)
{
	worker->forked = true;
	worker->pidfd = pidfd;
	worker->pid = sup_pidfd_pid(pidfd);
	if (worker->pid > 0)
		worker->status_fd = sup_open_status(worker->pid);
	if (worker->state == SUP_WORKER_DYING)
		wp_signal(worker, SIGKILL); /* it was given up before it had a pidfd */
}
