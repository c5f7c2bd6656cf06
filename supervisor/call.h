/* One call: from a client's `run` to its one answer. */
#ifndef BROOD_SUPERVISOR_CALL_H
#define BROOD_SUPERVISOR_CALL_H

#include "protocol/messages.h"
#include "supervisor/output.h"
#include "supervisor/queue.h"
#include "supervisor/record.h"
#include "supervisor/rpc.h"
#include "supervisor/server.h"

struct sup_worker;

struct sup_call {
	TAILQ_ENTRY(sup_call) link; /* among the client's open calls */
	struct sup_queue_item item; /* while it waits */
	struct sup_client *client;
	struct sup_profile *profile;
	struct sup_worker *worker; /* while it runs */
	uint32_t id;
	bool stream;
	bool ending;	    /* being answered: its client's end must not free it */
	uint32_t layers;    /* that were on for its worker; 0 while it waits */
	uint64_t worker_id; /* 0 while it waits */
	struct brood_limits limits;
	struct brood_slice params; /* the client's bytes: the message's own until sup_call_keep_params */
	uint8_t *params_copy;	   /* owned */
	uint64_t arrived_us, started_us;
	struct sup_output out, err;
};

/* How it ended; what the worker contributed, if anything. */
struct sup_ending {
	enum brood_status status;
	const char *message;
	const struct brood_result *result;
	bool has_exit_code;
	int64_t exit_code;
	int signal;
	uint64_t cpu_us, peak_memory_bytes;
};

/* NULL when out of memory. The call is among the client's open calls then. */
struct sup_call *sup_call_new(struct sup_client *client, uint32_t id, struct sup_profile *profile,
			      const struct sup_run *run, const struct brood_limits *limits);

/* Copies params, so that the call may outlive the message it came in. 0 or -1. */
int sup_call_keep_params(struct sup_call *call);

/* Sends on what can be sent of a streaming call's output. */
void sup_call_stream(struct sup_call *call, bool last);

/*
 * Answers, and frees the call: it is taken out of its queue and its client; the worker is the caller's to deal with.
 */
void sup_call_finish(struct sup_call *call, const struct sup_ending *ending);

/* Answers with an RPC error instead, and frees the call. */
void sup_call_refuse(struct sup_call *call, enum sup_rpc_code code, const char *message);

/* Frees it without an answer: its client is gone. */
void sup_call_forget(struct sup_call *call);

/* By its client: a waiting call is answered at once, a running one is killed and answered. */
void sup_call_cancel(struct sup_call *call);

#endif
