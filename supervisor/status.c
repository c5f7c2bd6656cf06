/*
 * Runs in:   broodd
 * Trusts:    its own counters
 * Blocks on: nothing
 */
#include "supervisor/status.h"

#include <unistd.h>

#include "brood_version.h"
#include "supervisor/profile.h"
#include "supervisor/record.h"
#include "supervisor/zygote.h"

static void key_u64(msgpack_packer *pk, const char *key, uint64_t value)
{
	sup_pack_text(pk, key);
	msgpack_pack_uint64(pk, value);
}

static void key_text(msgpack_packer *pk, const char *key, const char *value)
{
	sup_pack_text(pk, key);
	sup_pack_text(pk, value);
}

static size_t profiles_count(const struct sup_server *server)
{
	const struct sup_profile *profile;
	size_t count = 0;

	TAILQ_FOREACH(profile, &server->profiles, link)
	count += !profile->removed;
	return count;
}

void sup_pack_hello(msgpack_packer *pk, const struct sup_server *server)
{
	const struct sup_profile *profile;

	msgpack_pack_map(pk, 5);
	key_u64(pk, "version", 1);
	key_text(pk, "server", "broodd " BROOD_VERSION);
	key_u64(pk, "pid", (uint64_t)getpid());
	sup_pack_text(pk, "profiles");
	msgpack_pack_array(pk, profiles_count(server));
	TAILQ_FOREACH(profile, &server->profiles, link)
	{
		if (!profile->removed)
			sup_pack_text(pk, profile->name);
	}
	sup_pack_text(pk, "limits");
	msgpack_pack_map(pk, 3);
	key_u64(pk, "request_bytes", server->config->request_bytes);
	key_u64(pk, "nesting", server->config->nesting);
	key_u64(pk, "open_calls", server->config->open_calls);
}

static void pack_calls(msgpack_packer *pk, const struct sup_counters *counters)
{
	sup_pack_text(pk, "calls");
	msgpack_pack_map(pk, 4 + BROOD_STATUS_COUNT);
	key_u64(pk, "open", counters->open);
	key_u64(pk, "queued", counters->queued);
	key_u64(pk, "running", counters->running);
	key_u64(pk, "total", counters->calls_total);
	for (int i = 0; i < BROOD_STATUS_COUNT; i++)
		key_u64(pk, brood_status_name((enum brood_status)i), counters->by_status[i]);
}

/* The zygote that serves new calls, or the one that is to. */
static const struct sup_zygote *leading(const struct sup_profile *profile)
{
	const struct sup_zygote *zygote, *best = NULL;

	TAILQ_FOREACH(zygote, &profile->zygotes, link)
	{
		if (!best || (zygote->state == BROOD_ZYGOTE_READY && !zygote->retiring))
			best = zygote;
	}
	return best;
}

static void pack_profile(msgpack_packer *pk, const struct sup_profile *profile)
{
	const struct sup_zygote *zygote = leading(profile);
	bool ready = zygote && zygote->state == BROOD_ZYGOTE_READY;
	const char *state = ready ? "ready" : zygote ? "starting" : profile->failure[0] ? "failing" : "cold";
	const struct sup_zygote *each;
	uint64_t zygotes = 0;

	TAILQ_FOREACH(each, &profile->zygotes, link)
	zygotes++;
	sup_pack_text(pk, profile->name);
	msgpack_pack_map(pk, 13);
	key_text(pk, "state", state);
	key_text(pk, "message", profile->failure);
	key_u64(pk, "zygotes", zygotes);
	key_u64(pk, "parked", profile->pool.parked);
	key_u64(pk, "starting", profile->pool.warming);
	key_u64(pk, "running", profile->pool.running);
	key_u64(pk, "queued", profile->queue.count);
	key_u64(pk, "forks", profile->forks);
	key_u64(pk, "pool_hits", profile->pool_hits);
	key_u64(pk, "pool_misses", profile->pool_misses);
	sup_pack_text(pk, "layers");
	sup_pack_layers(pk, ready ? zygote->ready.layers : 0);
	key_u64(pk, "start_ms", ready ? zygote->ready.start_us / 1000 : 0);
	key_text(pk, "python", ready ? zygote->ready.python : "");
}

void sup_pack_status(msgpack_packer *pk, const struct sup_server *server)
{
	const struct sup_profile *profile;

	msgpack_pack_map(pk, 6);
	key_text(pk, "version", BROOD_VERSION);
	key_u64(pk, "pid", (uint64_t)getpid());
	key_u64(pk, "uptime_ms", (sup_now_us() - server->started_us) / 1000);
	key_u64(pk, "clients", server->clients_count);
	pack_calls(pk, &server->counters);
	sup_pack_text(pk, "profiles");
	msgpack_pack_map(pk, profiles_count(server));
	TAILQ_FOREACH(profile, &server->profiles, link)
	{
		if (!profile->removed)
			pack_profile(pk, profile);
	}
}
