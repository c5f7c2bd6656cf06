/*
 * Runs in:   broodd
 * Trusts:    judged parameters only (rpc.c)
 * Blocks on: nothing
 *
 * A call has one owner of its ending: whoever calls finish, refuse or forget frees it, and each of them first takes it out of its
 * queue and of its client. So there is exactly one answer, or none when nobody is there to read it.
 */
#include "supervisor/call.h"

#include <stdlib.h>
#include <string.h>

#include "supervisor/client.h"
#include "supervisor/log.h"
#include "supervisor/profile.h"
#include "supervisor/worker.h"
#include "supervisor/zygote.h"

struct sup_call *sup_call_new(struct sup_client *client, uint32_t id, struct sup_profile *profile,
			      const struct sup_run *run, const struct brood_limits *limits)
{
	struct sup_call *call = calloc(1, sizeof(*call));

	if (!call)
		return NULL;
	call->client = client;
	call->profile = profile;
	call->id = id;
	call->stream = run->stream;
	call->limits = *limits;
	call->params = run->map;
	call->arrived_us = sup_now_us();
	sup_output_init(&call->out, limits->v[BROOD_LIMIT_OUTPUT]);
	sup_output_init(&call->err, limits->v[BROOD_LIMIT_OUTPUT]);
	TAILQ_INSERT_TAIL(&client->calls, call, link);
	client->open++;
	client->server->counters.open++;
	return call;
}

int sup_call_keep_params(struct sup_call *call)
{
	if (call->params_copy)
		return 0;
	call->params_copy = malloc(call->params.len);
	if (!call->params_copy)
		return -1;
	memcpy(call->params_copy, call->params.data, call->params.len);
	call->params.data = call->params_copy;
	return 0;
}

static void send_stream(struct sup_call *call, struct sup_output *out, bool is_stderr, bool last)
{
	struct sup_buffer *packed = &call->client->server->packed;
	size_t n = sup_output_ready(out, last);
	msgpack_packer pk;

	if (n == 0)
		return;
	sup_buffer_begin(packed, &pk);
	sup_pack_output(&pk, call->id, is_stderr, out->data, n);
	sup_output_take(out, n);
	sup_client_send_packed(call->client);
}

void sup_call_stream(struct sup_call *call, bool last)
{
	struct sup_client *client = call->client;

	send_stream(call, &call->out, false, last);
	/* A failed write drops the client, and this call with it; the client itself lives until the event loop frees it. */
	if (!client->dead)
		send_stream(call, &call->err, true, last);
}

/* Out of all lists, and out of memory. */
static void call_free(struct sup_call *call)
{
	struct sup_client *client = call->client;

	if (call->item.lane) {
		sup_queue_remove(&call->item);
		client->server->counters.queued--;
	}
	TAILQ_REMOVE(&client->calls, call, link);
	client->open--;
	client->server->counters.open--;
	sup_output_free(&call->out);
	sup_output_free(&call->err);
	free(call->params_copy);
	free(call);
}

static void fill_usage(const struct sup_call *call, const struct sup_ending *ending, struct sup_usage *usage)
{
	uint64_t now = sup_now_us();

	usage->cpu_us = ending->cpu_us;
	usage->peak_memory_bytes = ending->peak_memory_bytes;
	usage->wall_us = call->started_us ? now - call->started_us : 0;
	usage->queue_us = (call->started_us ? call->started_us : now) - call->arrived_us;
}

static void note_ended(struct sup_call *call, enum brood_status status)
{
	struct sup_counters *counters = &call->client->server->counters;

	counters->by_status[status]++;
	if (call->started_us) {
		call->client->running--;
		counters->running--;
	}
}

void sup_call_finish(struct sup_call *call, const struct sup_ending *ending)
{
	struct sup_client *client = call->client;
	struct sup_server *server = client->server;
	struct sup_record record = {
		.status = ending->status,
		.message = ending->message,
		.result = ending->result,
		.out = &call->out,
		.err = &call->err,
		.stream = call->stream,
		.has_exit_code = ending->has_exit_code,
		.exit_code = ending->exit_code,
		.signal = ending->signal,
		.layers = call->layers,
		.profile = call->profile->name,
		.worker = call->worker_id,
	};
	msgpack_packer pk;

	if (call->stream) {
		/* If the client is dropped by this, the call is gone with it. */
		call->ending = true;
		sup_call_stream(call, true);
		call->ending = false;
	}
	fill_usage(call, ending, &record.usage);
	note_ended(call, ending->status);
	if (!client->dead) {
		sup_buffer_begin(&server->packed, &pk);
		sup_pack_record(&pk, call->id, &record);
	}
	call_free(call);
	if (client->dead)
		return;
	sup_client_send_packed(client);
	sup_client_call_ended(client);
	sup_server_check_stopped(server);
}

void sup_call_refuse(struct sup_call *call, enum sup_rpc_code code, const char *message)
{
	struct sup_client *client = call->client;
	msgpack_packer pk;

	sup_buffer_begin(&client->server->packed, &pk);
	sup_pack_error(&pk, true, call->id, code, message);
	note_ended(call, BROOD_LOST);
	call_free(call);
	sup_client_send_packed(client);
	sup_client_call_ended(client);
}

void sup_call_forget(struct sup_call *call)
{
	struct sup_worker *worker = call->worker;

	if (call->ending)
		return; /* sup_call_finish is at work on it, and frees it */
	note_ended(call, BROOD_CANCELLED);
	call_free(call);
	if (worker) {
		worker->call = NULL;
		sup_worker_discard(worker);
	}
}

void sup_call_cancel(struct sup_call *call)
{
	static const struct sup_ending WAITING = {.status = BROOD_CANCELLED, .message = "cancelled while it waited"};

	if (call->worker)
		sup_worker_end_call(call->worker, BROOD_CANCELLED, "cancelled by its client");
	else
		sup_call_finish(call, &WAITING);
}
