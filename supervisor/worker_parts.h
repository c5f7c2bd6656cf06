/* What the parts of the supervisor's side of a worker (worker.c, worker_io.c, worker_end.c) share. Theirs only. */
#ifndef BROOD_SUPERVISOR_WORKER_PARTS_H
#define BROOD_SUPERVISOR_WORKER_PARTS_H

#include <sys/syscall.h>
#include <unistd.h>

#include "supervisor/worker.h"
#include "supervisor/zygote.h"

static inline struct sup_server *wp_server(const struct sup_worker *worker)
{
	return worker->zygote->profile->server;
}

static inline void wp_signal(const struct sup_worker *worker, int sig)
{
	if (worker->pidfd >= 0)
		syscall(SYS_pidfd_send_signal, worker->pidfd, sig, NULL, 0);
}

/* worker.c: changes the state, and the pool's counts with it. */
void wp_enter(struct sup_worker *worker, enum sup_worker_state state);
/* worker.c: closes what the supervisor holds of its pipes. */
void wp_close_pipes(struct sup_worker *worker);
/* worker.c: frees it, in whatever state it is. */
void wp_free(struct sup_worker *worker);

/* worker_io.c: event handlers of the pipes. */
void wp_on_answer(int fd, short what, void *context);
void wp_on_stdout(int fd, short what, void *context);
void wp_on_stderr(int fd, short what, void *context);
/* worker_io.c: reads what is left in the answer pipe. True if that ended the call. */
bool wp_read_last_answer(struct sup_worker *worker);

/* worker_end.c: answers the call; fills in what `ending` does not know of the usage. */
void wp_answer(struct sup_worker *worker, struct sup_ending *ending);
/* worker_end.c: the worker did something that no worker may do. */
void wp_misbehaved(struct sup_worker *worker, const char *message);
/* worker_end.c: one of its two limits of time may have been reached. */
void wp_on_deadline(struct sup_worker *worker);
void wp_arm_deadline(struct sup_worker *worker, uint64_t now, uint64_t cpu_left_us);

#endif
