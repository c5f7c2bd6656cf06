/* A connection: reads requests, hands them on, writes answers. */
#ifndef BROOD_SUPERVISOR_CLIENT_H
#define BROOD_SUPERVISOR_CLIENT_H

#include <sys/types.h>
#include <event2/buffer.h>

#include "protocol/scan.h"
#include "supervisor/queue.h"
#include "supervisor/record.h"
#include "supervisor/server.h"

struct sup_call;
TAILQ_HEAD(sup_calls, sup_call);

/* The client's place in one profile's queue. */
struct sup_client_lane {
	TAILQ_ENTRY(sup_client_lane) link;
	struct sup_profile *profile;
	struct sup_lane lane;
};

struct sup_client {
	TAILQ_ENTRY(sup_client) link;
	struct sup_server *server;
	uint64_t serial;   /* for the log */
	int in_fd, out_fd; /* the same for a socket */
	struct event *ev_in, *ev_out, *ev_half_closed, *ev_dead;
	uint8_t *buf; /* the start of a message that is not whole yet; owned */
	size_t len, room;
	struct brood_scan scan;
	struct evbuffer *backlog; /* written by us, not taken by the client yet */
	struct sup_calls calls;
	size_t open, running;
	TAILQ_HEAD(, sup_client_lane) lanes;
	bool eof;     /* sends nothing more; may still read */
	bool closing; /* to be closed once the backlog is gone */
	bool dead;    /* no I/O any more; freed from the event loop */
};

/* Takes over the descriptors. NULL (descriptors closed) when out of memory. */
struct sup_client *sup_client_new(struct sup_server *server, int in_fd, int out_fd);

/* Sends what server->packed holds. The client may be dead afterwards. */
void sup_client_send_packed(struct sup_client *client);

/* True while so much waits to be taken that nothing more should be made for it. */
bool sup_client_backlogged(const struct sup_client *client);

/* The lane in the profile's queue; made when needed; NULL when out of memory. */
struct sup_lane *sup_client_lane(struct sup_client *client, struct sup_profile *profile);

/* Forgets lanes in a profile that ends. They are empty then. */
void sup_client_drop_lanes(struct sup_client *client, const struct sup_profile *profile);

/* Hangs up: its calls are cancelled without an answer, the memory is freed from the event loop. */
void sup_client_drop(struct sup_client *client, const char *why);

/* At the very end: frees it with its calls, unanswered. */
void sup_client_destroy(struct sup_client *client);

/* Reads no more; closes when all answers are written. */
void sup_client_finish(struct sup_client *client);

/* One call has ended: takes notice of a half-closed client that has no more to wait for. */
void sup_client_call_ended(struct sup_client *client);

#endif
