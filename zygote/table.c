/*
 * Runs in:   brood-zygote.
 * Trusts:    its caller.
 * Blocks on: nothing.
 */
#include "zygote/table.h"

#include <errno.h>
#include <stdlib.h>

int zyg_table_init(struct zyg_table *table, size_t room)
{
	struct zyg_entry *entry = calloc(room ? room : 1, sizeof(*entry));

	if (!entry)
		return -ENOMEM;
	*table = (struct zyg_table){.entry = entry, .room = room};
	return 0;
}

void zyg_table_free(struct zyg_table *table)
{
	if (!table)
		return;
	free(table->entry);
	*table = (struct zyg_table){.entry = NULL};
}

bool zyg_table_full(const struct zyg_table *table)
{
	return table->count == table->room;
}

bool zyg_table_has(const struct zyg_table *table, uint64_t worker)
{
	for (size_t i = 0; i < table->count; i++)
		if (table->entry[i].worker == worker)
			return true;
	return false;
}

void zyg_table_add(struct zyg_table *table, pid_t pid, uint64_t worker)
{
	table->entry[table->count++] = (struct zyg_entry){.pid = pid, .worker = worker};
}

bool zyg_table_take(struct zyg_table *table, pid_t pid, uint64_t *worker)
{
	for (size_t i = 0; i < table->count; i++) {
		if (table->entry[i].pid != pid)
			continue;
		*worker = table->entry[i].worker;
		table->entry[i] = table->entry[--table->count];
		return true;
	}
	return false;
}
