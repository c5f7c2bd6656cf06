/*
 * The two seccomp programs: the zygote's own, and the tighter one that each of its workers puts on top.
 */
#ifndef BROOD_ZYGOTE_FILTER_H
#define BROOD_ZYGOTE_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <linux/filter.h>

enum zyg_filter_kind { ZYG_FILTER_ZYGOTE, ZYG_FILTER_WORKER };

/* A finished program in memory. Loading it is one system call and allocates nothing. */
struct zyg_filter {
	struct sock_fprog prog;
	uint16_t *self;	   /* indices of the instructions that compare with the process's own pid */
	size_t self_count; /* 0 in the zygote's program */
};

/*
 * Builds a program. `own_root`: the process has a read-only root of its own, so files need no rule about writing.
 * 0 and *out (to be freed by zyg_filter_free), or a negative errno and *out untouched.
 */
int zyg_filter_build(enum zyg_filter_kind kind, bool own_root, struct zyg_filter *out);
void zyg_filter_free(struct zyg_filter *filter);

/* Writes `pid`, as the process itself sees it, into the program. Allocates nothing; for the child, after fork. */
void zyg_filter_set_self(struct zyg_filter *filter, pid_t pid);

/* Puts the program on the calling thread, for good. Needs no_new_privs. 0 or a negative errno. */
int zyg_filter_load(const struct sock_fprog *prog);

#endif
