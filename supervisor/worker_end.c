/*
 * Runs in:   broodd
 * Trusts:    the kernel, and the zygote for how a worker ended
 * Blocks on: nothing
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "supervisor/call.h"
#include "supervisor/log.h"
#include "supervisor/usage.h"
#include "supervisor/worker_parts.h"

/* What is read of a stream after the answer came: a pipe holds 64 KiB, or 1 MiB if the code enlarged it. */
#define DRAIN_MAX (2 * 1024 * 1024)

/* Reads what a stream holds, up to a bound: a live worker could go on for ever. */
static void drain(struct sup_worker *worker, enum brood_fork_fd which, struct sup_output *out)
{
	uint8_t *scratch = wp_server(worker)->scratch;
	size_t total = 0;

	while (total < DRAIN_MAX) {
		ssize_t n = read(worker->fds[which], scratch, SUP_SCRATCH);

		if (n <= 0)
			return;
		sup_output_add(out, scratch, (size_t)n);
		total += (size_t)n;
	}
}

/*
 * Answers the worker's call. `ending`'s usage is filled in here unless the kernel told it already (EXITED). The slices of a result
 * must not lie in the server's scratch, which the draining uses.
 */
void wp_answer(struct sup_worker *worker, struct sup_ending *ending)
{
	struct sup_call *call = worker->call;

	if (!ending->cpu_us) {
		uint64_t used = sup_cpu_us(worker->pid);

		ending->cpu_us = used > worker->cpu_base_us ? used - worker->cpu_base_us : 0;
	}
	if (!ending->peak_memory_bytes)
		ending->peak_memory_bytes = sup_peak_memory(worker->status_fd);
	drain(worker, BROOD_FORK_STDOUT, &call->out);
	drain(worker, BROOD_FORK_STDERR, &call->err);
	worker->call = NULL;
	call->worker = NULL;
	sup_call_finish(call, ending);
}

void sup_worker_discard(struct sup_worker *worker)
{
	if (worker->state == SUP_WORKER_DYING)
		return;
	wp_signal(worker, SIGKILL);
	evtimer_del(worker->ev_timer);
	wp_close_pipes(worker);
	wp_enter(worker, SUP_WORKER_DYING);
}

void sup_worker_end_call(struct sup_worker *worker, enum brood_status status, const char *message)
{
	struct sup_ending ending = {.status = status, .message = message};
	struct sup_profile *profile = worker->zygote->profile;

	/* Killed first: what it writes from now on is nobody's. Its clocks and its pipes outlive it until it is reaped. */
	wp_signal(worker, SIGKILL);
	wp_answer(worker, &ending);
	sup_worker_discard(worker);
	sup_profile_pump(profile);
}

void wp_misbehaved(struct sup_worker *worker, const char *message)
{
	struct sup_profile *profile = worker->zygote->profile;

	if (worker->state == SUP_WORKER_RUNNING) {
		sup_worker_end_call(worker, BROOD_CRASHED, message);
		return;
	}
	sup_log(SUP_LOG_WARNING, "worker %llu of %s: %s", (unsigned long long)worker->id, profile->name, message);
	sup_worker_discard(worker);
	sup_profile_pump(profile);
}

/* --- deadlines --- */

/* Arms the timer for whichever of the two limits can be reached first. CPU time runs at most `cores` times as fast as the clock. */
void wp_arm_deadline(struct sup_worker *worker, uint64_t now, uint64_t cpu_left_us)
{
	uint64_t wall_left = worker->deadline_us > now ? worker->deadline_us - now : 1;
	uint64_t cpu_wait = cpu_left_us / wp_server(worker)->cores;

	if (cpu_wait < 1000)
		cpu_wait = 1000; /* finer would only spin */
	sup_timer_set(worker->ev_timer, wall_left < cpu_wait ? wall_left : cpu_wait);
}

void wp_on_deadline(struct sup_worker *worker)
{
	const struct brood_limits *limits = &worker->call->limits;
	uint64_t now = sup_now_us(), used = sup_cpu_us(worker->pid), most = limits->v[BROOD_LIMIT_CPU] * 1000;
	char message[128];

	used = used > worker->cpu_base_us ? used - worker->cpu_base_us : 0;
	if (used >= most) {
		snprintf(message, sizeof(message), "killed: CPU time limit of %llu ms reached",
			 (unsigned long long)most / 1000);
		sup_worker_end_call(worker, BROOD_CPU, message);
	} else if (now >= worker->deadline_us) {
		snprintf(message, sizeof(message), "killed: wall time limit of %llu ms reached",
			 (unsigned long long)limits->v[BROOD_LIMIT_WALL]);
		sup_worker_end_call(worker, BROOD_TIMEOUT, message);
	} else {
		wp_arm_deadline(worker, now, most - used);
	}
}

/* --- what the zygote tells --- */

/* How the kernel ended it, in the words of the protocol. */
static void classify(const struct sup_worker *worker, const struct brood_exited *exited, struct sup_ending *ending,
		     char *text, size_t room)
{
	uint64_t limit = worker->call->limits.v[BROOD_LIMIT_MEMORY];

	ending->message = text;
	if (!exited->signalled) {
		ending->status = BROOD_OK;
		ending->message = "";
		ending->has_exit_code = true;
		ending->exit_code = exited->code;
		return;
	}
	ending->signal = exited->code;
	ending->status = BROOD_CRASHED;
	if (exited->code == SIGSYS) {
		ending->status = BROOD_DENIED;
		snprintf(text, room, "killed by signal %d (SIGSYS): a system call that the sandbox refuses",
			 exited->code);
	} else if (exited->code == SIGXCPU) {
		ending->status = BROOD_CPU;
		snprintf(text, room, "killed: CPU time limit reached");
	} else if (exited->code == SIGKILL && exited->max_rss_bytes >= limit / 2) {
		ending->status = BROOD_MEMORY;
		snprintf(text, room, "killed by the kernel at %llu MiB of memory",
			 (unsigned long long)(exited->max_rss_bytes >> 20));
	} else {
		bool stack = exited->code == SIGSEGV || exited->code == SIGBUS;

		snprintf(text, room, "crashed: signal %d (SIG%s)%s", exited->code,
			 sigabbrev_np(exited->code) ? sigabbrev_np(exited->code) : "?",
			 stack ? "; the usual cause is a stack overflow by deep recursion in C code" : "");
	}
}

static void answer_exited(struct sup_worker *worker, const struct brood_exited *exited)
{
	struct sup_ending ending = {0};
	char text[160];

	classify(worker, exited, &ending, text, sizeof(text));
	ending.cpu_us = exited->cpu_us > worker->cpu_base_us ? exited->cpu_us - worker->cpu_base_us : 1;
	ending.peak_memory_bytes = exited->max_rss_bytes;
	wp_answer(worker, &ending);
}

void sup_worker_on_exited(struct sup_worker *worker, const struct brood_exited *exited)
{
	struct sup_zygote *zygote = worker->zygote;
	struct sup_profile *profile = zygote->profile;

	if (worker->state == SUP_WORKER_RUNNING && !wp_read_last_answer(worker) && exited)
		answer_exited(worker, exited);
	if (worker->state == SUP_WORKER_WARMING) {
		profile->park_failures++;
		if (!exited)
			sup_log(SUP_LOG_WARNING, "zygote %s/%u could not fork a worker", profile->name, zygote->serial);
		else
			sup_log(SUP_LOG_WARNING, "worker %llu of %s ended before it parked (%s %d)",
				(unsigned long long)worker->id, profile->name,
				exited->signalled ? "signal" : "exit status", exited->code);
	}
	wp_free(worker);
	sup_zygote_worker_freed(zygote);
}

void sup_worker_lost(struct sup_worker *worker, const char *message)
{
	struct sup_ending ending = {.status = BROOD_LOST, .message = message};

	wp_signal(worker, SIGKILL);
	if (worker->state == SUP_WORKER_RUNNING && !wp_read_last_answer(worker))
		wp_answer(worker, &ending);
	wp_free(worker);
}
