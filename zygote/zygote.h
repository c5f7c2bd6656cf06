/*
 * What the files of brood-zygote share: the state of the one zygote that a process is, and how a step of its start fails.
 */
#ifndef BROOD_ZYGOTE_ZYGOTE_H
#define BROOD_ZYGOTE_ZYGOTE_H

#include <stddef.h>
#include <stdint.h>

#include "protocol/messages.h"
#include "zygote/filter.h"
#include "zygote/interpreter.h"
#include "zygote/table.h"
#include "zygote/worker/worker.h"

struct zyg {
	uint64_t born_us; /* monotonic clock at main() */
	int proc;	  /* the host's /proc/self, O_PATH; -1 once the lock has closed it */
	/* /proc/self/pagemap and /proc/self/mem, which open only while this process is still dumpable; -1: not to be had, or closed. */
	int pagemap, memory;
	int signals;	 /* signalfd of SIGCHLD; -1 before the lock */
	uint32_t layers; /* layer bits that were read back as on */
	struct brood_start start;
	struct brood_failed failed; /* filled by zyg_fail */
	struct zyg_interpreter python;
	struct zyg_filter worker_filter;
	struct zyg_table workers;
	struct wrk_setup setup; /* what each worker takes over */
};

/*
 * The steps between START and READY, in the order of main.c. Each returns 0, or what zyg_fail returned.
 */
int zyg_step_start(struct zyg *z);	 /* control.c: reads START */
int zyg_step_interpreter(struct zyg *z); /* interpreter.c: is `python` there, and of our version? */
int zyg_step_root(struct zyg *z);	 /* root.c: the minimal root */
int zyg_step_privilege(struct zyg *z);	 /* privilege.c: uid, last user namespace, no capabilities */
int zyg_step_python(struct zyg *z);	 /* python.c: starts CPython */
int zyg_step_preload(struct zyg *z);	 /* preload.c: imports, warms, freezes */
int zyg_step_lock(struct zyg *z);	 /* lock.c: one task, few descriptors, rlimits, filter */

/* Never returns: answers FORK until the supervisor is gone. serve.c */
_Noreturn void zyg_serve(struct zyg *z);

/*
 * Notes why a step failed: errno or 0, and one line that says what was tried, on what, and what the user can do. Returns -1,
 * so that a step can end with `return zyg_fail(…)`. A step may first name itself more closely in z->failed.step.
 */
int zyg_fail(struct zyg *z, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Makes text fit to be sent: one line, UTF-8. In place, never longer. */
void zyg_make_line(char *text);

/* A line for the supervisor's log. */
void zyg_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

uint64_t zyg_now_us(void);

#endif
