/*
 * Runs in:   broodd, brood-zygote
 * Trusts:    its callers
 * Blocks on: nothing
 */
#include "protocol/layers.h"

#include <string.h>

#include "protocol/error.h"

static const char *const NAMES[BROOD_LAYER_COUNT] = {
	[BROOD_LAYER_USER_NS] = "user-ns",
	[BROOD_LAYER_PID_NS] = "pid-ns",
	[BROOD_LAYER_NET_NS] = "net-ns",
	[BROOD_LAYER_IPC_NS] = "ipc-ns",
	[BROOD_LAYER_UTS_NS] = "uts-ns",
	[BROOD_LAYER_MOUNT_NS] = "mount-ns",
	[BROOD_LAYER_CGROUP_NS] = "cgroup-ns",
	[BROOD_LAYER_ROOT] = "root",
	[BROOD_LAYER_UID] = "uid",
	[BROOD_LAYER_NO_CAPS] = "no-caps",
	[BROOD_LAYER_NO_NEW_PRIVS] = "no-new-privs",
	[BROOD_LAYER_NOT_DUMPABLE] = "not-dumpable",
	[BROOD_LAYER_SECCOMP] = "seccomp",
	[BROOD_LAYER_RLIMITS] = "rlimits",
};

const char *brood_layer_name(enum brood_layer layer)
{
	return NAMES[layer];
}

int brood_layer_by_name(const char *name, size_t len)
{
	for (int i = 0; i < BROOD_LAYER_COUNT; i++) {
		if (strlen(NAMES[i]) == len && memcmp(NAMES[i], name, len) == 0)
			return i;
	}
	return BROOD_E_UNKNOWN;
}
