/*
 * The configuration: an INI file (read by libinih), then `-o SECTION:KEY=VALUE` from the command line.
 *
 *     [broodd]                       ; the supervisor
 *     socket = /run/brood.sock
 *     [profile data]                 ; a profile; [profile default] always exists
 *     preload = numpy, pandas
 *     wall = 10s
 *
 * An unknown section or key, a value out of its range or a key given twice is an error that names file, line and what is
 * allowed. brood.conf(5) documents every key; the tables in config_keys.c are their one definition.
 */
#ifndef BROOD_SUPERVISOR_CONFIG_H
#define BROOD_SUPERVISOR_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "protocol/limits.h"
#include "protocol/messages.h"

#define SUP_CONFIG_LINE_MAX 198 /* what libinih takes, its line end and NUL not counted; longer lines are an error */
#define SUP_CONFIG_PROFILES_MAX 64
#define SUP_CONFIG_USERS_MAX 64
#define SUP_CONFIG_ERROR_MAX 1024
#define SUP_CONFIG_WORKERS_CEILING BROOD_WORKERS_CEILING
#define SUP_CONFIG_ZYGOTES_CEILING 16
#define SUP_CONFIG_GRACE_CEILING_MS (10 * 60 * 1000)

struct sup_profile_config {
	char *name;
	char *python; /* "" when not set */
	char *preload[BROOD_PRELOAD_MAX];
	size_t preload_count;
	bool preload_set; /* the file replaced the built-in list */
	char *paths[BROOD_PATHS_MAX];
	size_t paths_count;
	struct brood_env env[BROOD_ENV_MAX];
	size_t env_count;
	uint64_t site_packages; /* 0 or 1 */
	struct brood_limits limits;
	uint64_t parked;  /* workers kept waiting */
	uint64_t workers; /* most workers alive at once, over all zygotes of the profile */
	uint64_t zygotes;
	uint32_t require;    /* layer bits without which a zygote is refused */
	uint32_t keys_given; /* bits of config_keys.c's table, to find a key given twice */
};

struct sup_config {
	char *socket;	   /* "" when not set */
	char *zygote_path; /* "" : next to broodd, or in ../libexec/brood */
	uint64_t socket_mode;
	uid_t allow_users[SUP_CONFIG_USERS_MAX];
	size_t allow_users_count; /* 0: the supervisor's own user and root */
	int log_level, log_json;
	uint64_t queue, open_calls, clients, request_bytes, nesting, grace_ms;
	uint64_t worker_uid, worker_gid; /* what workers run as when the supervisor is root */
	struct sup_profile_config *profiles[SUP_CONFIG_PROFILES_MAX];
	size_t profiles_count;
	uint32_t keys_given;
	unsigned refs;
};

/*
 * Reads `path` (NULL: no file, only defaults) and then `overrides`. Returns a configuration that the caller frees, or NULL with one line in `error`
 * ("brood.conf:12: …").
 */
struct sup_config *sup_config_load(const char *path, char *const *overrides, size_t overrides_count,
				   char error[SUP_CONFIG_ERROR_MAX]);
/* The same from memory, for tests and fuzzing; `name` stands for the file's in messages. */
struct sup_config *sup_config_parse(const char *name, const char *text, size_t len, char error[SUP_CONFIG_ERROR_MAX]);

/* One more owner; each calls sup_config_free. Returns its argument. */
struct sup_config *sup_config_ref(struct sup_config *config);
void sup_config_free(struct sup_config *config);

/* The profile of this name (not NUL-terminated), or NULL. */
const struct sup_profile_config *sup_config_profile(const struct sup_config *config, const char *name, size_t len);

#endif
