/* A zygote as the supervisor sees it: its process, its control channel, its workers. */
#ifndef BROOD_SUPERVISOR_ZYGOTE_H
#define BROOD_SUPERVISOR_ZYGOTE_H

#include <sys/types.h>

#include "protocol/messages.h"
#include "supervisor/profile.h"

#define SUP_ZYGOTE_LOG_LINE 1024

struct sup_zygote {
	TAILQ_ENTRY(sup_zygote) link;
	struct sup_profile *profile;
	unsigned serial, generation;
	enum brood_zygote_state state;
	bool retiring; /* forks no more; ends with its last worker */
	bool was_ready;
	bool channel_closed; /* it is ending; how, its process will tell */
	pid_t pid;
	int pidfd, control_fd, log_fd;
	struct event *ev_control, *ev_log, *ev_exit, *ev_watch, *ev_dead;
	struct sup_worker_list workers;
	unsigned workers_count;
	struct brood_ready ready;
	struct brood_limits limits; /* that its workers are born with */
	uint64_t started_us;
	char message[SUP_FAILURE_MAX]; /* why it ended */
	char log_line[SUP_ZYGOTE_LOG_LINE];
	size_t log_len;
};

/* Starts one; NULL with `error` set when not even a process could be made. */
struct sup_zygote *sup_zygote_new(struct sup_profile *profile, char error[SUP_FAILURE_MAX]);

/* Asks for a worker, which warms up first if `warm`. 0, or -1: the zygote failed or the pipe is full; nothing was made. */
int sup_zygote_fork(struct sup_zygote *zygote, bool warm);

/* Ends when its last worker has: parked ones are retired now. */
void sup_zygote_retire(struct sup_zygote *zygote);

/* From worker.c: one of its workers was freed. */
void sup_zygote_worker_freed(struct sup_zygote *zygote);

/* It misbehaved, or is to go: kills it and all below it; the rest happens from the event loop. */
void sup_zygote_fail(struct sup_zygote *zygote, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* At the very end: kills, reaps and frees, calls included (they must have been answered). */
void sup_zygote_destroy(struct sup_zygote *zygote);

#endif
