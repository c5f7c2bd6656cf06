/*
 * Taking rights from mounts.
 */
#ifndef BROOD_ZYGOTE_MOUNTS_H
#define BROOD_ZYGOTE_MOUNTS_H

/*
 * Adds MS_RDONLY, MS_NOSUID, MS_NODEV or MS_NOEXEC to the mount at `path` and to all below it. `proc` is the descriptor of
 * zyg_proc_open. 0 or a negative errno, after which some of the mounts may have changed.
 */
int zyg_mount_restrict(const char *path, unsigned long flags, int proc);

/* The same without mount_setattr(2), for kernels and containers that lack it; zyg_mount_restrict turns to it by itself. */
int zyg_mount_restrict_each(const char *path, unsigned long flags, int proc);

#endif
