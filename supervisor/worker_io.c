/*
 * Runs in:   broodd
 * Trusts:    nothing that comes out of a worker's pipes
 * Blocks on: nothing
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/frame.h"
#include "supervisor/call.h"
#include "supervisor/client.h"
#include "supervisor/usage.h"
#include "supervisor/worker_parts.h"

/* --- frames --- */

static void on_parked(struct sup_worker *worker)
{
	struct sup_profile *profile = worker->zygote->profile;

	evtimer_del(worker->ev_timer);
	worker->cpu_base_us = sup_cpu_us(worker->pid);
	wp_enter(worker, SUP_WORKER_PARKED);
	/* The one parked last is the warmest. */
	TAILQ_INSERT_HEAD(&profile->parked, worker, park_link);
	profile->park_failures = 0;
	if (worker->zygote->retiring || wp_server(worker)->stopping)
		sup_worker_discard(worker);
	sup_profile_pump(profile);
}

static enum brood_status status_of(enum brood_outcome outcome)
{
	switch (outcome) {
	case BROOD_OUT_OK:
		return BROOD_OK;
	case BROOD_OUT_ERROR:
		return BROOD_ERROR;
	case BROOD_OUT_MEMORY:
		return BROOD_MEMORY;
	case BROOD_OUT_DENIED:
		return BROOD_DENIED;
	}
	return BROOD_CRASHED;
}

static const char *message_of(enum brood_outcome outcome)
{
	switch (outcome) {
	case BROOD_OUT_OK:
		return "";
	case BROOD_OUT_ERROR:
		return "the code raised an exception";
	case BROOD_OUT_MEMORY:
		return "the code ran out of memory (MemoryError)";
	case BROOD_OUT_DENIED:
		return "the code tried something that the sandbox refuses (PermissionError)";
	}
	return "";
}

static void on_result(struct sup_worker *worker, struct brood_slice payload)
{
	struct sup_profile *profile = worker->zygote->profile;
	struct brood_result result;
	struct sup_ending ending = {0};
	int error = brood_result_parse(payload.data, payload.len, &worker->call->limits, &result);

	if (error < 0) {
		char message[128];

		snprintf(message, sizeof(message), "the worker's answer is not one of the protocol: %s",
			 brood_strerror(error));
		wp_misbehaved(worker, message);
		return;
	}
	ending.status = status_of(result.outcome);
	ending.message = message_of(result.outcome);
	ending.result = &result;
	wp_answer(worker, &ending);
	sup_worker_discard(worker);
	sup_profile_pump(profile);
}

static enum brood_worker_state protocol_state(const struct sup_worker *worker)
{
	switch (worker->state) {
	case SUP_WORKER_WARMING:
		return BROOD_WORKER_WARMING;
	case SUP_WORKER_PARKED:
		return BROOD_WORKER_PARKED;
	case SUP_WORKER_RUNNING:
		return BROOD_WORKER_RUNNING;
	case SUP_WORKER_DYING:
		break;
	}
	return BROOD_WORKER_DONE;
}

static size_t frame_max(const struct sup_worker *worker)
{
	return worker->call ? BROOD_RESULT_MAX(worker->call->limits.v[BROOD_LIMIT_VALUE]) : 64;
}

/* One frame; `rest` bytes follow it. After this the worker's buffers may be gone. */
static void on_frame(struct sup_worker *worker, struct brood_slice payload, size_t rest)
{
	enum brood_worker_frame type;
	int error = brood_worker_frame_type(payload.data, payload.len, &type);

	if (error < 0) {
		wp_misbehaved(worker, "the worker wrote something that is no frame of the protocol to its answer pipe");
	} else if (!brood_worker_frame_allowed(true, protocol_state(worker), type)) {
		wp_misbehaved(worker, "the worker wrote a frame to its answer pipe that it may not write now");
	} else if (rest > 0) {
		wp_misbehaved(worker, "the worker wrote more than its one answer to its answer pipe");
	} else if (type == BROOD_W_PARKED) {
		if (worker->len > 0)
			worker->len = 0;
		on_parked(worker);
	} else {
		on_result(worker, payload);
	}
}

static int keep(struct sup_worker *worker, const uint8_t *data, size_t len)
{
	if (worker->len + len > worker->room) {
		size_t room = worker->room ? worker->room : 4096;
		uint8_t *grown;

		while (room < worker->len + len)
			room *= 2;
		grown = realloc(worker->buf, room);
		if (!grown)
			return -1;
		worker->buf = grown;
		worker->room = room;
	}
	memcpy(worker->buf + worker->len, data, len);
	worker->len += len;
	return 0;
}

/* More bytes of the answer pipe. The scratch they lie in is reused when the call ends, so they are kept first. */
static void take_answer(struct sup_worker *worker, const uint8_t *data, size_t len)
{
	struct brood_slice payload;
	size_t used;
	int got;

	if (keep(worker, data, len) < 0) {
		wp_misbehaved(worker, "no memory for the worker's answer");
		return;
	}
	got = brood_frame_parse(worker->buf, worker->len, frame_max(worker), &payload, &used);
	if (got < 0)
		wp_misbehaved(
			worker,
			"the worker announced a frame on its answer pipe that is empty or larger than any answer");
	else if (got == 1)
		on_frame(worker, payload, worker->len - used);
}

static void on_vanished(struct sup_worker *worker)
{
	worker->vanished = true;
	event_del(worker->ev_answer);
	if (worker->forked) {
		/* EXITED tells how it ended. If the code only closed the pipe, it runs on: for no longer than the grace. */
		sup_timer_set(worker->ev_timer, (uint64_t)BROOD_VANISH_GRACE_MS * 1000);
	}
}

void wp_on_answer(evutil_socket_t fd, short what, void *context)
{
	struct sup_worker *worker = context;
	uint8_t *scratch = wp_server(worker)->scratch;
	ssize_t n = read(fd, scratch, SUP_SCRATCH);

	(void)what;
	if (n > 0)
		take_answer(worker, scratch, (size_t)n);
	else if (n == 0)
		on_vanished(worker);
	else if (errno != EAGAIN && errno != EINTR)
		wp_misbehaved(worker, "the worker's answer pipe cannot be read");
}

/* RESULT may still be in the pipe: the worker wrote it and was then ended by its own hand. */
bool wp_read_last_answer(struct sup_worker *worker)
{
	while (worker->state == SUP_WORKER_RUNNING && worker->fds[BROOD_FORK_ANSWER] >= 0) {
		uint8_t *scratch = wp_server(worker)->scratch;
		ssize_t n = read(worker->fds[BROOD_FORK_ANSWER], scratch, SUP_SCRATCH);

		if (n <= 0)
			return false;
		take_answer(worker, scratch, (size_t)n);
	}
	return true;
}

/* --- output --- */

static void read_output(struct sup_worker *worker, enum brood_fork_fd which, struct event *event)
{
	struct sup_call *call = worker->call;
	uint8_t *scratch = wp_server(worker)->scratch;
	struct sup_output *out;
	ssize_t n;

	n = read(worker->fds[which], scratch, SUP_SCRATCH);
	if (n <= 0) {
		if (n == 0 || (errno != EAGAIN && errno != EINTR))
			event_del(event); /* closed; that is the code's right */
		return;
	}
	if (!call) /* written before there was a call: the warm-up's, or a preloaded module's thread of habit */
		return;
	out = which == BROOD_FORK_STDOUT ? &call->out : &call->err;
	sup_output_add(out, scratch, (size_t)n);
	if (sup_output_flooded(out)) {
		sup_worker_end_call(worker, BROOD_OUTPUT, "killed: it went on writing far beyond its output limit");
		return;
	}
	if (call->stream)
		sup_call_stream(call, false);
	/* The client may have been dropped by that, and the worker with it. */
	if (worker->call == call && call->stream && sup_client_backlogged(call->client)) {
		event_del(worker->ev_out);
		event_del(worker->ev_err);
	}
}

void wp_on_stdout(evutil_socket_t fd, short what, void *context)
{
	struct sup_worker *worker = context;

	(void)fd;
	(void)what;
	read_output(worker, BROOD_FORK_STDOUT, worker->ev_out);
}

void wp_on_stderr(evutil_socket_t fd, short what, void *context)
{
	struct sup_worker *worker = context;

	(void)fd;
	(void)what;
	read_output(worker, BROOD_FORK_STDERR, worker->ev_err);
}

void sup_worker_resume_output(struct sup_worker *worker)
{
	if (worker->state != SUP_WORKER_RUNNING)
		return;
	event_add(worker->ev_out, NULL);
	event_add(worker->ev_err, NULL);
}
