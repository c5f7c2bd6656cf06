/*
 * Runs in:   broodd and brood-zygote
 * Trusts:    nothing: the other side is judged, though it is one of ours
 * Blocks on: nothing
 *
 * START is the one message with lists of unknown length, so it is the one whose parser allocates.
 */
#include "protocol/messages.h"
#include "protocol/messages_parts.h"

#include <stdlib.h>

enum start_field {
	START_PROFILE,
	START_PYTHON,
	START_PRELOAD,
	START_PATHS,
	START_ENV,
	START_SITE_PACKAGES,
	START_FILTER,
	START_LAYERS_GIVEN,
	START_UID,
	START_GID,
	START_WORKERS_MAX,
	START_LIMITS,
	START_FIELDS,
};

static const char *const NAMES[START_FIELDS] = {"profile", "python",	    "preload",	   "paths",
						"env",	   "site_packages", "filter",	   "layers_given",
						"uid",	   "gid",	    "workers_max", "limits"};

static void pack_list(msgpack_packer *pk, const char *key, char *const *texts, size_t count)
{
	mp_text(pk, key);
	msgpack_pack_array(pk, count);
	for (size_t i = 0; i < count; i++)
		mp_text(pk, texts[i]);
}

static void pack_bool(msgpack_packer *pk, const char *key, bool value)
{
	mp_text(pk, key);
	if (value)
		msgpack_pack_true(pk);
	else
		msgpack_pack_false(pk);
}

int brood_start_write(msgpack_sbuffer *to, const struct brood_start *start)
{
	size_t before = to->size;
	msgpack_packer pk;

	msgpack_packer_init(&pk, to, msgpack_sbuffer_write);
	msgpack_pack_array(&pk, 2);
	msgpack_pack_int(&pk, BROOD_C_START);
	msgpack_pack_map(&pk, START_FIELDS);
	mp_text(&pk, NAMES[START_PROFILE]);
	mp_text(&pk, start->profile);
	mp_text(&pk, NAMES[START_PYTHON]);
	mp_text(&pk, start->python);
	pack_list(&pk, NAMES[START_PRELOAD], start->preload, start->preload_count);
	pack_list(&pk, NAMES[START_PATHS], start->paths, start->paths_count);
	mp_text(&pk, NAMES[START_ENV]);
	msgpack_pack_map(&pk, start->env_count);
	for (size_t i = 0; i < start->env_count; i++) {
		mp_text(&pk, start->env[i].name);
		mp_text(&pk, start->env[i].value);
	}
	pack_bool(&pk, NAMES[START_SITE_PACKAGES], start->site_packages);
	pack_bool(&pk, NAMES[START_FILTER], start->filter);
	mp_key_u64(&pk, NAMES[START_LAYERS_GIVEN], start->layers_given);
	mp_key_u64(&pk, NAMES[START_UID], start->uid);
	mp_key_u64(&pk, NAMES[START_GID], start->gid);
	mp_key_u64(&pk, NAMES[START_WORKERS_MAX], start->workers_max);
	mp_text(&pk, NAMES[START_LIMITS]);
	brood_message_pack_limits(&pk, &start->limits);
	if (to->size - before > BROOD_CONTROL_MAX) {
		to->size = before;
		return BROOD_E_TOO_LARGE;
	}
	return brood_message_written(to, before);
}

void brood_start_free(struct brood_start *start)
{
	if (!start)
		return;
	for (size_t i = 0; i < start->preload_count; i++)
		free(start->preload[i]);
	for (size_t i = 0; i < start->paths_count; i++)
		free(start->paths[i]);
	for (size_t i = 0; i < start->env_count; i++) {
		free(start->env[i].name);
		free(start->env[i].value);
	}
	free(start->preload);
	free(start->paths);
	free(start->env);
	free(start->profile);
	free(start->python);
	memset(start, 0, sizeof(*start));
}

static int read_list(struct brood_reader *r, uint32_t max, char ***out, size_t *out_count)
{
	uint32_t count;
	int result = brood_read_array(r, &count);

	if (result < 0)
		return result;
	if (count > max)
		return BROOD_E_TOO_LARGE;
	*out = calloc(count ? count : 1, sizeof(**out));
	if (!*out)
		return BROOD_E_MEMORY;
	for (; result == 0 && *out_count < count; ++*out_count)
		result = brood_message_strdup(r, &(*out)[*out_count], BROOD_TEXT_MAX);
	return result;
}

static int read_env(struct brood_reader *r, struct brood_start *start)
{
	uint32_t count;
	int result = brood_read_map(r, &count);

	if (result < 0)
		return result;
	if (count > BROOD_ENV_MAX)
		return BROOD_E_TOO_LARGE;
	start->env = calloc(count ? count : 1, sizeof(*start->env));
	if (!start->env)
		return BROOD_E_MEMORY;
	for (; result == 0 && start->env_count < count; start->env_count++) {
		struct brood_env *env = &start->env[start->env_count];

		result = brood_message_strdup(r, &env->name, BROOD_NAME_MAX);
		if (result == 0)
			result = brood_message_strdup(r, &env->value, BROOD_TEXT_MAX);
	}
	return result;
}

static int read_u32(struct brood_reader *r, uint64_t max, uint32_t *out)
{
	uint64_t number;
	int result = brood_read_u64(r, &number);

	if (result < 0)
		return result;
	if (number > max)
		return BROOD_E_RANGE;
	*out = (uint32_t)number;
	return 0;
}

static int read_field(struct brood_reader *r, enum start_field field, struct brood_start *start)
{
	switch (field) {
	case START_PROFILE:
		return brood_message_strdup(r, &start->profile, BROOD_NAME_MAX);
	case START_PYTHON:
		return brood_message_strdup(r, &start->python, BROOD_TEXT_MAX);
	case START_PRELOAD:
		return read_list(r, BROOD_PRELOAD_MAX, &start->preload, &start->preload_count);
	case START_PATHS:
		return read_list(r, BROOD_PATHS_MAX, &start->paths, &start->paths_count);
	case START_ENV:
		return read_env(r, start);
	case START_SITE_PACKAGES:
		return brood_read_bool(r, &start->site_packages);
	case START_FILTER:
		return brood_read_bool(r, &start->filter);
	case START_LAYERS_GIVEN:
		return read_u32(r, BROOD_LAYER_BIT(BROOD_LAYER_COUNT) - 1, &start->layers_given);
	case START_UID:
		return read_u32(r, UINT32_MAX - 1, &start->uid);
	case START_GID:
		return read_u32(r, UINT32_MAX - 1, &start->gid);
	case START_WORKERS_MAX:
		return read_u32(r, BROOD_WORKERS_CEILING, &start->workers_max);
	case START_LIMITS:
		return brood_message_limits(r, &start->limits);
	case START_FIELDS:
		break;
	}
	return BROOD_E_UNKNOWN;
}

static int read_start(struct brood_reader *r, struct brood_start *start)
{
	unsigned seen = 0;
	uint32_t count;
	int result = brood_read_map(r, &count);

	for (; result == 0 && count > 0; count--) {
		result = brood_message_key(r, NAMES, START_FIELDS, &seen);
		if (result >= 0)
			result = read_field(r, (enum start_field)result, start);
	}
	if (result == 0 && seen != (1u << START_FIELDS) - 1)
		result = BROOD_E_MISSING;
	if (result == 0 && start->workers_max == 0)
		result = BROOD_E_RANGE;
	return result;
}

int brood_start_parse(const uint8_t *packet, size_t len, struct brood_start *out)
{
	struct brood_start start = {0};
	struct brood_reader r;
	int result = len > BROOD_CONTROL_MAX ? BROOD_E_TOO_LARGE
					     : mp_open(&r, packet, len, BROOD_MESSAGE_DEPTH, 2, BROOD_C_START);

	if (result == 0)
		result = read_start(&r, &start);
	if (result < 0) {
		brood_start_free(&start);
		return result;
	}
	*out = start;
	return 0;
}
