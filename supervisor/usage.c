/*
 * Runs in:   broodd
 * Trusts:    the kernel only; a worker is not asked
 * Blocks on: nothing (reads of /proc)
 */
#include "supervisor/usage.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

pid_t sup_pidfd_pid(int pidfd)
{
	char path[64], text[512];
	const char *found;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return -1;
	text[n] = '\0';
	found = strstr(text, "\nPid:");
	return found ? (pid_t)strtol(found + 5, NULL, 10) : -1;
}

int sup_open_status(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

uint64_t sup_cpu_us(pid_t pid)
{
	clockid_t clock;
	struct timespec t;

	if (pid <= 0 || clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) < 0)
		return 0;
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

uint64_t sup_peak_memory(int status_fd)
{
	char text[2048];
	const char *found;
	ssize_t n;

	if (status_fd < 0)
		return 0;
	n = pread(status_fd, text, sizeof(text) - 1, 0);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	/* The first line is the process's name, which the code may choose; a name cannot hold a newline unescaped. */
	found = strstr(text, "\nVmHWM:");
	return found ? strtoull(found + 7, NULL, 10) * 1024 : 0;
}
