/* A profile at run time: its zygotes, its parked workers, its queue, and the matching of calls with workers. */
#ifndef BROOD_SUPERVISOR_PROFILE_H
#define BROOD_SUPERVISOR_PROFILE_H

#include "supervisor/pool.h"
#include "supervisor/queue.h"
#include "supervisor/server.h"

struct sup_call;
struct sup_worker;
struct sup_zygote;

TAILQ_HEAD(sup_zygotes, sup_zygote);
TAILQ_HEAD(sup_worker_list, sup_worker);

#define SUP_FAILURE_MAX 1024
#define SUP_RETRY_FIRST_MS 500
#define SUP_RETRY_MOST_MS 30000
/* Workers in a row that died before they parked: then their zygote is held to be unfit. */
#define SUP_PARK_FAILURES_MAX 5

struct sup_profile {
	TAILQ_ENTRY(sup_profile) link;
	struct sup_server *server;
	struct sup_config *config_owner; /* keeps `config` alive */
	const struct sup_profile_config *config;
	char name[65];
	bool removed; /* no longer in the configuration: ends when its calls have */
	struct sup_queue queue;
	struct sup_zygotes zygotes;
	struct sup_worker_list parked; /* the warmest first */
	struct sup_pool pool;
	unsigned generation; /* of the configuration; zygotes of an older one retire when a newer one is ready */
	unsigned zygote_serial;
	unsigned park_failures;	       /* in a row */
	char failure[SUP_FAILURE_MAX]; /* why the last zygote did not start; "" when one did */
	unsigned retry_ms;
	struct event *retry_timer, *wake;
	uint64_t forks, pool_hits, pool_misses;
};

struct sup_profile *sup_profile_new(struct sup_server *server, struct sup_config *owner,
				    const struct sup_profile_config *config);
void sup_profile_free(struct sup_profile *profile);
struct sup_profile *sup_profile_find(struct sup_server *server, const char *name, size_t len);

/* A new call: runs at once, waits, or is answered `busy` or `unavailable`. The call may be gone afterwards. */
void sup_profile_submit(struct sup_profile *profile, struct sup_call *call);

/* Matches waiting calls with parked workers, then forks what is wanted. Safe to call at any time. */
void sup_profile_pump(struct sup_profile *profile);

/* Starts zygotes that are lacking (start-up, first demand, after one died). */
void sup_profile_start(struct sup_profile *profile);

/* Takes a new configuration; new zygotes replace the old ones as soon as they are ready. NULL: the profile was removed. */
void sup_profile_reload(struct sup_profile *profile, struct sup_config *owner, const struct sup_profile_config *config);

/* The same soon, from the event loop: for callers that are in the middle of something. */
void sup_profile_wake(struct sup_profile *profile);

/* From zygote.c: it is ready; it could not start (message) or died. */
void sup_profile_on_ready(struct sup_profile *profile, struct sup_zygote *zygote);
void sup_profile_on_zygote_end(struct sup_profile *profile, bool was_ready, bool retiring, const char *message);

#endif
