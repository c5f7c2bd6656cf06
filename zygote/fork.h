/*
 * The one fork of the zygote.
 */
#ifndef BROOD_ZYGOTE_FORK_H
#define BROOD_ZYGOTE_FORK_H

#include <stdbool.h>
#include <sys/types.h>

#include "protocol/fds.h"

struct zyg;

/*
 * Makes a worker out of this process. `fds`, in the order of enum brood_fork_fd, stay the caller's and must all be above the
 * descriptors that a worker has. Returns the pid, or a negative errno; in the worker it does not return.
 */
pid_t zyg_fork(struct zyg *z, const int fds[BROOD_FORK_FDS], bool warm);

#endif
