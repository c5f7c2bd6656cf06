/*
 * Runs in:   tests, in a mount namespace of its own.
 * Trusts:    nothing.
 * Blocks on: nothing.
 *
 * Both ways of taking rights from a tree of mounts: by mount_setattr, and mount by mount where that call is missing. Flags
 * that a mount had already must stay, mounts beside the tree must stay as they were. Exits with 77 where no namespace can be had.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "zygote/mounts.h"
#include "zygote/proc.h"

#define ALL (ST_RDONLY | ST_NOSUID | ST_NODEV | ST_NOEXEC)

static unsigned failures;

static void check(bool good, const char *what, const char *path)
{
	if (good)
		return;
	failures++;
	printf("FAIL %s: %s\n", path, what);
}

static void must(int result, const char *what)
{
	if (result >= 0)
		return;
	printf("FAIL cannot prepare: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	must(fd, path);
	must((int)write(fd, text, strlen(text)), path);
	close(fd);
}

static bool enter_namespace(void)
{
	char map[32];
	unsigned uid = getuid();

	if (uid == 0)
		return unshare(CLONE_NEWNS) == 0;
	if (unshare(CLONE_NEWNS | CLONE_NEWUSER) < 0)
		return false;
	snprintf(map, sizeof(map), "0 %u 1\n", uid);
	put("/proc/self/uid_map", map);
	return true;
}

static void check_flags(const char *path, unsigned long expected)
{
	struct statvfs st;

	check(statvfs(path, &st) == 0, "statvfs", path);
	check((st.f_flag & ALL) == expected, "has other flags than expected", path);
}

static int take(const char *path, unsigned long flags, int proc, bool each)
{
	return each ? zyg_mount_restrict_each(path, flags, proc) : zyg_mount_restrict(path, flags, proc);
}

/* A tree (with a mount inside whose name mountinfo escapes) and a neighbour whose name begins alike. */
static void try_way(int proc, bool each)
{
	must(mount("t", "/tmp", "tmpfs", 0, NULL), "mount");
	must(mkdir("/tmp/tree", 0755), "mkdir");
	must(mkdir("/tmp/tree2", 0755), "mkdir");
	must(mount("t", "/tmp/tree", "tmpfs", MS_NOATIME, NULL), "mount");
	must(mount("t", "/tmp/tree2", "tmpfs", 0, NULL), "mount");
	must(mkdir("/tmp/tree/in side\\", 0755), "mkdir");
	must(mount("t", "/tmp/tree/in side\\", "tmpfs", MS_NOEXEC, NULL), "mount");

	check(take("/tmp/tree", MS_RDONLY | MS_NOSUID | MS_NODEV, proc, each) == 0, "failed", "/tmp/tree");
	check_flags("/tmp/tree", ST_RDONLY | ST_NOSUID | ST_NODEV);
	check_flags("/tmp/tree/in side\\", ALL);
	check_flags("/tmp/tree2", 0);
	check_flags("/tmp", 0);
	check(mkdir("/tmp/tree/new", 0755) < 0 && errno == EROFS, "can be written to", "/tmp/tree");
	check(mkdir("/tmp/tree/in side\\/new", 0755) < 0 && errno == EROFS, "can be written to", "/tmp/tree/in side");
	check(mkdir("/tmp/tree2/new", 0755) == 0, "cannot be written to", "/tmp/tree2");
	must(umount2("/tmp", MNT_DETACH), "umount");
}

int main(void)
{
	int proc;

	if (!enter_namespace()) {
		printf("SKIP: no mount namespace: %s\n", strerror(errno));
		return 77;
	}
	must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "make mounts private");
	proc = zyg_proc_open();
	must(proc, "/proc/self");
	try_way(proc, false);
	try_way(proc, true);
	check(zyg_mount_restrict("/no/such/place", MS_RDONLY, proc) == -ENOENT, "is not reported as missing",
	      "/no/such/place");
	close(proc);
	printf("%u failures\n", failures);
	return failures ? 1 : 0;
}
