/*
 * Runs in:   brood
 * Trusts:    its user
 * Blocks on: the file, or standard input
 */
#include "client/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/scan.h"

#define FIRST_ROOM 65536

static int fail(char *error, const char *what, const char *why)
{
	snprintf(error, CLI_SOURCE_ERROR_MAX, "%.300s: %s", what, why);
	return -1;
}

static int fail_size(char *error, const char *what)
{
	snprintf(error, CLI_SOURCE_ERROR_MAX, "%.300s: too large; at most %llu bytes can be sent", what,
		 (unsigned long long)BROOD_REQUEST_CEILING);
	return -1;
}

static int grow(struct cli_source *source, size_t *room)
{
	size_t larger = *room ? *room * 2 : FIRST_ROOM;
	char *data = realloc(source->data, larger);

	if (!data)
		return -1;
	source->data = data;
	*room = larger;
	return 0;
}

/* To the end; a file that grows meanwhile, or that says no size, is bounded all the same. */
static int read_all(struct cli_source *source, int fd, const char *what, char *error)
{
	size_t room = 0;

	for (;;) {
		ssize_t n;

		if (source->len == room && grow(source, &room) < 0)
			return fail(error, what, "out of memory");
		n = read(fd, source->data + source->len, room - source->len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail(error, what, strerror(errno));
		if (n == 0)
			return 0;
		source->len += (size_t)n;
		if (source->len > BROOD_REQUEST_CEILING)
			return fail_size(error, what);
	}
}

/* The path as tracebacks show it: UTF-8, and its last part only if the whole is too long. */
static void set_name(struct cli_source *source, const char *path)
{
	const char *slash = strrchr(path, '/');

	if (strlen(path) > BROOD_NAME_MAX && slash)
		path = slash + 1;
	snprintf(source->name, sizeof(source->name), "%s", path);
	if (brood_utf8_valid((const uint8_t *)source->name, strlen(source->name)))
		return;
	for (char *c = source->name; *c; c++) {
		if ((unsigned char)*c >= 0x80)
			*c = '?';
	}
}

static int open_file(const char *path, char *error)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		fail(error, path, strerror(errno));
	} else if (S_ISDIR(st.st_mode)) {
		fail(error, path, "is a directory");
	} else if (S_ISREG(st.st_mode) && (uint64_t)st.st_size > BROOD_REQUEST_CEILING) {
		fail_size(error, path);
	} else {
		return fd;
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

int cli_source_read(struct cli_source *out, const char *path, char error[CLI_SOURCE_ERROR_MAX])
{
	struct cli_source source = {.data = NULL};
	int fd, result;

	if (strcmp(path, "-") == 0) {
		snprintf(source.name, sizeof(source.name), "<stdin>");
		result = read_all(&source, STDIN_FILENO, "standard input", error);
	} else {
		set_name(&source, path);
		fd = open_file(path, error);
		if (fd < 0)
			return -1;
		result = read_all(&source, fd, path, error);
		close(fd);
	}
	if (result == 0)
		*out = source;
	else
		cli_source_free(&source);
	return result;
}

void cli_source_free(struct cli_source *source)
{
	if (!source)
		return;
	free(source->data);
	source->data = NULL;
	source->len = 0;
}
