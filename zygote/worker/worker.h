/*
 * What the zygote needs of the folder worker/: all that runs after the fork.
 */
#ifndef BROOD_ZYGOTE_WORKER_WORKER_H
#define BROOD_ZYGOTE_WORKER_WORKER_H

#include <stdbool.h>
#include <stdint.h>
#include <linux/filter.h>

#include "protocol/messages.h"

/* A worker that leaves before it parked says by its exit status which step failed. */
enum wrk_exit {
	WRK_EXIT_SIGNALS = 64, /* signal dispositions or mask */
	WRK_EXIT_PARENT,       /* its zygote was gone already */
	WRK_EXIT_LIMITS,       /* rlimits */
	WRK_EXIT_FILTER,       /* seccomp */
	WRK_EXIT_PREPARE,      /* the Python side */
	WRK_EXIT_MEMORY,
};

/* Whole pages. */
struct wrk_range {
	void *start;
	size_t len;
};

#define WRK_HOT_RANGES_MAX 512

/* What a worker takes over from its zygote. Lives as long as the zygote; workers read it only. */
struct wrk_setup {
	struct brood_limits limits; /* of the profile */
	uint64_t base_data_bytes;   /* see struct brood_ready; rlimits are set on top of them */
	uint64_t base_as_bytes;
	const struct sock_fprog *filter; /* the worker's seccomp program, ready to load; NULL: none */
	const struct wrk_range *hot;	 /* the pages that a worker writes to before it has parked; may be NULL */
	size_t hot_count;
	int parent_pid; /* the zygote's pid in its own namespace, to notice that it has died */
};

/* Makes the built-in module `_brood` known. Before Py_Initialize; 0 or -1. */
int wrk_register_builtin(void);

/*
 * In the zygote, once, after the preload and before gc.freeze: imports the worker's Python side and builds all that workers
 * can share. With the GIL held. 0, or -1 with a Python exception set.
 */
int wrk_prepare(void);

/* In the zygote, after wrk_prepare: goes through what a worker does, some times over. 0, or -1 with a Python exception set. */
int wrk_rehearse(void);

/*
 * In the child, right after fork() returned 0 in a process with one thread, with the GIL held (PyOS_BeforeFork was called) and
 * descriptors 0 to 4 in place (protocol/fds.h) and no others open. `warm`: warms up before it parks. Never returns.
 */
_Noreturn void wrk_main(const struct wrk_setup *setup, bool warm);

#endif
