/*
 * Runs in:   brood-zygote, before its lock.
 * Trusts:    the kernel's /proc.
 * Blocks on: nothing.
 *
 * The zygote's own root has no /proc, and a pid namespace has no use for the host's. The descriptor outlives both changes: its mount is
 * the host's, so `self` in it is this process under whatever pid the host knows it.
 */
#include "zygote/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int zyg_proc_open(void)
{
	int fd = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int zyg_proc_tasks(int proc)
{
	int fd = openat(proc, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *entry;
	int tasks = 0;
	DIR *dir;

	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return -ENOMEM;
	}
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			tasks++;
	closedir(dir);
	return tasks;
}

int zyg_proc_status(int proc, const char *field, uint64_t *out)
{
	size_t name_len = strlen(field);
	char text[8192];
	ssize_t len;
	int fd = openat(proc, "status", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (len < 0)
		return -EIO;
	text[len] = '\0';
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, field, name_len) == 0 && line[name_len] == ':') {
			*out = strtoull(line + name_len + 1, NULL, 10) * 1024;
			return 0;
		}
	}
	return -ENOENT;
}

int zyg_proc_write(int proc, const char *file, const char *text)
{
	size_t len = strlen(text);
	int fd = openat(proc, file, O_WRONLY | O_CLOEXEC);
	ssize_t written;
	int error;

	if (fd < 0)
		return -errno;
	written = write(fd, text, len);
	error = written < 0 ? -errno : written == (ssize_t)len ? 0 : -EIO;
	close(fd);
	return error;
}
