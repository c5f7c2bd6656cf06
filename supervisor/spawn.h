/* Making a zygote's process: the one place of the supervisor that forks, and the process always execs. */
#ifndef BROOD_SUPERVISOR_SPAWN_H
#define BROOD_SUPERVISOR_SPAWN_H

#include <stdint.h>
#include <sys/types.h>

struct sup_spawned {
	pid_t pid;
	int pidfd;
	uint32_t layers; /* bits of the namespaces that the process is in */
};

/*
 * Starts `path` with descriptors 0 (/dev/null), 1 and 2 (`log_fd`) and 3 (`control_fd`) and no others, in as many new
 * namespaces as the kernel grants. The caller keeps its own copies. 0, or -1 with errno.
 */
int sup_spawn_zygote(const char *path, int control_fd, int log_fd, struct sup_spawned *out);

#endif
