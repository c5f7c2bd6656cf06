/*
 * Runs in:   brood-zygote, before Python starts.
 * Trusts:    the profile's uid and gid.
 * Blocks on: nothing.
 *
 * Gives up every right, in this order: the uid of root, if we have it; then a last user namespace, which owns nothing (the
 * namespaces around us belong to the outer one), so that even a kernel error that hands out its capabilities hands out little; then
 * all capabilities in it, and the ways to get new ones. What counts as a layer is what is read back at the end, not
 * what was asked for.
 *
 * Two things are lost on the way and restored: a change of uid clears the parent-death signal, and it makes the process
 * undumpable, so that the files in /proc/self belong to root; writing the maps needs them to be ours for a moment.
 */
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "zygote/proc.h"
#include "zygote/zygote.h"

#define INNER_ID 1000 /* what uid and gid look like inside; any number but 0 will do */
#define CAPABILITIES_MAX 64
#define LOCKED_BITS                                                                                      \
	(SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED | \
	 SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED)

/* Drops what the kernel knows of; refused without CAP_SETPCAP, which the read-back will show. */
static void drop_bounding_set(void)
{
	for (int cap = 0; cap < CAPABILITIES_MAX && prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
}

static int change_uid(struct zyg *z)
{
	uid_t uid = z->start.uid, real, effective, saved;
	gid_t gid = z->start.gid ? z->start.gid : getgid();

	if (geteuid() != 0 || uid == 0)
		return 0;
	if (z->start.layers_given & BROOD_LAYER_BIT(BROOD_LAYER_USER_NS)) {
		/* Without rights outside, a map holds one id only, and that is the one we have. */
		zyg_log("zygote: the uid stays, as the user namespace that it was born in has no other");
		return 0;
	}
	/* The bounding set outlives the uid; afterwards there would be no right to drop it where user namespaces are refused. */
	drop_bounding_set();
	if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		return zyg_fail(z, errno,
				"profile '%s': cannot become uid %u, gid %u: %s; set worker_uid and worker_gid in "
				"[broodd] to ids that exist there",
				z->start.profile, uid, gid, strerror(errno));
	if (getresuid(&real, &effective, &saved) < 0 || real != uid || effective != uid || saved != uid ||
	    getgroups(0, NULL) != 0)
		return zyg_fail(z, 0, "the kernel says that the uid has changed, but it has not");
	z->layers |= BROOD_LAYER_BIT(BROOD_LAYER_UID);
	return 0;
}

/* One line in each map: our own ids, under which we are known outside. */
static int write_maps(int proc, uid_t uid, gid_t gid)
{
	char map[64];
	int error = zyg_proc_write(proc, "setgroups", "deny");

	if (error)
		return error;
	snprintf(map, sizeof(map), "%d %u 1\n", INNER_ID, uid);
	error = zyg_proc_write(proc, "uid_map", map);
	if (error)
		return error;
	snprintf(map, sizeof(map), "%d %u 1\n", INNER_ID, gid);
	return zyg_proc_write(proc, "gid_map", map);
}

/* Wanted, not needed: a kernel or container that refuses it costs the layer, and the receipt says so. */
static int enter_user_namespace(struct zyg *z)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	int error;

	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		return zyg_fail(z, errno, "cannot prepare a user namespace: %s", strerror(errno));
	if (unshare(CLONE_NEWUSER) < 0) {
		zyg_log("zygote: no user namespace of its own: %s", strerror(errno));
		return 0;
	}
	z->layers |= BROOD_LAYER_BIT(BROOD_LAYER_USER_NS);
	error = write_maps(z->proc, uid, gid);
	/* Some security modules grant the namespace but no right in it. It holds without maps; only the ids look odd. */
	if (error)
		zyg_log("zygote: the ids of the user namespace cannot be mapped: %s", strerror(-error));
	return 0;
}

static int drop_capabilities(struct zyg *z)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{.effective = 0}};

	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	drop_bounding_set();
	/* Needs CAP_SETPCAP; without it no capability can come back either, as no_new_privs follows. */
	prctl(PR_SET_SECUREBITS, LOCKED_BITS, 0, 0, 0);
	if (syscall(SYS_capset, &header, none) < 0)
		return zyg_fail(z, errno, "cannot drop the capabilities: %s", strerror(errno));
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return zyg_fail(z, errno, "cannot set no_new_privs: %s", strerror(errno));
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return zyg_fail(z, errno, "cannot become undumpable: %s", strerror(errno));
	/* If the supervisor died before this, the control socket says so. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return zyg_fail(z, errno, "cannot tie this process to the supervisor's life: %s", strerror(errno));
	return 0;
}

/* True when every set of capabilities reads as empty. */
static bool no_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data) < 0)
		return false;
	for (int i = 0; i < 2; i++)
		if (data[i].effective || data[i].permitted || data[i].inheritable)
			return false;
	for (int cap = 0; cap < CAPABILITIES_MAX; cap++) {
		if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1)
			return false;
		if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, cap, 0, 0) == 1)
			return false;
	}
	return true;
}

static void read_back(struct zyg *z)
{
	if (no_capabilities())
		z->layers |= BROOD_LAYER_BIT(BROOD_LAYER_NO_CAPS);
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
		z->layers |= BROOD_LAYER_BIT(BROOD_LAYER_NO_NEW_PRIVS);
	if (prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0)
		z->layers |= BROOD_LAYER_BIT(BROOD_LAYER_NOT_DUMPABLE);
}

int zyg_step_privilege(struct zyg *z)
{
	if (change_uid(z) < 0 || enter_user_namespace(z) < 0 || drop_capabilities(z) < 0)
		return -1;
	read_back(z);
	return 0;
}
