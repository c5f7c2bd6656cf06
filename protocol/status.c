/*
 * Runs in:   broodd, brood
 * Trusts:    its callers
 * Blocks on: nothing
 */
#include "protocol/status.h"

#include <string.h>

#include "protocol/error.h"

static const struct {
	const char *name;
	int exit_status;
} STATUSES[BROOD_STATUS_COUNT] = {
	[BROOD_OK] = {"ok", 0},
	[BROOD_ERROR] = {"error", 1},
	[BROOD_TIMEOUT] = {"timeout", 124},
	[BROOD_CPU] = {"cpu", 137},
	[BROOD_MEMORY] = {"memory", 137},
	[BROOD_OUTPUT] = {"output", 137},
	[BROOD_DENIED] = {"denied", 126},
	[BROOD_CRASHED] = {"crashed", 137},
	[BROOD_CANCELLED] = {"cancelled", BROOD_EXIT_FAILED},
	[BROOD_BUSY] = {"busy", 75},
	[BROOD_LOST] = {"lost", BROOD_EXIT_FAILED},
};

const char *brood_status_name(enum brood_status status)
{
	return STATUSES[status].name;
}

int brood_status_by_name(const char *name, size_t len)
{
	for (int i = 0; i < BROOD_STATUS_COUNT; i++) {
		if (strlen(STATUSES[i].name) == len && memcmp(STATUSES[i].name, name, len) == 0)
			return i;
	}
	return BROOD_E_UNKNOWN;
}

int brood_status_exit(enum brood_status status, long exit_code)
{
	if (status == BROOD_OK && exit_code != 0)
		return 1;
	return STATUSES[status].exit_status;
}
