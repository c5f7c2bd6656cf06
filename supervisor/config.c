/*
 * Runs in:   broodd
 * Trusts:    the operator's intentions, not the operator's spelling
 * Blocks on: the file, at start and reload only
 *
 * libinih splits lines into section, key and value; it tells a handler neither the line's number nor that a line was longer than its
 * buffer, so the reader below counts lines, refuses long ones, and notices sections that have no key.
 */
#include "supervisor/config.h"

#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/config_keys.h"
#include "supervisor/log.h"

/*
 * Imported ahead in every profile that does not name its own list: what generated programs use most. What is large and seldom needed
 * (hashlib with its OpenSSL, decimal, statistics) would cost every fork, and is imported by the few that want it.
 */
static const char DEFAULT_PRELOAD[] =
	"typing, re, math, json, random, collections, itertools, functools, dataclasses, datetime, string, "
	"time, enum, textwrap, io, copy, operator, heapq, bisect, contextlib, abc, warnings";

struct parse {
	struct sup_config *config;
	const char *name;
	FILE *file;
	unsigned line;
	bool in_long_line;
	char *error; /* SUP_CONFIG_ERROR_MAX bytes; the first error stays */
};

static int parse_fail(struct parse *parse, const char *text)
{
	if (parse->error[0] == '\0')
		snprintf(parse->error, SUP_CONFIG_ERROR_MAX, "%s:%u: %s", parse->name, parse->line, text);
	return -1;
}

const struct sup_profile_config *sup_config_profile(const struct sup_config *config, const char *name, size_t len)
{
	for (size_t i = 0; i < config->profiles_count; i++) {
		const struct sup_profile_config *profile = config->profiles[i];

		if (strlen(profile->name) == len && memcmp(profile->name, name, len) == 0)
			return profile;
	}
	return NULL;
}

static struct sup_profile_config *profile_new(struct sup_config *config, const char *name)
{
	struct sup_profile_config *profile;
	char ignored[SUP_CONFIG_ERROR_MAX];

	if (config->profiles_count == SUP_CONFIG_PROFILES_MAX)
		return NULL;
	profile = calloc(1, sizeof(*profile));
	if (!profile)
		return NULL;
	config->profiles[config->profiles_count++] = profile;
	profile->name = strdup(name);
	profile->python = strdup("");
	profile->parked = 4;
	profile->workers = 64;
	profile->zygotes = 1;
	brood_limits_preset(&profile->limits);
	if (!profile->name || !profile->python ||
	    sup_config_set_profile(profile, "preload", DEFAULT_PRELOAD, true, ignored) < 0)
		return NULL; /* the configuration is freed as a whole */
	profile->preload_set = false;
	profile->keys_given = 0;
	return profile;
}

static bool profile_name_ok(const char *name)
{
	static const char ALLOWED[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";

	return name[0] != '\0' && strlen(name) <= 64 && strspn(name, ALLOWED) == strlen(name) &&
	       strcmp(name, "broodd") != 0;
}

/*
 * Finds or makes the section: 0 with *profile NULL for [broodd]. Overrides write `default` for [profile default].
 */
static int section_find(struct sup_config *config, const char *section, bool create,
			struct sup_profile_config **profile, char *error)
{
	static const char PREFIX[] = "profile ";
	const char *name;

	*profile = NULL;
	if (strcmp(section, "broodd") == 0)
		return 0;
	name = strncmp(section, PREFIX, sizeof(PREFIX) - 1) == 0 ? section + sizeof(PREFIX) - 1 : NULL;
	if (!name || !profile_name_ok(name)) {
		snprintf(error, SUP_CONFIG_ERROR_MAX,
			 "unknown section '%.100s'; allowed are [broodd] and [profile NAME], NAME of at most 64 "
			 "letters, "
			 "digits, '_', '-', '.' (and not 'broodd')",
			 section);
		return -1;
	}
	*profile = (struct sup_profile_config *)sup_config_profile(config, name, strlen(name));
	if (!*profile && create)
		*profile = profile_new(config, name);
	if (*profile)
		return 0;
	if (create)
		snprintf(error, SUP_CONFIG_ERROR_MAX, "profile '%s': out of memory, or more than %d profiles", name,
			 SUP_CONFIG_PROFILES_MAX);
	else
		snprintf(error, SUP_CONFIG_ERROR_MAX, "there is no profile '%s' in the configuration", name);
	return -1;
}

static int set(struct sup_config *config, const char *section, const char *key, const char *value, bool override,
	       char *error)
{
	struct sup_profile_config *profile;

	if (section_find(config, section, !override, &profile, error) < 0)
		return -1;
	if (profile)
		return sup_config_set_profile(profile, key, value, override, error);
	return sup_config_set_server(config, key, value, override, error);
}

static int on_pair(void *context, const char *section, const char *key, const char *value)
{
	struct parse *parse = context;
	char error[SUP_CONFIG_ERROR_MAX] = "";

	if (section[0] == '\0')
		return parse_fail(parse, "a key before the first section; begin with [broodd] or [profile NAME]") == 0;
	if (set(parse->config, section, key, value, false, error) == 0)
		return 1;
	parse_fail(parse, error);
	return 0;
}

/* A section exists from its header on, even if no key follows. */
static void note_section(struct parse *parse, const char *line)
{
	struct sup_profile_config *profile;
	char error[SUP_CONFIG_ERROR_MAX] = "", name[SUP_CONFIG_LINE_MAX + 2];
	const char *start = line + strspn(line, " \t\xef\xbb\xbf"), *end;

	if (*start != '[' || !(end = strchr(start, ']')))
		return;
	snprintf(name, sizeof(name), "%.*s", (int)(end - start - 1), start + 1);
	if (section_find(parse->config, name, true, &profile, error) < 0)
		parse_fail(parse, error);
}

static char *read_line(char *buffer, int room, void *context)
{
	struct parse *parse = context;
	char *line = fgets(buffer, room, parse->file);
	bool whole;

	if (!line)
		return NULL;
	whole = strchr(line, '\n') != NULL || feof(parse->file);
	if (!parse->in_long_line) {
		parse->line++;
		note_section(parse, line);
	}
	if (!whole)
		parse_fail(parse,
			   "the line is longer than 198 bytes; a list may go on in further lines of the same key");
	parse->in_long_line = !whole;
	return line;
}

static struct sup_config *config_new(void)
{
	struct sup_config *config = calloc(1, sizeof(*config));

	if (!config)
		return NULL;
	config->refs = 1;
	config->socket = strdup("");
	config->zygote_path = strdup("");
	config->socket_mode = 0600;
	config->log_level = SUP_LOG_INFO;
	config->queue = BROOD_QUEUE_PRESET;
	config->open_calls = BROOD_OPEN_CALLS_PRESET;
	config->clients = BROOD_CLIENTS_PRESET;
	config->request_bytes = BROOD_REQUEST_PRESET;
	config->nesting = BROOD_NESTING_MAX;
	config->grace_ms = 5000;
	/* Between Debian's ordinary users and systemd's dynamic ones: nobody else's, unlike `nobody`. */
	config->worker_uid = config->worker_gid = 61183;
	if (config->socket && config->zygote_path && profile_new(config, "default"))
		return config;
	sup_config_free(config);
	return NULL;
}

static void profile_free(struct sup_profile_config *profile)
{
	if (!profile)
		return;
	for (size_t i = 0; i < profile->preload_count; i++)
		free(profile->preload[i]);
	for (size_t i = 0; i < profile->paths_count; i++)
		free(profile->paths[i]);
	for (size_t i = 0; i < profile->env_count; i++) {
		free(profile->env[i].name);
		free(profile->env[i].value);
	}
	free(profile->name);
	free(profile->python);
	free(profile);
}

struct sup_config *sup_config_ref(struct sup_config *config)
{
	config->refs++;
	return config;
}

void sup_config_free(struct sup_config *config)
{
	if (!config || --config->refs > 0)
		return;
	for (size_t i = 0; i < config->profiles_count; i++)
		profile_free(config->profiles[i]);
	free(config->socket);
	free(config->zygote_path);
	free(config);
}

static int parse_file(struct sup_config *config, const char *name, FILE *file, char *error)
{
	struct parse parse = {.config = config, .name = name, .file = file, .error = error};
	int bad_line = ini_parse_stream(read_line, &parse, on_pair, &parse);

	if (ferror(file)) {
		snprintf(error, SUP_CONFIG_ERROR_MAX, "%s: cannot be read: %s", name, strerror(errno));
	} else if (bad_line != 0 && error[0] == '\0') {
		snprintf(error, SUP_CONFIG_ERROR_MAX,
			 "%s:%d: neither [SECTION] nor KEY = VALUE nor a comment that begins with '#' or ';'", name,
			 bad_line);
	}
	return error[0] == '\0' ? 0 : -1;
}

/* SECTION:KEY=VALUE; a section is `broodd` or a profile's name. */
static int apply_override(struct sup_config *config, const char *text, char *error)
{
	char section[128], key[128], reason[SUP_CONFIG_ERROR_MAX] = "";
	const char *colon = strchr(text, ':'), *equals = colon ? strchr(colon, '=') : NULL;
	int result = -1;

	if (!colon || !equals || colon - text > 64 || equals - colon > 100) {
		snprintf(error, SUP_CONFIG_ERROR_MAX,
			 "-o %.200s: allowed is SECTION:KEY=VALUE, for example default:wall=10s", text);
		return -1;
	}
	snprintf(section, sizeof(section), "%.*s", (int)(colon - text), text);
	snprintf(key, sizeof(key), "%.*s", (int)(equals - colon - 1), colon + 1);
	if (strcmp(section, "broodd") != 0)
		snprintf(section, sizeof(section), "profile %.*s", (int)(colon - text), text);
	result = set(config, section, key, equals + 1, true, reason);
	if (result < 0)
		snprintf(error, SUP_CONFIG_ERROR_MAX, "-o %.200s: %.700s", text, reason);
	return result;
}

/* Fewer workers than are to be kept waiting: then all that there may be wait. */
static void settle(struct sup_config *config)
{
	for (size_t i = 0; i < config->profiles_count; i++) {
		struct sup_profile_config *profile = config->profiles[i];

		if (profile->parked > profile->workers)
			profile->parked = profile->workers;
	}
}

struct sup_config *sup_config_load(const char *path, char *const *overrides, size_t overrides_count,
				   char error[SUP_CONFIG_ERROR_MAX])
{
	struct sup_config *config = config_new();
	int result = config ? 0 : -1;
	FILE *file;

	error[0] = '\0';
	if (!config)
		snprintf(error, SUP_CONFIG_ERROR_MAX, "out of memory");
	if (config && path) {
		file = fopen(path, "re");
		if (!file) {
			snprintf(error, SUP_CONFIG_ERROR_MAX, "%s: cannot be opened: %s", path, strerror(errno));
			result = -1;
		} else {
			result = parse_file(config, path, file, error);
			fclose(file);
		}
	}
	for (size_t i = 0; result == 0 && i < overrides_count; i++)
		result = apply_override(config, overrides[i], error);
	if (result == 0) {
		settle(config);
		return config;
	}
	sup_config_free(config);
	return NULL;
}

struct sup_config *sup_config_parse(const char *name, const char *text, size_t len, char error[SUP_CONFIG_ERROR_MAX])
{
	struct sup_config *config = config_new();
	/* fmemopen refuses a size of 0. */
	FILE *file = len > 0 ? fmemopen((void *)(uintptr_t)text, len, "r") : fopen("/dev/null", "re");
	int result = -1;

	error[0] = '\0';
	if (!config || !file)
		snprintf(error, SUP_CONFIG_ERROR_MAX, "out of memory");
	else
		result = parse_file(config, name, file, error);
	if (file)
		fclose(file);
	if (result == 0) {
		settle(config);
		return config;
	}
	sup_config_free(config);
	return NULL;
}
