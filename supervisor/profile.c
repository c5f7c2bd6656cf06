/*
 * Runs in:   broodd
 * Trusts:    its own counts
 * Blocks on: nothing
 *
 * The life of a profile: cold (no zygote yet), starting, ready, failing (the last start failed; the next try comes after a delay that doubles).
 * While it starts, calls wait. While it fails, they are refused at once with the reason, rather than left to wait for what may never come.
 */
#include "supervisor/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/call.h"
#include "supervisor/client.h"
#include "supervisor/log.h"
#include "supervisor/worker.h"
#include "supervisor/zygote.h"

#define REFILL_DELAY_US 2000

#define ITEM_CALL(queue_item) ((struct sup_call *)((char *)(queue_item)-offsetof(struct sup_call, item)))

static void on_retry(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	sup_profile_start(context);
}

static void on_wake(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	sup_profile_pump(context);
}

struct sup_profile *sup_profile_new(struct sup_server *server, struct sup_config *owner,
				    const struct sup_profile_config *config)
{
	struct sup_profile *profile = calloc(1, sizeof(*profile));

	if (!profile)
		return NULL;
	profile->server = server;
	profile->config_owner = sup_config_ref(owner);
	profile->config = config;
	snprintf(profile->name, sizeof(profile->name), "%s", config->name);
	profile->retry_ms = SUP_RETRY_FIRST_MS;
	sup_queue_init(&profile->queue);
	TAILQ_INIT(&profile->zygotes);
	TAILQ_INIT(&profile->parked);
	profile->retry_timer = evtimer_new(server->base, on_retry, profile);
	profile->wake = evtimer_new(server->base, on_wake, profile);
	TAILQ_INSERT_TAIL(&server->profiles, profile, link);
	if (profile->retry_timer && profile->wake)
		return profile;
	sup_profile_free(profile);
	return NULL;
}

void sup_profile_free(struct sup_profile *profile)
{
	struct sup_zygote *zygote;
	struct sup_client *client;

	while ((zygote = TAILQ_FIRST(&profile->zygotes)) != NULL)
		sup_zygote_destroy(zygote);
	TAILQ_FOREACH(client, &profile->server->clients, link)
	sup_client_drop_lanes(client, profile);
	TAILQ_REMOVE(&profile->server->profiles, profile, link);
	if (profile->retry_timer)
		event_free(profile->retry_timer);
	if (profile->wake)
		event_free(profile->wake);
	sup_config_free(profile->config_owner);
	free(profile);
}

struct sup_profile *sup_profile_find(struct sup_server *server, const char *name, size_t len)
{
	struct sup_profile *profile;

	TAILQ_FOREACH(profile, &server->profiles, link)
	{
		if (!profile->removed && strlen(profile->name) == len && memcmp(profile->name, name, len) == 0)
			return profile;
	}
	return NULL;
}

/* --- matching --- */

static struct sup_pool_rules rules_of(const struct sup_profile *profile)
{
	return (struct sup_pool_rules){
		.parked_target = profile->removed || profile->server->stopping ? 0 : (unsigned)profile->config->parked,
		.workers_max = (unsigned)profile->config->workers,
	};
}

/* Gives the call to a parked worker. False when there is none; the call is untouched then. */
static bool dispatch(struct sup_profile *profile, struct sup_call *call)
{
	struct sup_worker *worker;

	while ((worker = TAILQ_FIRST(&profile->parked)) != NULL) {
		if (sup_worker_run(worker, call) < 0)
			continue; /* that one is out of the list now */
		call->client->running++;
		profile->server->counters.running++;
		return true;
	}
	return false;
}

/* A client beyond its share waits although workers are free, until one of its own calls ends. */
static bool beyond_share(const struct sup_profile *profile, const struct sup_client *client)
{
	struct sup_pool_rules rules = rules_of(profile);

	return client->running >= sup_pool_client_share(&rules, profile->server->clients_count);
}

static bool may_start(const struct sup_profile *profile, const struct sup_client *client)
{
	return !sup_client_backlogged(client) && !beyond_share(profile, client);
}

static void wait_for_worker(struct sup_profile *profile, struct sup_call *call)
{
	static const struct sup_ending FULL = {.status = BROOD_BUSY, .message = "the queue is full; try again later"};
	static const struct sup_ending NO_MEMORY = {.status = BROOD_BUSY,
						    .message = "the supervisor has no memory to queue the call"};
	struct sup_server *server = profile->server;
	struct sup_lane *lane;

	if (server->counters.queued >= server->config->queue) {
		sup_call_finish(call, &FULL);
		return;
	}
	lane = sup_client_lane(call->client, profile);
	if (!lane || sup_call_keep_params(call) < 0) {
		sup_call_finish(call, &NO_MEMORY);
		return;
	}
	sup_queue_push(lane, &call->item);
	server->counters.queued++;
}

void sup_profile_submit(struct sup_profile *profile, struct sup_call *call)
{
	if (TAILQ_EMPTY(&profile->zygotes) && profile->failure[0]) {
		sup_call_refuse(call, SUP_RPC_UNAVAILABLE, profile->failure);
		return;
	}
	if (profile->queue.count == 0 && may_start(profile, call->client) && dispatch(profile, call)) {
		profile->pool_hits++;
	} else {
		profile->pool_misses++;
		wait_for_worker(profile, call);
	}
	/*
	 * Refilling is not this call's business: a fork now would compete with its worker for a core. It begins when the call ends (pump), or soon; at
	 * once only when somebody has to wait for it.
	 */
	if (profile->queue.count == 0 && !TAILQ_EMPTY(&profile->parked))
		sup_timer_set(profile->wake, REFILL_DELAY_US);
	else
		sup_profile_wake(profile);
}

static struct sup_zygote *least_loaded(struct sup_profile *profile)
{
	struct sup_zygote *zygote, *best = NULL;

	TAILQ_FOREACH(zygote, &profile->zygotes, link)
	{
		if (zygote->state == BROOD_ZYGOTE_READY && !zygote->retiring &&
		    (!best || zygote->workers_count < best->workers_count))
			best = zygote;
	}
	return best;
}

static void fork_wanted(struct sup_profile *profile)
{
	struct sup_pool_rules rules = rules_of(profile);
	unsigned wanted = sup_pool_forks_wanted(&profile->pool, &rules, profile->queue.count);

	for (unsigned i = 0; i < wanted; i++) {
		/* While calls run or wait, a warm-up would take its time from them; what a worker needs most it has copied anyway. */
		bool warm = profile->pool.running == 0 && profile->queue.count == 0;
		struct sup_zygote *zygote = least_loaded(profile);

		if (!zygote || sup_zygote_fork(zygote, warm) < 0)
			return;
		profile->forks++;
	}
}

static void retire_surplus(struct sup_profile *profile)
{
	struct sup_pool_rules rules = rules_of(profile);
	unsigned surplus = sup_pool_surplus(&profile->pool, &rules);

	if (profile->queue.count > 0)
		return;
	for (; surplus > 0; surplus--)
		sup_worker_discard(TAILQ_LAST(&profile->parked, sup_worker_list));
}

/* Lanes of clients that may not start anything now are passed over. Only clients that wait are looked at. */
static void hold_lanes(struct sup_profile *profile)
{
	struct sup_lane *lane;

	TAILQ_FOREACH(lane, &profile->queue.lanes, link)
	lane->held = !may_start(profile, lane->owner);
}

static void serve_queue(struct sup_profile *profile)
{
	while (profile->queue.count > 0 && !TAILQ_EMPTY(&profile->parked)) {
		struct sup_queue_item *item;
		struct sup_call *call;

		hold_lanes(profile);
		item = sup_queue_pop(&profile->queue);
		if (!item)
			return;
		call = ITEM_CALL(item);
		profile->server->counters.queued--;
		if (!dispatch(profile, call)) {
			/* Only a defect of every parked worker leads here; the call keeps its turn as well as may be. */
			sup_queue_push(sup_client_lane(call->client, profile), item);
			profile->server->counters.queued++;
			return;
		}
	}
}

void sup_profile_wake(struct sup_profile *profile)
{
	event_active(profile->wake, 0, 0);
}

void sup_profile_pump(struct sup_profile *profile)
{
	serve_queue(profile);
	if (profile->server->stopping)
		return;
	if (profile->removed && profile->queue.count == 0 && profile->pool.running == 0) {
		struct sup_zygote *zygote, *next;

		for (zygote = TAILQ_FIRST(&profile->zygotes); zygote; zygote = next) {
			next = TAILQ_NEXT(zygote, link);
			sup_zygote_retire(zygote);
		}
		return;
	}
	if (profile->queue.count > 0 && TAILQ_EMPTY(&profile->zygotes))
		sup_profile_start(profile);
	fork_wanted(profile);
	retire_surplus(profile);
}

/* --- zygotes --- */

static unsigned current_zygotes(const struct sup_profile *profile)
{
	const struct sup_zygote *zygote;
	unsigned count = 0;

	TAILQ_FOREACH(zygote, &profile->zygotes, link)
	count += zygote->generation == profile->generation && !zygote->retiring && zygote->state != BROOD_ZYGOTE_GONE;
	return count;
}

static void refuse_queued(struct sup_profile *profile)
{
	struct sup_queue_item *item;
	struct sup_lane *lane;

	TAILQ_FOREACH(lane, &profile->queue.lanes, link)
	lane->held = false;
	while ((item = sup_queue_pop(&profile->queue)) != NULL) {
		profile->server->counters.queued--;
		sup_call_refuse(ITEM_CALL(item), SUP_RPC_UNAVAILABLE, profile->failure);
	}
}

static void start_failed(struct sup_profile *profile, const char *message)
{
	snprintf(profile->failure, sizeof(profile->failure), "%s", message);
	if (profile->server->stdio)
		sup_log(SUP_LOG_INFO, "%s", profile->failure); /* the one client is told in its answer */
	else
		sup_log(SUP_LOG_ERROR, "%s; next try in %u ms", profile->failure, profile->retry_ms);
	sup_timer_set(profile->retry_timer, (uint64_t)profile->retry_ms * 1000);
	profile->retry_ms = profile->retry_ms * 2 < SUP_RETRY_MOST_MS ? profile->retry_ms * 2 : SUP_RETRY_MOST_MS;
	/* An older zygote that still serves keeps the profile alive (a reload that failed). */
	if (TAILQ_EMPTY(&profile->zygotes))
		refuse_queued(profile);
}

void sup_profile_start(struct sup_profile *profile)
{
	char error[SUP_FAILURE_MAX];

	if (profile->server->stopping || profile->removed)
		return;
	for (unsigned have = current_zygotes(profile); have < profile->config->zygotes; have++) {
		if (!sup_zygote_new(profile, error)) {
			start_failed(profile, error);
			return;
		}
	}
}

void sup_profile_on_ready(struct sup_profile *profile, struct sup_zygote *ready)
{
	struct sup_zygote *zygote, *next;

	profile->failure[0] = '\0';
	profile->retry_ms = SUP_RETRY_FIRST_MS;
	profile->park_failures = 0;
	for (zygote = TAILQ_FIRST(&profile->zygotes); zygote; zygote = next) {
		next = TAILQ_NEXT(zygote, link);
		if (zygote != ready && zygote->generation < ready->generation)
			sup_zygote_retire(zygote);
	}
	sup_profile_pump(profile);
}

void sup_profile_on_zygote_end(struct sup_profile *profile, bool was_ready, bool retiring, const char *message)
{
	struct sup_server *server = profile->server;

	if (server->stopping)
		return;
	if (profile->removed) {
		if (!TAILQ_EMPTY(&profile->zygotes))
			return;
		snprintf(profile->failure, sizeof(profile->failure), "profile '%s' was removed from the configuration",
			 profile->name);
		refuse_queued(profile);
		sup_profile_free(profile);
		return;
	}
	if (retiring)
		return;
	if (!was_ready || profile->park_failures >= SUP_PARK_FAILURES_MAX) {
		start_failed(profile, message);
		return;
	}
	sup_profile_start(profile);
	sup_profile_pump(profile);
}

void sup_profile_reload(struct sup_profile *profile, struct sup_config *owner, const struct sup_profile_config *config)
{
	if (!config) {
		profile->removed = true;
		sup_log(SUP_LOG_INFO, "profile %s is no longer configured; it ends with its calls", profile->name);
		evtimer_del(profile->retry_timer);
		if (TAILQ_EMPTY(&profile->zygotes) && profile->queue.count == 0)
			sup_profile_free(profile);
		else
			sup_profile_wake(profile);
		return;
	}
	sup_config_free(profile->config_owner);
	profile->config_owner = sup_config_ref(owner);
	profile->config = config;
	profile->generation++;
	profile->retry_ms = SUP_RETRY_FIRST_MS;
	/* A profile that nobody has used yet stays cold. */
	if (!TAILQ_EMPTY(&profile->zygotes) || profile->failure[0] || !profile->server->stdio)
		sup_profile_start(profile);
}
