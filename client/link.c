/*
 * Runs in:   brood
 * Trusts:    the path of the supervisor; not its bytes
 * Blocks on: the server, and signals
 *
 * A private supervisor is a child with pipes for its standard input and output, in a process group of its own, so that Ctrl-C reaches
 * this command only, which then cancels the call in an orderly way. It ends when its input ends; should this command die by
 * SIGKILL, the kernel closes the pipes and it ends all the same.
 */
#include "client/link.h"

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
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define ENDING_MS 10000 /* until a private supervisor that does not end is killed */
#define ARGS_MAX 40

extern char **environ;

/* broodd: $BROOD_BROODD, or beside this program, or in ../sbin or ../libexec/brood of it, or on PATH. */
static void find_broodd(char *path, size_t room)
{
	static const char *const PLACES[] = {"", "../sbin/", "../libexec/brood/"};
	const char *chosen = getenv("BROOD_BROODD");
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	const char *directory;

	if (chosen && chosen[0]) {
		snprintf(path, room, "%s", chosen);
		return;
	}
	self[n > 0 ? n : 0] = '\0';
	directory = dirname(self);
	for (size_t i = 0; n > 0 && i < sizeof(PLACES) / sizeof(PLACES[0]); i++) {
		snprintf(path, room, "%s/%sbroodd", directory, PLACES[i]);
		if (access(path, X_OK) == 0)
			return;
	}
	snprintf(path, room, "broodd");
}

struct arguments {
	char *argv[ARGS_MAX];
	char texts[ARGS_MAX][256];
	int count;
};

static void add(struct arguments *args, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct arguments *args, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(args->texts[args->count], sizeof(args->texts[0]), format, list);
	va_end(list);
	args->argv[args->count] = args->texts[args->count];
	args->argv[++args->count] = NULL;
}

/* The user owns this supervisor, so its limits are what the user asks for, above the profile's defaults too. One worker is all it needs. */
static void make_arguments(struct arguments *args, const struct cli_options *options)
{
	const char *profile = options->profile ? options->profile : "default";

	add(args, "broodd");
	add(args, "--stdio");
	add(args, "--log-level");
	add(args, "warning");
	if (options->config) {
		add(args, "--config");
		args->argv[args->count] = (char *)(uintptr_t)options->config;
		args->argv[++args->count] = NULL;
	}
	/* An unknown profile is for the supervisor to refuse, in its answer to the call. */
	if (strlen(profile) > 64 || (strcmp(profile, "default") != 0 && !options->config))
		return;
	add(args, "-o");
	add(args, "%s:parked=1", profile);
	for (int i = 0; i < BROOD_LIMIT_COUNT; i++) {
		if (!options->limit_given[i])
			continue;
		add(args, "-o");
		add(args, "%s:%s=%.64s", profile, BROOD_LIMITS[i].key, options->limit_texts[i]);
	}
}

static int spawn(struct cli_link *link, const char *path, char *const argv[], int child_in, int child_out)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, defaults;
	int error;

	sigemptyset(&none);
	sigemptyset(&defaults);
	sigaddset(&defaults, SIGPIPE);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, child_in, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, child_out, STDOUT_FILENO);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setpgroup(&attributes, 0);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &defaults);
	error = posix_spawnp(&link->child, path, &actions, &attributes, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	if (error)
		link->child = 0;
	return error;
}

static int start_private(struct cli_link *link, const struct cli_options *options, char *error)
{
	char path[PATH_MAX + 32];
	struct arguments args = {.count = 0};
	int to[2] = {-1, -1}, from[2] = {-1, -1}, failed;

	find_broodd(path, sizeof(path));
	make_arguments(&args, options);
	if (pipe2(to, O_CLOEXEC) < 0 || pipe2(from, O_CLOEXEC) < 0)
		failed = errno;
	else
		failed = spawn(link, path, args.argv, to[0], from[1]);
	if (to[0] >= 0)
		close(to[0]);
	if (from[1] >= 0)
		close(from[1]);
	link->out_fd = to[1];
	link->in_fd = from[0];
	if (!failed)
		return 0;
	snprintf(error, CLI_ERROR_MAX, "cannot start the supervisor %.300s: %s; set BROOD_BROODD to its path, or give --socket", path,
		 strerror(failed));
	return -1;
}

static int connect_socket(struct cli_link *link, const char *path, char *error)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof(address.sun_path)) {
		snprintf(error, CLI_ERROR_MAX, "socket %.200s: a socket's path has at most 107 bytes", path);
		return -1;
	}
	memcpy(address.sun_path, path, strlen(path) + 1);
	link->in_fd = link->out_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (link->in_fd < 0 || connect(link->in_fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		snprintf(error, CLI_ERROR_MAX, "cannot connect to %s: %s; is broodd running there, and may you use it?", path,
			 strerror(errno));
		return -1;
	}
	return 0;
}

int cli_link_open(struct cli_link *link, const struct cli_options *options, char error[CLI_ERROR_MAX])
{
	sigset_t ours;

	memset(link, 0, sizeof(*link));
	link->in_fd = link->out_fd = link->signal_fd = -1;
	brood_scan_init(&link->scan, CLI_MESSAGE_MAX, BROOD_SCAN_DEPTH);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&ours);
	sigaddset(&ours, SIGINT);
	sigaddset(&ours, SIGTERM);
	sigprocmask(SIG_BLOCK, &ours, NULL);
	link->signal_fd = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
	if (link->signal_fd < 0) {
		snprintf(error, CLI_ERROR_MAX, "cannot watch for signals: %s", strerror(errno));
		return -1;
	}
	return options->socket ? connect_socket(link, options->socket, error) : start_private(link, options, error);
}

int cli_link_send(struct cli_link *link, const void *data, size_t len)
{
	const uint8_t *at = data;

	while (len > 0) {
		ssize_t n = write(link->out_fd, at, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

static int reserve(struct cli_link *link)
{
	size_t room = link->room ? link->room * 2 : 64 * 1024;
	uint8_t *grown;

	if (link->len < link->room)
		return 0;
	grown = realloc(link->data, room);
	if (!grown)
		return -1;
	link->data = grown;
	link->room = room;
	return 0;
}

/* Waits for bytes or a signal, and reads what there is. */
static enum cli_event wait_for_more(struct cli_link *link)
{
	struct pollfd watched[2] = {{.fd = link->in_fd, .events = POLLIN}, {.fd = link->signal_fd, .events = POLLIN}};
	struct signalfd_siginfo info;
	ssize_t n;

	if (poll(watched, 2, -1) < 0 && errno != EINTR)
		return CLI_END;
	if ((watched[1].revents & POLLIN) && read(link->signal_fd, &info, sizeof(info)) == sizeof(info))
		return CLI_SIGNAL;
	if (!watched[0].revents)
		return CLI_MESSAGE;
	if (reserve(link) < 0)
		return CLI_BAD;
	n = read(link->in_fd, link->data + link->len, link->room - link->len);
	if (n <= 0 && !(n < 0 && errno == EINTR))
		return CLI_END;
	link->len += n > 0 ? (size_t)n : 0;
	return CLI_MESSAGE;
}

enum cli_event cli_link_next(struct cli_link *link, const uint8_t **message, size_t *len)
{
	size_t end;

	link->len -= link->taken;
	if (link->taken > 0)
		memmove(link->data, link->data + link->taken, link->len);
	link->taken = 0;
	for (;;) {
		int got = brood_scan_feed(&link->scan, link->data, link->len, &end);
		enum cli_event event;

		if (got < 0)
			return CLI_BAD;
		if (got == 1) {
			brood_scan_init(&link->scan, CLI_MESSAGE_MAX, BROOD_SCAN_DEPTH);
			*message = link->data;
			*len = link->taken = end;
			return CLI_MESSAGE;
		}
		event = wait_for_more(link);
		if (event != CLI_MESSAGE)
			return event;
	}
}

static void end_child(struct cli_link *link)
{
	int pidfd = (int)syscall(SYS_pidfd_open, link->child, 0), status = 0;
	struct pollfd ended = {.fd = pidfd, .events = POLLIN};

	if (pidfd >= 0) {
		if (poll(&ended, 1, ENDING_MS) == 0)
			kill(link->child, SIGKILL);
		close(pidfd);
	}
	while (waitpid(link->child, &status, 0) < 0 && errno == EINTR)
		;
	link->child_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	link->child = 0;
}

void cli_link_close(struct cli_link *link)
{
	if (link->out_fd >= 0 && link->out_fd != link->in_fd)
		close(link->out_fd);
	if (link->in_fd >= 0)
		close(link->in_fd);
	link->in_fd = link->out_fd = -1;
	if (link->child > 0)
		end_child(link);
	if (link->signal_fd >= 0)
		close(link->signal_fd);
	link->signal_fd = -1;
	free(link->data);
	link->data = NULL;
}
