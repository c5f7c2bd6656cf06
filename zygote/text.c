/*
 * Runs in:   brood-zygote, before its lock.
 * Trusts:    the kernel's /proc, the loader's idea of where this program lies.
 * Blocks on: nothing.
 *
 * A new process begins with empty page tables for whatever is mapped from a file: the kernel leaves it to faults to fill them again, which costs a worker
 * some 60 faults for the interpreter's code. It copies the tables of a mapping that has at least one page of its own, though. So
 * one page of each is made our own, by writing a byte over itself (zyg_text_inherit).
 *
 * And a call begins with cold translation caches: every page of code that it comes through is looked up anew, in a virtual machine by a walk
 * through two sets of tables. With this program's code and constants in a few huge pages there is little to look up (zyg_text_to_huge_pages).
 * The linker aligns its segments for that.
 */
#include "zygote/text.h"

#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE ((uintptr_t)4096)
#define HUGE_PAGE ((uintptr_t)2 * 1024 * 1024)
#define SEGMENTS_MAX 8

struct segment {
	uintptr_t start, end; /* as mapped: whole pages */
	int protection;
};

struct segments {
	struct segment list[SEGMENTS_MAX];
	size_t count;
};

/* The loader names this program first. */
static int note_segments(struct dl_phdr_info *info, size_t size, void *context)
{
	struct segments *found = context;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum && found->count < SEGMENTS_MAX; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + header->p_vaddr;

		/* Only what is aligned for it: no other mapping may lie in the same huge page. */
		if (header->p_type != PT_LOAD || (header->p_flags & PF_W) || header->p_align < HUGE_PAGE)
			continue;
		found->list[found->count++] = (struct segment){
			.start = start & ~(PAGE - 1),
			.end = (start + header->p_memsz + PAGE - 1) & ~(PAGE - 1),
			.protection = PROT_READ | (header->p_flags & PF_X ? PROT_EXEC : 0),
		};
	}
	return 1;
}

/* Fresh memory of whole huge pages, or NULL: fewer would cost memory and bring nothing. */
static char *huge_memory(size_t len)
{
	char *whole = mmap(NULL, len + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *aligned;

	if (whole == MAP_FAILED)
		return NULL;
	aligned = (char *)(((uintptr_t)whole + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1));
	if (aligned > whole)
		munmap(whole, (size_t)(aligned - whole));
	if (aligned + len < whole + len + HUGE_PAGE)
		munmap(aligned + len, (size_t)(whole + HUGE_PAGE - aligned));
	if (madvise(aligned, len, MADV_HUGEPAGE) == 0)
		return aligned;
	munmap(aligned, len);
	return NULL;
}

/* Whether the mapping at `start` is made of huge pages, by the line AnonHugePages of /proc/self/smaps. */
static bool is_huge(const struct zyg *z, const void *start, size_t len)
{
	int fd = openat(z->proc, "smaps", O_RDONLY | O_CLOEXEC);
	FILE *maps = fd < 0 ? NULL : fdopen(fd, "r");
	bool here = false, huge = false;
	char line[4352];

	if (!maps) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	while (fgets(line, sizeof(line), maps)) {
		unsigned long first, last, kilobytes;

		if (sscanf(line, "%lx-%lx ", &first, &last) == 2)
			here = first <= (uintptr_t)start && (uintptr_t)start < last;
		else if (here && sscanf(line, "AnonHugePages: %lu", &kilobytes) == 1)
			huge = kilobytes * 1024 >= len;
	}
	fclose(maps);
	return huge;
}

/* The copy takes the place of the original in one step, so it does not matter that this very code lies in it. */
static void move_segment(const struct zyg *z, const struct segment *segment)
{
	uintptr_t start = segment->start & ~(HUGE_PAGE - 1), end = (segment->end + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
	size_t len = end - start;
	char *copy = huge_memory(len);

	if (!copy)
		return;
	memcpy(copy + (segment->start - start), (const void *)segment->start, segment->end - segment->start);
	if (is_huge(z, copy, len) && mprotect(copy, len, segment->protection) == 0 &&
	    mremap(copy, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)start) != MAP_FAILED)
		return;
	munmap(copy, len);
}

void zyg_text_to_huge_pages(struct zyg *z)
{
	struct segments found = {.count = 0};

	dl_iterate_phdr(note_segments, &found);
	for (size_t i = 0; i < found.count; i++)
		move_segment(z, &found.list[i]);
}

/* --- page tables --- */

/* /proc/self/mem may write where the process itself may not; the page becomes ours by it. */
static void own_a_page(const struct zyg *z, uintptr_t page)
{
	char byte;

	if (pread(z->memory, &byte, 1, (off_t)page) == 1 && pwrite(z->memory, &byte, 1, (off_t)page) != 1)
		zyg_log("zygote: a page of program code could not be made our own; workers will need more page faults");
}

void zyg_text_inherit(struct zyg *z)
{
	int fd = openat(z->proc, "maps", O_RDONLY | O_CLOEXEC);
	FILE *maps = fd < 0 ? NULL : fdopen(fd, "r");
	char line[4352];

	while (maps && z->memory >= 0 && fgets(line, sizeof(line), maps)) {
		unsigned long start, end;
		char rights[5];

		/* Private and from a file, not writable: code and constants. Their last page is as good as any. */
		if (sscanf(line, "%lx-%lx %4s", &start, &end, rights) == 3 && rights[0] == 'r' && rights[1] == '-' &&
		    rights[3] == 'p' && strchr(line, '/'))
			own_a_page(z, end - PAGE);
	}
	if (maps)
		fclose(maps);
	else if (fd >= 0)
		close(fd);
}
