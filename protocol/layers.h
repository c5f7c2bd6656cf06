/* The isolation layers by name. A receipt lists those that were on for its worker. */
#ifndef BROOD_PROTOCOL_LAYERS_H
#define BROOD_PROTOCOL_LAYERS_H

#include <stddef.h>
#include <stdint.h>

enum brood_layer {
	BROOD_LAYER_USER_NS,
	BROOD_LAYER_PID_NS,
	BROOD_LAYER_NET_NS,
	BROOD_LAYER_IPC_NS,
	BROOD_LAYER_UTS_NS,
	BROOD_LAYER_MOUNT_NS,
	BROOD_LAYER_CGROUP_NS,
	BROOD_LAYER_ROOT,    /* a root of its own that holds only what Python needs, read-only */
	BROOD_LAYER_UID,     /* an unprivileged uid that is not the supervisor's */
	BROOD_LAYER_NO_CAPS, /* every capability set empty, the bounding set too */
	BROOD_LAYER_NO_NEW_PRIVS,
	BROOD_LAYER_NOT_DUMPABLE,
	BROOD_LAYER_SECCOMP, /* the zygote's filter and the worker's tighter one */
	BROOD_LAYER_RLIMITS,
	BROOD_LAYER_COUNT,
};

#define BROOD_LAYER_BIT(layer) (UINT32_C(1) << (layer))

/* "user-ns", "pid-ns", …, "root", "uid", "no-caps", "no-new-privs", "not-dumpable", "seccomp", "rlimits". Static. */
const char *brood_layer_name(enum brood_layer layer);

/* The layer of this name, or BROOD_E_UNKNOWN. */
int brood_layer_by_name(const char *name, size_t len);

#endif
