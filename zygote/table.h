/*
 * The living workers of a zygote: which pid is which worker. Of fixed size, so that a fork allocates nothing.
 */
#ifndef BROOD_ZYGOTE_TABLE_H
#define BROOD_ZYGOTE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct zyg_entry {
	pid_t pid;
	uint64_t worker;
};

struct zyg_table {
	struct zyg_entry *entry;
	size_t count, room;
};

/* 0 or a negative errno. */
int zyg_table_init(struct zyg_table *table, size_t room);
void zyg_table_free(struct zyg_table *table);

bool zyg_table_full(const struct zyg_table *table);
bool zyg_table_has(const struct zyg_table *table, uint64_t worker);
/* The table must not be full. */
void zyg_table_add(struct zyg_table *table, pid_t pid, uint64_t worker);
/* Removes a pid: true and its worker, or false when it is none of ours. */
bool zyg_table_take(struct zyg_table *table, pid_t pid, uint64_t *worker);

#endif
