/* The keys of the configuration, as tables, and how their values are read. Used by config.c only. */
#ifndef BROOD_SUPERVISOR_CONFIG_KEYS_H
#define BROOD_SUPERVISOR_CONFIG_KEYS_H

#include "supervisor/config.h"

/*
 * Sets `key` of the section from text. Returns 0, or -1 with a message (no file, no line) in `error`.
 * `replace` allows a key that was given already (overrides).
 */
int sup_config_set_server(struct sup_config *config, const char *key, const char *value, bool replace, char *error);
int sup_config_set_profile(struct sup_profile_config *profile, const char *key, const char *value, bool replace,
			   char *error);

#endif
