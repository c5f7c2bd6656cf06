/* A worker as the supervisor sees it: four pipes, a pidfd, and at most one call. */
#ifndef BROOD_SUPERVISOR_WORKER_H
#define BROOD_SUPERVISOR_WORKER_H

#include <sys/types.h>

#include "protocol/fds.h"
#include "protocol/messages.h"
#include "supervisor/profile.h"

struct sup_ending;

enum sup_worker_state {
	SUP_WORKER_WARMING, /* FORK sent; PARKED not come */
	SUP_WORKER_PARKED,
	SUP_WORKER_RUNNING,
	SUP_WORKER_DYING, /* killed; EXITED not come */
};

struct sup_worker {
	TAILQ_ENTRY(sup_worker) link;	   /* of its zygote */
	TAILQ_ENTRY(sup_worker) park_link; /* of its profile, while parked */
	struct sup_zygote *zygote;
	uint64_t id;
	enum sup_worker_state state;
	bool forked;   /* FORKED came: EXITED will */
	bool vanished; /* closed its answer pipe without an answer */
	int pidfd, status_fd;
	pid_t pid;		 /* in our namespace; -1 unknown */
	int fds[BROOD_FORK_FDS]; /* our ends, by enum brood_fork_fd */
	struct event *ev_out, *ev_err, *ev_answer, *ev_request, *ev_timer;
	struct sup_call *call; /* while running */
	uint8_t *buf;	       /* the start of a frame that is not whole yet; owned */
	size_t len, room;
	uint8_t *pending; /* of RUN, not written yet; owned */
	size_t pending_len, pending_pos;
	uint64_t cpu_base_us; /* CPU time used before the call */
	uint64_t since_us;    /* when the state was entered */
	uint64_t deadline_us; /* of the call's wall time */
};

/* Makes the pipes and the structure; `child_ends` get the worker's ends, which the caller sends and closes. NULL with errno. */
struct sup_worker *sup_worker_new(struct sup_zygote *zygote, int child_ends[BROOD_FORK_FDS]);

/* From the zygote: it exists (takes over the pidfd); it has ended (NULL: could not be forked). The latter frees it. */
void sup_worker_on_forked(struct sup_worker *worker, int pidfd);
void sup_worker_on_exited(struct sup_worker *worker, const struct brood_exited *exited);

/* Hands the call to a parked worker. 0, or -1: the worker was unusable and is being discarded; the call is untouched. */
int sup_worker_run(struct sup_worker *worker, struct sup_call *call);

/* Kills it and answers its call with this status. */
void sup_worker_end_call(struct sup_worker *worker, enum brood_status status, const char *message);

/* Kills it; its call, if any, is no longer its own. It is freed when EXITED comes. */
void sup_worker_discard(struct sup_worker *worker);

/* Its streaming client takes output again. */
void sup_worker_resume_output(struct sup_worker *worker);

/* Frees it at once: its zygote is gone. A call still running is answered `lost` with this message. */
void sup_worker_lost(struct sup_worker *worker, const char *message);

#endif
