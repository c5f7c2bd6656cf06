/*
 * The supervisor as a whole: what its parts share.
 *
 * Who owns what: the server owns clients and profiles; a profile owns its zygotes; a zygote owns its workers; a client
 * owns its open calls. A running call and its worker point at each other. Structures are freed only from callbacks of the event
 * loop that belong to their owner, never below a function that was called with them.
 */
#ifndef BROOD_SUPERVISOR_SERVER_H
#define BROOD_SUPERVISOR_SERVER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <event2/event.h>

#include "protocol/status.h"
#include "supervisor/buffer.h"
#include "supervisor/config.h"

struct sup_client;
struct sup_profile;
struct sup_listener;

TAILQ_HEAD(sup_clients, sup_client);
TAILQ_HEAD(sup_profiles, sup_profile);

struct sup_counters {
	uint64_t calls_total;
	uint64_t by_status[BROOD_STATUS_COUNT];
	size_t open, queued, running;
};

struct sup_server {
	struct event_base *base;
	struct sup_config *config;
	const char *config_path; /* NULL: none */
	char *const *overrides;
	size_t overrides_count;
	bool stdio;
	char zygote_path[PATH_MAX];

	struct sup_clients clients;
	size_t clients_count;
	struct sup_profiles profiles;
	struct sup_listener *listener;
	struct sup_counters counters;
	uint64_t next_worker; /* id of the next worker, from 1 */
	uint64_t started_us;
	unsigned cores;

	bool stopping;		   /* no new call starts */
	struct event *stop_timer;  /* end of the grace time */
	struct event *flush_timer; /* end of the time for last answers to be taken */

	struct sup_buffer packed; /* scratch for answers */
	uint8_t *scratch;	  /* SUP_SCRATCH bytes for reads that are consumed at once */
};

#define SUP_SCRATCH (64 * 1024)

/* Monotonic clock, µs. */
uint64_t sup_now_us(void);

/* An evtimer_add that takes µs. */
void sup_timer_set(struct event *timer, uint64_t in_us);

/* Ends the event loop if the server is stopping and all that was to be waited for is over. */
void sup_server_check_stopped(struct sup_server *server);

/* Begins to stop: SIGTERM, SIGINT, or the end of a --stdio client. */
void sup_server_stop(struct sup_server *server, const char *why);

#endif
