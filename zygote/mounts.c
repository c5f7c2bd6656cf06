/*
 * Runs in:   brood-zygote, before its lock.
 * Trusts:    the kernel's mountinfo.
 * Blocks on: nothing.
 *
 * mount_setattr(2) changes a whole tree at once. Where it is missing (before Linux 5.12) or filtered by a container, each mount is
 * remounted by itself. A remount replaces the flags, and in a user namespace those of the source are locked: leaving one
 * out fails with EPERM. So the old ones are read first and given again.
 */
#include "zygote/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

static const struct {
	unsigned long mount;   /* MS_* */
	unsigned long statvfs; /* ST_* */
	uint64_t attribute;    /* MOUNT_ATTR_*; 0: kept, never set */
} FLAGS[] = {
	{MS_RDONLY, ST_RDONLY, MOUNT_ATTR_RDONLY},
	{MS_NOSUID, ST_NOSUID, MOUNT_ATTR_NOSUID},
	{MS_NODEV, ST_NODEV, MOUNT_ATTR_NODEV},
	{MS_NOEXEC, ST_NOEXEC, MOUNT_ATTR_NOEXEC},
	{MS_NOATIME, ST_NOATIME, 0},
	{MS_NODIRATIME, ST_NODIRATIME, 0},
	{MS_RELATIME, ST_RELATIME, 0},
};

#define FLAG_COUNT (sizeof(FLAGS) / sizeof(FLAGS[0]))

static int restrict_one(const char *path, unsigned long flags)
{
	struct statvfs now;

	if (statvfs(path, &now) < 0)
		return -errno;
	for (size_t i = 0; i < FLAG_COUNT; i++)
		if (now.f_flag & FLAGS[i].statvfs)
			flags |= FLAGS[i].mount;
	return mount("none", path, NULL, MS_REMOUNT | MS_BIND | flags, NULL) < 0 ? -errno : 0;
}

/* mountinfo writes blanks and backslashes in paths as \040 and the like. In place. */
static void unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from; to++) {
		/* Always a backslash and three octal digits; a backslash itself is written so too. */
		if (from[0] == '\\' && strspn(from + 1, "01234567") >= 3) {
			*to = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
			from += 4;
			continue;
		}
		*to = *from++;
	}
	*to = '\0';
}

static bool below(const char *path, const char *base)
{
	size_t len = strlen(base);

	if (strcmp(base, "/") == 0)
		return true;
	return strncmp(path, base, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

/* The mount point of a line of mountinfo, its fifth field; NULL when the line is not what it should be. */
static char *mount_point(char *line)
{
	char *save = NULL, *field = strtok_r(line, " ", &save);

	for (int i = 1; i < 5 && field; i++)
		field = strtok_r(NULL, " ", &save);
	if (field)
		unescape(field);
	return field;
}

int zyg_mount_restrict_each(const char *path, unsigned long flags, int proc)
{
	int fd = openat(proc, "mountinfo", O_RDONLY | O_CLOEXEC);
	FILE *mounts = fd < 0 ? NULL : fdopen(fd, "r");
	char *line = NULL;
	size_t room = 0;
	int error = 0;

	if (!mounts) {
		error = -errno;
		if (fd >= 0)
			close(fd);
		return error;
	}
	while (!error && getline(&line, &room, mounts) > 0) {
		const char *point = mount_point(line);

		if (point && below(point, path))
			error = restrict_one(point, flags);
	}
	free(line);
	fclose(mounts);
	return error;
}

int zyg_mount_restrict(const char *path, unsigned long flags, int proc)
{
	struct mount_attr attributes = {.attr_set = 0};

	for (size_t i = 0; i < FLAG_COUNT; i++)
		if (flags & FLAGS[i].mount)
			attributes.attr_set |= FLAGS[i].attribute;
	if (mount_setattr(AT_FDCWD, path, AT_RECURSIVE, &attributes, sizeof(attributes)) == 0)
		return 0;
	if (errno != ENOSYS && errno != EPERM)
		return -errno;
	return zyg_mount_restrict_each(path, flags, proc);
}
