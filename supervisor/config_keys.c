/*
 * Runs in:   broodd
 * Trusts:    the operator's intentions, not the operator's spelling
 * Blocks on: the user database (allow_users), at start and reload only
 *
 * One table a section: name, how to read it, where it goes, its range. Everything that messages say about a key is taken from
 * its row.
 */
#include "supervisor/config_keys.h"

#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/error.h"
#include "protocol/layers.h"
#include "supervisor/log.h"

struct key_spec;
/* `target` is the section's structure. */
typedef int (*key_reader)(const struct key_spec *spec, void *target, const char *value, char *error);

struct key_spec {
	const char *name;
	key_reader read;
	size_t offset; /* of the field in the section's structure */
	uint64_t floor, ceiling;
	const char *allowed; /* for messages */
};

static int fail(char *error, const struct key_spec *spec, const char *value)
{
	snprintf(error, SUP_CONFIG_ERROR_MAX, "%s = %.100s: allowed is %s", spec->name, value, spec->allowed);
	return -1;
}

static int read_string(const struct key_spec *spec, void *target, const char *value, char *error)
{
	char **field = (char **)((char *)target + spec->offset);
	char *copy;

	if (strlen(value) > BROOD_TEXT_MAX)
		return fail(error, spec, value);
	copy = strdup(value);
	if (!copy)
		return fail(error, spec, "(out of memory)");
	free(*field);
	*field = copy;
	return 0;
}

static int store(const struct key_spec *spec, void *target, const char *value, uint64_t number, char *error)
{
	if (number < spec->floor || number > spec->ceiling)
		return fail(error, spec, value);
	memcpy((char *)target + spec->offset, &number, sizeof(number));
	return 0;
}

static int read_number(const struct key_spec *spec, void *target, const char *value, char *error)
{
	char *end;
	unsigned long long number;

	errno = 0;
	number = strtoull(value, &end, 10);
	if (!isdigit((unsigned char)value[0]) || *end != '\0' || errno)
		return fail(error, spec, value);
	return store(spec, target, value, number, error);
}

static int read_mode(const struct key_spec *spec, void *target, const char *value, char *error)
{
	char *end;
	unsigned long number = strtoul(value, &end, 8);

	if (!isdigit((unsigned char)value[0]) || *end != '\0')
		return fail(error, spec, value);
	return store(spec, target, value, number, error);
}

static int read_bool(const struct key_spec *spec, void *target, const char *value, char *error)
{
	static const char *const WORDS[2][4] = {{"no", "off", "false", "0"}, {"yes", "on", "true", "1"}};

	for (uint64_t truth = 0; truth < 2; truth++) {
		for (size_t i = 0; i < 4; i++) {
			if (strcmp(value, WORDS[truth][i]) == 0)
				return store(spec, target, value, truth, error);
		}
	}
	return fail(error, spec, value);
}

static int read_duration(const struct key_spec *spec, void *target, const char *value, char *error)
{
	uint64_t ms;

	if (brood_parse_duration_ms(value, &ms) < 0)
		return fail(error, spec, value);
	return store(spec, target, value, ms, error);
}

static int read_size(const struct key_spec *spec, void *target, const char *value, char *error)
{
	uint64_t bytes;

	if (brood_parse_size(value, &bytes) < 0)
		return fail(error, spec, value);
	return store(spec, target, value, bytes, error);
}

static int read_limit(const struct key_spec *spec, void *target, const char *value, char *error)
{
	struct sup_profile_config *profile = target;
	const struct brood_limit_spec *limit = &BROOD_LIMITS[spec->offset];
	bool is_time = limit->unit == BROOD_UNIT_MS;
	uint64_t number;

	if ((is_time ? brood_parse_duration_ms(value, &number) : brood_parse_size(value, &number)) < 0 ||
	    number < limit->floor || number > limit->ceiling) {
		snprintf(error, SUP_CONFIG_ERROR_MAX, "%s = %.100s: allowed is %s from %llu to %llu %s", spec->name,
			 value, is_time ? "a time such as 1500ms, 5s or 2m," : "a size such as 64k, 512m or 1g,",
			 (unsigned long long)limit->floor, (unsigned long long)limit->ceiling,
			 is_time ? "ms" : "bytes");
		return -1;
	}
	profile->limits.v[spec->offset] = number;
	return 0;
}

static int read_log_level(const struct key_spec *spec, void *target, const char *value, char *error)
{
	int level = sup_log_level_by_name(value);

	if (level < 0)
		return fail(error, spec, value);
	((struct sup_config *)target)->log_level = level;
	return 0;
}

static int read_log_format(const struct key_spec *spec, void *target, const char *value, char *error)
{
	int format = sup_log_format_by_name(value);

	if (format < 0)
		return fail(error, spec, value);
	((struct sup_config *)target)->log_json = format;
	return 0;
}

/* Calls `add` for each item of a list that is separated by commas; empty items are skipped. */
static int each_item(const struct key_spec *spec, void *target, const char *value, char *error,
		     int (*add)(const struct key_spec *, void *, char *, char *))
{
	char *copy = strdup(value), *rest = copy, *item;
	int result = copy ? 0 : fail(error, spec, "(out of memory)");

	while (result == 0 && (item = strsep(&rest, ",")) != NULL) {
		size_t len;

		item += strspn(item, " \t");
		for (len = strlen(item); len > 0 && isspace((unsigned char)item[len - 1]); len--)
			;
		item[len] = '\0';
		if (len > 0)
			result = add(spec, target, item, error);
	}
	free(copy);
	return result;
}

static int add_user(const struct key_spec *spec, void *target, char *item, char *error)
{
	struct sup_config *config = target;
	char *end;
	unsigned long uid = strtoul(item, &end, 10);
	const struct passwd *entry;

	if (config->allow_users_count == SUP_CONFIG_USERS_MAX)
		return fail(error, spec, item);
	if (!isdigit((unsigned char)item[0]) || *end != '\0') {
		entry = getpwnam(item);
		if (!entry) {
			snprintf(error, SUP_CONFIG_ERROR_MAX, "allow_users: there is no user '%.100s' on this system",
				 item);
			return -1;
		}
		uid = entry->pw_uid;
	} else if (uid >= UINT32_MAX) {
		return fail(error, spec, item);
	}
	config->allow_users[config->allow_users_count++] = (uid_t)uid;
	return 0;
}

static int read_users(const struct key_spec *spec, void *target, const char *value, char *error)
{
	return each_item(spec, target, value, error, add_user);
}

static int add_module(const struct key_spec *spec, void *target, char *item, char *error)
{
	struct sup_profile_config *profile = target;

	for (const char *c = item; *c; c++) {
		if (!isalnum((unsigned char)*c) && *c != '_' && *c != '.' && (unsigned char)*c < 0x80)
			return fail(error, spec, item);
	}
	if (profile->preload_count == BROOD_PRELOAD_MAX || strlen(item) > BROOD_NAME_MAX)
		return fail(error, spec, item);
	profile->preload[profile->preload_count] = strdup(item);
	if (!profile->preload[profile->preload_count])
		return fail(error, spec, "(out of memory)");
	profile->preload_count++;
	return 0;
}

static int read_preload(const struct key_spec *spec, void *target, const char *value, char *error)
{
	struct sup_profile_config *profile = target;

	if (!profile->preload_set) {
		/* The first line replaces the built-in list; further lines of the key add to it. */
		while (profile->preload_count > 0)
			free(profile->preload[--profile->preload_count]);
		profile->preload_set = true;
	}
	return each_item(spec, target, value, error, add_module);
}

static int add_path(const struct key_spec *spec, void *target, char *item, char *error)
{
	struct sup_profile_config *profile = target;

	if (item[0] != '/' || profile->paths_count == BROOD_PATHS_MAX || strlen(item) > BROOD_TEXT_MAX)
		return fail(error, spec, item);
	profile->paths[profile->paths_count] = strdup(item);
	if (!profile->paths[profile->paths_count])
		return fail(error, spec, "(out of memory)");
	profile->paths_count++;
	return 0;
}

static int read_paths(const struct key_spec *spec, void *target, const char *value, char *error)
{
	return each_item(spec, target, value, error, add_path);
}

static int add_layer(const struct key_spec *spec, void *target, char *item, char *error)
{
	struct sup_profile_config *profile = target;
	int layer = brood_layer_by_name(item, strlen(item));

	if (layer < 0)
		return fail(error, spec, item);
	profile->require |= BROOD_LAYER_BIT((uint32_t)layer);
	return 0;
}

static int read_layers(const struct key_spec *spec, void *target, const char *value, char *error)
{
	return each_item(spec, target, value, error, add_layer);
}

#define IN_SERVER(field) offsetof(struct sup_config, field)
#define IN_PROFILE(field) offsetof(struct sup_profile_config, field)

static const struct key_spec SERVER_KEYS[] = {
	{"socket", read_string, IN_SERVER(socket), 0, 0, "a path of at most 107 bytes"},
	{"socket_mode", read_mode, IN_SERVER(socket_mode), 0, 0777, "an octal mode such as 0600 or 0660"},
	{"allow_users", read_users, 0, 0, 0, "a list of at most 64 user names or uids"},
	{"log_level", read_log_level, 0, 0, 0, "debug, info, warning or error"},
	{"log_format", read_log_format, 0, 0, 0, "text or json"},
	{"queue", read_number, IN_SERVER(queue), 0, BROOD_QUEUE_CEILING, "0 to 1048576 calls"},
	{"open_calls", read_number, IN_SERVER(open_calls), 1, BROOD_OPEN_CALLS_CEILING, "1 to 65536 calls"},
	{"clients", read_number, IN_SERVER(clients), 1, BROOD_CLIENTS_CEILING, "1 to 65536 connections"},
	{"request", read_size, IN_SERVER(request_bytes), 1024, BROOD_REQUEST_CEILING, "1k to 256m"},
	{"nesting", read_number, IN_SERVER(nesting), 1, BROOD_NESTING_MAX, "1 to 64"},
	{"grace", read_duration, IN_SERVER(grace_ms), 0, SUP_CONFIG_GRACE_CEILING_MS, "0s to 10m"},
	{"zygote_path", read_string, IN_SERVER(zygote_path), 0, 0, "a path"},
	{"worker_uid", read_number, IN_SERVER(worker_uid), 1, UINT32_MAX - 1, "a uid other than 0"},
	{"worker_gid", read_number, IN_SERVER(worker_gid), 1, UINT32_MAX - 1, "a gid other than 0"},
};

static const struct key_spec PROFILE_KEYS[] = {
	{"python", read_string, IN_PROFILE(python), 0, 0, "the path of an interpreter or of a virtual environment"},
	{"preload", read_preload, 0, 0, 0, "a list of at most 256 module names"},
	{"paths", read_paths, 0, 0, 0, "a list of at most 64 absolute directories"},
	{"site_packages", read_bool, IN_PROFILE(site_packages), 0, 1, "yes or no"},
	{"wall", read_limit, BROOD_LIMIT_WALL, 0, 0, NULL}, /* offset: which limit; ranges are in protocol/limits.h */
	{"cpu", read_limit, BROOD_LIMIT_CPU, 0, 0, NULL},
	{"memory", read_limit, BROOD_LIMIT_MEMORY, 0, 0, NULL},
	{"output", read_limit, BROOD_LIMIT_OUTPUT, 0, 0, NULL},
	{"value", read_limit, BROOD_LIMIT_VALUE, 0, 0, NULL},
	{"parked", read_number, IN_PROFILE(parked), 0, SUP_CONFIG_WORKERS_CEILING, "0 to 4096 workers"},
	{"workers", read_number, IN_PROFILE(workers), 1, SUP_CONFIG_WORKERS_CEILING, "1 to 4096 workers"},
	{"zygotes", read_number, IN_PROFILE(zygotes), 1, SUP_CONFIG_ZYGOTES_CEILING, "1 to 16 zygotes"},
	{"require", read_layers, 0, 0, 0,
	 "a list of user-ns, pid-ns, net-ns, ipc-ns, uts-ns, mount-ns, cgroup-ns, root, uid, no-caps, no-new-privs, "
	 "not-dumpable, seccomp, rlimits"},
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static const struct key_spec *find(const struct key_spec *table, size_t count, const char *key)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(table[i].name, key) == 0)
			return &table[i];
	}
	return NULL;
}

static void fail_unknown(const struct key_spec *table, size_t count, const char *key, const char *more, char *error)
{
	size_t n = (size_t)snprintf(error, SUP_CONFIG_ERROR_MAX, "unknown key '%.100s'; allowed are", key);

	for (size_t i = 0; i < count; i++)
		n += (size_t)snprintf(error + n, SUP_CONFIG_ERROR_MAX - n, "%s %s", i ? "," : "", table[i].name);
	snprintf(error + n, SUP_CONFIG_ERROR_MAX - n, "%s", more);
}

static bool is_list(const struct key_spec *spec)
{
	return spec->read == read_preload || spec->read == read_paths || spec->read == read_users ||
	       spec->read == read_layers;
}

/* Lists may be given in several lines, which add up; anything else only once. */
static int note_given(uint32_t *given, size_t index, const struct key_spec *spec, bool replace, char *error)
{
	uint32_t bit = UINT32_C(1) << index;

	if ((*given & bit) && !replace && !is_list(spec)) {
		snprintf(error, SUP_CONFIG_ERROR_MAX, "%s is given twice in this section", spec->name);
		return -1;
	}
	*given |= bit;
	return 0;
}

int sup_config_set_server(struct sup_config *config, const char *key, const char *value, bool replace, char *error)
{
	const struct key_spec *spec = find(SERVER_KEYS, COUNT(SERVER_KEYS), key);

	if (!spec) {
		fail_unknown(SERVER_KEYS, COUNT(SERVER_KEYS), key, "", error);
		return -1;
	}
	if (note_given(&config->keys_given, (size_t)(spec - SERVER_KEYS), spec, replace, error) < 0)
		return -1;
	return spec->read(spec, config, value, error);
}

static int set_env(struct sup_profile_config *profile, const char *name, const char *value, char *error)
{
	struct brood_env *env;

	if (name[0] == '\0' || strchr(name, '=') || strlen(name) > BROOD_NAME_MAX || strlen(value) > BROOD_TEXT_MAX ||
	    profile->env_count == BROOD_ENV_MAX) {
		snprintf(error, SUP_CONFIG_ERROR_MAX, "env.%.100s: allowed are at most %d variables, env.NAME = VALUE",
			 name, BROOD_ENV_MAX);
		return -1;
	}
	env = &profile->env[profile->env_count];
	env->name = strdup(name);
	env->value = strdup(value);
	profile->env_count++; /* even when half made, so that it is freed */
	if (env->name && env->value)
		return 0;
	snprintf(error, SUP_CONFIG_ERROR_MAX, "env.%.100s: out of memory", name);
	return -1;
}

int sup_config_set_profile(struct sup_profile_config *profile, const char *key, const char *value, bool replace,
			   char *error)
{
	const struct key_spec *spec;

	if (strncmp(key, "env.", 4) == 0)
		return set_env(profile, key + 4, value, error);
	spec = find(PROFILE_KEYS, COUNT(PROFILE_KEYS), key);
	if (!spec) {
		fail_unknown(PROFILE_KEYS, COUNT(PROFILE_KEYS), key, ", env.NAME", error);
		return -1;
	}
	if (note_given(&profile->keys_given, (size_t)(spec - PROFILE_KEYS), spec, replace, error) < 0)
		return -1;
	return spec->read(spec, profile, value, error);
}
