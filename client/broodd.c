/*
 * Runs in:   brood
 * Trusts:    the broodd that it finds
 * Blocks on: the end of broodd, for at most END_WAIT_MS
 *
 * broodd gets one end of a socket pair as its standard input and output, our standard error, and a session of its own, so that a
 * terminal's Ctrl-C reaches only us: we ask it to cancel and still get its answer. It ends when our end of the pair is closed, also
 * when we are killed.
 */
#include "client/broodd.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/signals.h"

#define END_WAIT_MS 5000
#define ARGS_MAX 32
#define ARG_MAX_BYTES (BROOD_NAME_MAX + 64)

extern char **environ;

struct arguments {
	char *argv[ARGS_MAX + 1];
	char texts[ARGS_MAX][ARG_MAX_BYTES];
	size_t count;
};

static int fail(char *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int fail(char *error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error, CLI_BROODD_ERROR_MAX, format, args);
	va_end(args);
	return -1;
}

/* --- where it is --- */

/* Build tree and installation put the two side by side; the other places are where distributions put daemons. */
static int find(char path[PATH_MAX], char *error)
{
	static const char *const PLACES[] = {"broodd", "../sbin/broodd", "../libexec/brood/broodd"};
	const char *named = getenv("BROOD_BROODD");
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	const char *directory;

	if (named && named[0]) {
		if (access(named, X_OK) < 0)
			return fail(error, "cannot start %s, which BROOD_BROODD names: %s", named, strerror(errno));
		snprintf(path, PATH_MAX, "%s", named);
		return 0;
	}
	self[n > 0 ? n : 0] = '\0';
	directory = dirname(self);
	for (size_t i = 0; i < sizeof(PLACES) / sizeof(PLACES[0]); i++) {
		int len = snprintf(path, PATH_MAX, "%s/%s", directory, PLACES[i]);

		if (len > 0 && len < PATH_MAX && access(path, X_OK) == 0)
			return 0;
	}
	snprintf(path, PATH_MAX, "broodd"); /* searched for in PATH */
	return 0;
}

/* --- how it is started --- */

static void add(struct arguments *args, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct arguments *args, const char *format, ...)
{
	char *text = args->texts[args->count];
	va_list list;

	va_start(list, format);
	vsnprintf(text, ARG_MAX_BYTES, format, list);
	va_end(list);
	args->argv[args->count++] = text;
}

/* The user owns this broodd, so a call's limits may go above its profile's: they become the profile's. */
static void add_limits(struct arguments *args, const struct cli_options *options, const char *profile)
{
	for (int i = 0; i < BROOD_LIMIT_COUNT; i++) {
		const struct brood_limit_spec *spec = &BROOD_LIMITS[i];

		if (!options->limit_given[i])
			continue;
		add(args, "-o");
		add(args, "%s:%s=%llu%s", profile, spec->key, (unsigned long long)options->limits.v[i],
		    spec->unit == BROOD_UNIT_MS ? "ms" : "");
	}
}

/* At most 4 + 2 + 4 + 2 * BROOD_LIMIT_COUNT arguments. */
static void build(struct arguments *args, const struct cli_options *options, size_t request_bytes)
{
	const char *profile = options->profile ? options->profile : "default";

	args->count = 0;
	add(args, "broodd");
	add(args, "--stdio");
	add(args, "--log-level");
	add(args, "warning");
	if (options->config) {
		add(args, "--config");
		args->argv[args->count++] = (char *)(uintptr_t)options->config;
	}
	/*
	 * One worker is all that one call needs. Other profiles are left as they are: an override for a profile that does not exist stops
	 * broodd, where its answer to the call would say the same as any server's.
	 */
	if (strcmp(profile, "default") == 0) {
		add(args, "-o");
		add(args, "default:parked=1");
	}
	if (request_bytes > BROOD_REQUEST_PRESET) {
		add(args, "-o");
		add(args, "broodd:request=%llu", (unsigned long long)BROOD_REQUEST_CEILING);
	}
	add_limits(args, options, profile);
	args->argv[args->count] = NULL;
}

static int set_up(posix_spawn_file_actions_t *actions, posix_spawnattr_t *attributes, int fd)
{
	sigset_t none, usual;

	sigemptyset(&none);
	sigemptyset(&usual);
	sigaddset(&usual, SIGPIPE);
	sigaddset(&usual, SIGINT);
	sigaddset(&usual, SIGTERM);
	if (posix_spawn_file_actions_adddup2(actions, fd, STDIN_FILENO) != 0 ||
	    posix_spawn_file_actions_adddup2(actions, fd, STDOUT_FILENO) != 0 ||
	    posix_spawnattr_setsigmask(attributes, &none) != 0 ||
	    posix_spawnattr_setsigdefault(attributes, &usual) != 0)
		return -1;
	return posix_spawnattr_setflags(attributes,
					POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

/* 0 or an errno. */
static int spawn(pid_t *pid, const char *path, char *const argv[], int fd)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int result = ENOMEM;

	if (posix_spawn_file_actions_init(&actions) != 0)
		return ENOMEM;
	if (posix_spawnattr_init(&attributes) == 0) {
		if (set_up(&actions, &attributes, fd) == 0)
			result = posix_spawnp(pid, path, &actions, &attributes, argv, environ);
		posix_spawnattr_destroy(&attributes);
	}
	posix_spawn_file_actions_destroy(&actions);
	return result;
}

int cli_broodd_start(struct cli_broodd *broodd, const struct cli_options *options, size_t request_bytes,
		     char error[CLI_BROODD_ERROR_MAX])
{
	struct arguments args;
	char path[PATH_MAX];
	int fds[2], result;

	if (find(path, error) < 0)
		return -1;
	build(&args, options, request_bytes);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return fail(error, "cannot make a socket pair: %s", strerror(errno));
	result = spawn(&broodd->pid, path, args.argv, fds[1]);
	close(fds[1]);
	if (result == 0) {
		/* It was not waited for, so the pid is still its own, even if it has ended already. */
		broodd->pidfd = (int)syscall(SYS_pidfd_open, broodd->pid, 0);
		cli_signals_take_along(broodd->pid);
		return fds[0];
	}
	close(fds[0]);
	broodd->pid = 0;
	if (result == ENOENT && strchr(path, '/') == NULL)
		return fail(error,
			    "broodd is neither beside this program, nor in ../sbin or ../libexec/brood, nor in PATH; "
			    "set BROOD_BROODD to where it is, or BROOD_SOCKET to the socket of one that runs");
	return fail(error, "cannot start %s: %s", path, strerror(result));
}

/* --- its end --- */

static void wait_end(const struct cli_broodd *broodd)
{
	struct pollfd fd = {.fd = broodd->pidfd, .events = POLLIN};
	int n;

	/* Without pidfds (a kernel before 5.3) there is nothing to wait for with a bound; closing our end must do. */
	if (broodd->pidfd < 0)
		return;
	do
		n = poll(&fd, 1, END_WAIT_MS);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		kill(broodd->pid, SIGKILL);
}

void cli_broodd_end(struct cli_broodd *broodd)
{
	if (!broodd || broodd->pid == 0)
		return;
	wait_end(broodd);
	/* The pid is taken from the signal handler before it can become another's. */
	if (broodd->pidfd >= 0)
		cli_signals_take_along(0);
	while (waitpid(broodd->pid, &broodd->status, 0) < 0 && errno == EINTR)
		;
	cli_signals_take_along(0);
	broodd->pid = 0;
	if (broodd->pidfd >= 0)
		close(broodd->pidfd);
	broodd->pidfd = -1;
}
