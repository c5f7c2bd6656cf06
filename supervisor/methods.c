/*
 * Runs in:   broodd
 * Trusts:    nothing in a message but what rpc.c has judged
 * Blocks on: nothing
 */
#include "supervisor/methods.h"

#include <stdio.h>
#include <unistd.h>

#include "brood_version.h"
#include "protocol/error.h"
#include "supervisor/call.h"
#include "supervisor/client.h"
#include "supervisor/profile.h"
#include "supervisor/rpc.h"
#include "supervisor/status.h"

#define PROTOCOL_VERSION 1

static void answer_error(struct sup_client *client, const struct sup_rpc *rpc, enum sup_rpc_code code,
			 const char *message)
{
	msgpack_packer pk;

	if (rpc->notification)
		return;
	sup_buffer_begin(&client->server->packed, &pk);
	/* Two answers with one id would be one too many: a duplicate is answered without it. */
	sup_pack_error(&pk, code != SUP_RPC_DUPLICATE_ID, rpc->id, code, message);
	sup_client_send_packed(client);
}

void sup_methods_malformed(struct sup_client *client, const char *reason)
{
	char message[SUP_RPC_ERROR_MAX + 64];
	msgpack_packer pk;

	snprintf(message, sizeof(message), "not a message of the protocol: %s", reason);
	sup_buffer_begin(&client->server->packed, &pk);
	sup_pack_error(&pk, false, 0, SUP_RPC_MALFORMED, message);
	sup_client_send_packed(client);
}

static struct sup_call *find_call(struct sup_client *client, uint32_t id)
{
	struct sup_call *call;

	TAILQ_FOREACH(call, &client->calls, link)
	{
		if (call->id == id)
			return call;
	}
	return NULL;
}

static void hello(struct sup_client *client, const struct sup_rpc *rpc)
{
	char error[SUP_RPC_ERROR_MAX];
	uint64_t version;
	msgpack_packer pk;

	if (sup_hello_parse(rpc->params, &version, error) < 0) {
		answer_error(client, rpc, SUP_RPC_BAD_PARAMS, error);
		return;
	}
	if (version != PROTOCOL_VERSION) {
		answer_error(client, rpc, SUP_RPC_UNSUPPORTED_VERSION, "this server speaks version 1 of the protocol");
		return;
	}
	if (rpc->notification)
		return;
	sup_buffer_begin(&client->server->packed, &pk);
	sup_pack_response(&pk, rpc->id);
	sup_pack_hello(&pk, client->server);
	sup_client_send_packed(client);
}

/* A record for a call that never began. */
static void answer_unstarted(struct sup_client *client, const struct sup_rpc *rpc, enum brood_status status,
			     const char *profile, const char *message)
{
	struct sup_record record = {.status = status, .message = message, .profile = profile};
	msgpack_packer pk;

	client->server->counters.by_status[status]++;
	sup_buffer_begin(&client->server->packed, &pk);
	sup_pack_record(&pk, rpc->id, &record);
	sup_client_send_packed(client);
}

static void start_run(struct sup_client *client, const struct sup_rpc *rpc, const struct sup_run *run,
		      struct sup_profile *profile, const struct brood_limits *limits)
{
	struct sup_server *server = client->server;
	struct sup_call *call;

	server->counters.calls_total++;
	if (server->stopping) {
		answer_unstarted(client, rpc, BROOD_LOST, profile->name, "the supervisor is shutting down");
	} else if (client->open >= server->config->open_calls) {
		answer_unstarted(client, rpc, BROOD_BUSY, profile->name, "this client has too many open calls");
	} else {
		call = sup_call_new(client, rpc->id, profile, run, limits);
		if (call)
			sup_profile_submit(profile, call);
		else
			answer_unstarted(client, rpc, BROOD_BUSY, profile->name,
					 "the supervisor has no memory for the call");
	}
}

static void run(struct sup_client *client, const struct sup_rpc *rpc)
{
	char error[SUP_RPC_ERROR_MAX];
	struct brood_limits limits;
	struct sup_profile *profile;
	struct sup_run run;

	if (rpc->notification)
		return; /* nobody would get the answer */
	if (find_call(client, rpc->id)) {
		snprintf(error, sizeof(error), "a request with id %u is open already", rpc->id);
		answer_error(client, rpc, SUP_RPC_DUPLICATE_ID, error);
		return;
	}
	if (sup_run_parse(rpc->params, &run, error) < 0) {
		answer_error(client, rpc, SUP_RPC_BAD_PARAMS, error);
		return;
	}
	if (!run.profile.data)
		run.profile = (struct brood_slice){(const uint8_t *)"default", 7};
	profile = sup_profile_find(client->server, (const char *)run.profile.data, run.profile.len);
	if (!profile) {
		snprintf(error, sizeof(error), "there is no profile '%.*s'; `hello` lists them",
			 (int)(run.profile.len < 64 ? run.profile.len : 64), (const char *)run.profile.data);
		answer_error(client, rpc, SUP_RPC_UNKNOWN_PROFILE, error);
		return;
	}
	limits = profile->config->limits;
	if (sup_run_limits(&run, profile->name, &limits, error) < 0)
		answer_error(client, rpc, SUP_RPC_BAD_PARAMS, error);
	else
		start_run(client, rpc, &run, profile, &limits);
}

static void cancel(struct sup_client *client, const struct sup_rpc *rpc)
{
	char error[SUP_RPC_ERROR_MAX];
	struct sup_call *call;
	msgpack_packer pk;
	uint32_t id;

	if (sup_cancel_parse(rpc->params, &id, error) < 0) {
		answer_error(client, rpc, SUP_RPC_BAD_PARAMS, error);
		return;
	}
	call = find_call(client, id);
	if (call)
		sup_call_cancel(call);
	if (rpc->notification || client->dead)
		return;
	sup_buffer_begin(&client->server->packed, &pk);
	sup_pack_response(&pk, rpc->id);
	if (call)
		msgpack_pack_true(&pk);
	else
		msgpack_pack_false(&pk);
	sup_client_send_packed(client);
}

static void status(struct sup_client *client, const struct sup_rpc *rpc)
{
	char error[SUP_RPC_ERROR_MAX];
	msgpack_packer pk;

	if (sup_status_parse(rpc->params, error) < 0) {
		answer_error(client, rpc, SUP_RPC_BAD_PARAMS, error);
		return;
	}
	if (rpc->notification)
		return;
	sup_buffer_begin(&client->server->packed, &pk);
	sup_pack_response(&pk, rpc->id);
	sup_pack_status(&pk, client->server);
	sup_client_send_packed(client);
}

static const struct {
	const char *name;
	void (*handle)(struct sup_client *client, const struct sup_rpc *rpc);
} METHODS[] = {
	{"run", run},
	{"cancel", cancel},
	{"hello", hello},
	{"status", status},
};

void sup_methods_handle(struct sup_client *client, const uint8_t *message, size_t len)
{
	char error[SUP_RPC_ERROR_MAX];
	struct sup_rpc rpc;

	if (sup_rpc_parse(message, len, &rpc, error) < 0) {
		sup_methods_malformed(client, error);
		sup_client_finish(client);
		return;
	}
	for (size_t i = 0; i < sizeof(METHODS) / sizeof(METHODS[0]); i++) {
		if (brood_slice_is(rpc.method, METHODS[i].name)) {
			METHODS[i].handle(client, &rpc);
			return;
		}
	}
	answer_error(client, &rpc, SUP_RPC_UNKNOWN_METHOD, "the methods are hello, run, cancel and status");
}
