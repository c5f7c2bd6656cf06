/*
 * The form of the tables in filter.c, for filter_build.c that turns them into programs.
 */
#ifndef BROOD_ZYGOTE_FILTER_TABLE_H
#define BROOD_ZYGOTE_FILTER_TABLE_H

#include <stddef.h>
#include <stdint.h>

/* Stands in the worker's table, and in the program until zyg_filter_set_self, for the process's own pid. Above any pid there can be. */
#define ZYG_SELF_PID 0x7fee1dad

#define ZYG_CONDITIONS_MAX 3

/* Holds when (argument & mask) == value. All conditions of a rule must hold. */
struct zyg_condition {
	unsigned argument;
	uint64_t mask;
	uint64_t value;
};

/* When a rule belongs in the program. */
enum zyg_rule_when {
	ZYG_RULE_ALWAYS,
	ZYG_RULE_OWN_ROOT,  /* the root is our own and read-only */
	ZYG_RULE_HOST_ROOT, /* the host's file system is in sight */
};

struct zyg_rule {
	const char *name;
	int number; /* negative: this architecture has no such call */
	int error;  /* 0: allow; else the errno that it fails with instead of EPERM */
	enum zyg_rule_when when;
	unsigned count;
	struct zyg_condition condition[ZYG_CONDITIONS_MAX];
};

struct zyg_rules {
	const struct zyg_rule *rule;
	size_t count;
};

/* What a worker may do; what a zygote may do besides; what both are refused with another errno than EPERM. */
extern const struct zyg_rules ZYG_WORKER_RULES, ZYG_ZYGOTE_RULES, ZYG_REFUSED_RULES;

#endif
