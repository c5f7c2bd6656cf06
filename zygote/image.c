/*
 * Runs in:   brood-zygote, as the last things before its lock.
 * Trusts:    the kernel's /proc; a worker for trial, which runs our warm-up only.
 * Blocks on: that worker, until it has parked and ended.
 *
 * A fork is cheap; what costs is the copy-on-write fault of each page that the new worker writes to. Most of these writes are
 * an allocator's: free blocks of every size lie scattered over the pages where earlier objects died, and each size that a worker
 * needs copies another page. So the free blocks are used up here, once (zyg_image_pack): then each size continues in a pool of its own in one
 * fresh arena, and malloc at the heap's end.
 *
 * What is still written to, reference counts above all, is nearly the same in every worker. A worker for trial shows it: while the worker lives, a page
 * that it has copied belongs to this process alone, and the kernel says so in /proc/self/pagemap. Pages that neither of the two had
 * would not be seen; so the fresh ones are touched before and dropped after.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "zygote/image.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/fds.h"
#include "zygote/fork.h"

#define PAGE ((uintptr_t)4096)
#define HUGE_PAGE ((uintptr_t)2 * 1024 * 1024)
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
/* What pymalloc serves: multiples of 16 up to 512 bytes. */
#define POOL_ALIGNMENT 16
#define POOL_SIZE_MAX 512
/* More free blocks than any image has; only to end a loop that something unforeseen keeps from ending. */
#define BLOCKS_MAX 2000000
/* The part of the heap's free end that a call is likely to use. */
#define HEAP_END_PAGES 64
#define MAPPING_PAGES_MAX (64 * 1024)

/* pymalloc's newest arena, or the heap's free end: pages that nobody has written to. */
struct fresh {
	uintptr_t start, end;
};

static struct fresh fresh_arena, fresh_heap;

#if defined(__SANITIZE_ADDRESS__)
#define OWN_MALLOC 0 /* the sanitizer's allocators have no such layout */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define OWN_MALLOC 0
#endif
#endif
#ifndef OWN_MALLOC
#define OWN_MALLOC 1
#endif

/* --- free blocks --- */

static PyObjectArenaAllocator inner_arenas;

static void *new_arena(void *context, size_t size)
{
	void *arena = inner_arenas.alloc(context, size);

	if (arena)
		fresh_arena = (struct fresh){(uintptr_t)arena, (uintptr_t)arena + size};
	return arena;
}

static bool in_fresh_arena(const void *block)
{
	return (uintptr_t)block >= fresh_arena.start && (uintptr_t)block < fresh_arena.end;
}

/* Takes blocks of one size, for good, until one comes from the arena that was made last. */
static void use_up_size(size_t size)
{
	for (int i = 0; i < BLOCKS_MAX; i++) {
		void *block = PyObject_Malloc(size);

		if (!block || in_fresh_arena(block))
			return;
	}
}

static void pack_pools(void)
{
	PyObjectArenaAllocator watched;

	PyObject_GetArenaAllocator(&inner_arenas);
	watched = inner_arenas;
	watched.alloc = new_arena;
	PyObject_SetArenaAllocator(&watched);
	/* A new arena is made when no pool is free in any other. From then on, all pools come from it. */
	for (int i = 0; i < BLOCKS_MAX && !fresh_arena.start; i++)
		if (!PyObject_Malloc(POOL_SIZE_MAX))
			break;
	if (fresh_arena.start)
		for (size_t size = POOL_ALIGNMENT; size <= POOL_SIZE_MAX; size += POOL_ALIGNMENT)
			use_up_size(size);
	PyObject_SetArenaAllocator(&inner_arenas);
}

/* Takes free chunks, large ones first, until malloc has to cut from the heap's end. */
static void pack_heap(void)
{
	uintptr_t end = (uintptr_t)sbrk(0), top = end - mallinfo2().keepcost;

	for (size_t size = 64 * 1024; size >= 24; size = size > 1024 ? size - size / 8 : size - 8) {
		for (int i = 0; i < BLOCKS_MAX; i++) {
			void *chunk = malloc(size);

			/* Other arenas' chunks and mappings lie above the heap. */
			if (!chunk || (uintptr_t)chunk >= top) {
				free(chunk);
				break;
			}
		}
	}
	top = (uintptr_t)sbrk(0) - mallinfo2().keepcost;
	fresh_heap.start = (top + PAGE) & ~(PAGE - 1);
	fresh_heap.end = fresh_heap.start + HEAP_END_PAGES * PAGE;
	if (fresh_heap.end > (uintptr_t)sbrk(0))
		fresh_heap.end = (uintptr_t)sbrk(0) & ~(PAGE - 1);
}

void zyg_image_pack(void)
{
	if (!OWN_MALLOC)
		return;
	PyGC_Collect(); /* gives back what the types keep in free lists: that lies scattered as well */
	pack_pools();
	pack_heap();
}

/* --- the pages that a worker writes to --- */

#define PAGEMAP_PRESENT (UINT64_C(1) << 63)
#define PAGEMAP_EXCLUSIVE (UINT64_C(1) << 56)

/* Calls `each` for every present page, or every absent one, of a range. */
struct walk {
	int pagemap;
	void (*each)(void *context, uintptr_t page, uint64_t entry);
	void *context;
};

static int walk_range(const struct walk *walk, uintptr_t start, uintptr_t end)
{
	uint64_t entries[512];

	while (start < end) {
		size_t pages = (end - start) / PAGE, most = sizeof(entries) / sizeof(entries[0]);
		ssize_t got;

		if (pages > most)
			pages = most;
		got = pread(walk->pagemap, entries, pages * sizeof(entries[0]),
			    (off_t)(start / PAGE * sizeof(entries[0])));
		if (got <= 0)
			return -1;
		for (size_t i = 0; i < (size_t)got / sizeof(entries[0]); i++)
			walk->each(walk->context, start + i * PAGE, entries[i]);
		start += (size_t)got / sizeof(entries[0]) * PAGE;
	}
	return 0;
}

/* All private writable memory, by the lines of /proc/self/maps. */
static int walk_writable(const struct zyg *z, const struct walk *walk)
{
	int fd = openat(z->proc, "maps", O_RDONLY | O_CLOEXEC), result = 0;
	FILE *maps = fd < 0 ? NULL : fdopen(fd, "r");
	char line[4352];

	if (!maps) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	while (result == 0 && fgets(line, sizeof(line), maps)) {
		unsigned long start, end;
		char rights[5];

		if (sscanf(line, "%lx-%lx %4s", &start, &end, rights) != 3 || strcmp(rights, "rw-p") != 0)
			continue;
		if ((end - start) / PAGE <= MAPPING_PAGES_MAX)
			result = walk_range(walk, start, end);
	}
	fclose(maps);
	return result;
}

/* Fixed arrays: what is noted must not move or grow the image that it describes. */
static struct wrk_range hot[WRK_HOT_RANGES_MAX];
static size_t hot_count;
static uintptr_t touched[1024];
static size_t touched_count;

static void note_hot(void *context, uintptr_t page, uint64_t entry)
{
	(void)context;
	if ((entry & (PAGEMAP_PRESENT | PAGEMAP_EXCLUSIVE)) != (PAGEMAP_PRESENT | PAGEMAP_EXCLUSIVE))
		return;
	if (hot_count > 0 && (uintptr_t)hot[hot_count - 1].start + hot[hot_count - 1].len == page)
		hot[hot_count - 1].len += PAGE;
	else if (hot_count < WRK_HOT_RANGES_MAX)
		hot[hot_count++] = (struct wrk_range){(void *)page, PAGE};
}

static bool is_hot(uintptr_t page)
{
	for (size_t i = 0; i < hot_count; i++)
		if (page >= (uintptr_t)hot[i].start && page < (uintptr_t)hot[i].start + hot[i].len)
			return true;
	return false;
}

/* The pages of one huge page: how many are there, and whether workers write to any of them. */
struct block {
	uintptr_t start;
	unsigned present;
	bool hot;
};

/* A huge page is one entry in the tables that fork copies and exit takes down, instead of 512. Not for what workers write to: that would split it. */
static void finish_block(const struct block *block)
{
	if (!block->hot && block->present >= HUGE_PAGE / PAGE / 2)
		madvise((void *)block->start, HUGE_PAGE, MADV_COLLAPSE);
}

static void note_cold(void *context, uintptr_t page, uint64_t entry)
{
	struct block *block = context;

	if ((page & ~(HUGE_PAGE - 1)) != block->start) {
		finish_block(block);
		*block = (struct block){.start = page & ~(HUGE_PAGE - 1), .present = 0, .hot = false};
	}
	block->present += (entry & PAGEMAP_PRESENT) != 0;
	block->hot |= is_hot(page);
}

/* Maps a page that nobody has written to. */
static void touch_absent(void *context, uintptr_t page, uint64_t entry)
{
	(void)context;
	if ((entry & PAGEMAP_PRESENT) || touched_count == sizeof(touched) / sizeof(touched[0]))
		return;
	*(volatile char *)page = 0;
	touched[touched_count++] = page;
}

static void drop_touched(void)
{
	for (size_t i = 0; i < touched_count; i++)
		madvise((void *)touched[i], PAGE, MADV_DONTNEED);
	touched_count = 0;
}

/* --- the worker for trial --- */

struct trial {
	pid_t pid;
	int request, answer; /* our ends */
};

static void close_pair(int pair[2])
{
	for (int i = 0; i < 2; i++)
		if (pair[i] >= 0)
			close(pair[i]);
}

/* Its output goes nowhere: what it prints goes to the zygote's log. */
static int start_trial(struct zyg *z, struct trial *trial)
{
	int request[2] = {-1, -1}, answer[2] = {-1, -1}, fds[BROOD_FORK_FDS], error = 0;

	if (pipe2(request, O_CLOEXEC) < 0 || pipe2(answer, O_CLOEXEC) < 0)
		error = -errno;
	fds[BROOD_FORK_STDOUT] = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, BROOD_WRK_FD_COUNT);
	fds[BROOD_FORK_STDERR] = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, BROOD_WRK_FD_COUNT);
	fds[BROOD_FORK_REQUEST] = fcntl(request[0], F_DUPFD_CLOEXEC, BROOD_WRK_FD_COUNT);
	fds[BROOD_FORK_ANSWER] = fcntl(answer[1], F_DUPFD_CLOEXEC, BROOD_WRK_FD_COUNT);
	trial->pid = error ? error : zyg_fork(z, fds, true);
	for (int i = 0; i < BROOD_FORK_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	if (trial->pid < 0) {
		close_pair(request);
		close_pair(answer);
		return trial->pid;
	}
	close(request[0]);
	close(answer[1]);
	trial->request = request[1];
	trial->answer = answer[0];
	return 0;
}

/* Whether it has parked. What it says there is for the supervisor; that it says something is enough here. */
static bool wait_parked(const struct trial *trial)
{
	char byte;
	ssize_t n;

	do
		n = read(trial->answer, &byte, 1);
	while (n < 0 && errno == EINTR);
	return n == 1;
}

/* A worker whose request pipe is closed leaves. Returns its wait status, or -1. */
static int end_trial(struct trial *trial)
{
	int status;

	close(trial->request);
	close(trial->answer);
	while (waitpid(trial->pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return status;
}

int zyg_image_learn(struct zyg *z)
{
	struct walk walk = {.pagemap = z->pagemap, .each = touch_absent};
	struct trial trial;
	int error, status;
	bool parked;

	if (walk.pagemap >= 0) {
		walk_range(&walk, fresh_arena.start, fresh_arena.end);
		walk_range(&walk, fresh_heap.start, fresh_heap.end);
	}
	error = start_trial(z, &trial);
	if (error < 0)
		return zyg_fail(z, -error, "cannot fork a worker for trial: %s", strerror(-error));
	parked = wait_parked(&trial);
	walk.each = note_hot;
	if (parked && walk.pagemap >= 0 && walk_writable(z, &walk) < 0)
		hot_count = 0;
	status = end_trial(&trial);
	drop_touched();
	if (hot_count > 0) {
		struct block block = {.start = 0};

		walk.each = note_cold;
		walk.context = &block;
		walk_writable(z, &walk);
		finish_block(&block);
	}
	if (!parked || status != 0)
		return zyg_fail(z, 0, "a worker for trial did not park: it ended with %s %d",
				WIFSIGNALED(status) ? "signal" : "exit status",
				WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	z->setup.hot = hot;
	z->setup.hot_count = hot_count;
	return 0;
}
