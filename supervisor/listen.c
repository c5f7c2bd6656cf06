/*
 * Runs in:   broodd
 * Trusts:    the kernel's word for who connected (SO_PEERCRED)
 * Blocks on: nothing
 */
#include "supervisor/listen.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "supervisor/client.h"
#include "supervisor/log.h"

#define ACCEPTS_AT_ONCE 32
#define REST_US 100000

struct sup_listener {
	struct sup_server *server;
	int fd;
	struct event *ev_accept, *ev_rest;
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	dev_t dev; /* of the socket file that we made */
	ino_t ino;
};

static bool allowed(const struct sup_config *config, uid_t uid)
{
	if (config->allow_users_count == 0)
		return uid == geteuid() || uid == 0;
	for (size_t i = 0; i < config->allow_users_count; i++) {
		if (config->allow_users[i] == uid)
			return true;
	}
	return false;
}

/* A last word to a connection that is not taken: it is lost if the socket does not take it at once. */
static void turn_away(struct sup_server *server, int fd, enum sup_rpc_code code, const char *message)
{
	msgpack_packer pk;

	sup_buffer_begin(&server->packed, &pk);
	sup_pack_error(&pk, false, 0, code, message);
	if (server->packed.failed || send(fd, server->packed.data, server->packed.len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		sup_log(SUP_LOG_DEBUG, "a connection was closed without a word");
	close(fd);
}

static void take(struct sup_server *server, int fd)
{
	struct ucred peer = {.uid = (uid_t)-1};
	socklen_t size = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || !allowed(server->config, peer.uid)) {
		sup_log(SUP_LOG_WARNING, "refused a connection of uid %u (pid %d): not in allow_users", peer.uid,
			peer.pid);
		turn_away(server, fd, SUP_RPC_FORBIDDEN, "your user may not use this server; see `allow_users`");
	} else if (server->clients_count >= server->config->clients) {
		turn_away(server, fd, SUP_RPC_UNAVAILABLE, "too many connections; see `clients`");
	} else {
		sup_client_new(server, fd, fd);
	}
}

static void on_accept(evutil_socket_t fd, short what, void *context)
{
	struct sup_listener *listener = context;

	(void)what;
	for (int i = 0; i < ACCEPTS_AT_ONCE; i++) {
		int taken = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (taken >= 0) {
			take(listener->server, taken);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
			/* The connection stays in the kernel's queue: asking again at once would only spin. */
			sup_log(SUP_LOG_WARNING, "cannot accept a connection: %s", strerror(errno));
			event_del(listener->ev_accept);
			sup_timer_set(listener->ev_rest, REST_US);
		}
		return;
	}
}

static void on_rested(evutil_socket_t fd, short what, void *context)
{
	struct sup_listener *listener = context;

	(void)fd;
	(void)what;
	event_add(listener->ev_accept, NULL);
}

static int fail(char *error, const char *path, const char *what, const char *advice)
{
	snprintf(error, SUP_LISTEN_ERROR_MAX, "socket %s: %s: %s%s", path, what, strerror(errno), advice);
	return -1;
}

/* A socket file that nobody answers on is left over from a supervisor that was killed. */
static int clear_stale(const struct sockaddr_un *address, char *error)
{
	struct stat st;
	int fd, answered;

	if (lstat(address->sun_path, &st) < 0)
		return errno == ENOENT ? 0 : fail(error, address->sun_path, "cannot be examined", "");
	if (!S_ISSOCK(st.st_mode)) {
		errno = EEXIST;
		return fail(error, address->sun_path, "is there and is not a socket",
			    "; choose another path or remove it");
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return fail(error, address->sun_path, "no socket to try it with", "");
	answered = connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 || errno != ECONNREFUSED;
	close(fd);
	if (answered) {
		errno = EADDRINUSE;
		return fail(error, address->sun_path, "another server answers on it",
			    "; stop that one or choose another path");
	}
	if (unlink(address->sun_path) < 0)
		return fail(error, address->sun_path, "is stale and cannot be removed", "");
	return 0;
}

static int bind_socket(struct sup_listener *listener, const struct sockaddr_un *address, mode_t mode, char *error)
{
	struct stat st;
	mode_t old;
	int result;

	listener->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (listener->fd < 0)
		return fail(error, address->sun_path, "cannot be made", "");
	/* Never open to others, not even for the moment before a chmod. */
	old = umask(0777 & ~mode);
	result = bind(listener->fd, (const struct sockaddr *)address, sizeof(*address));
	umask(old);
	if (result < 0)
		return fail(error, address->sun_path, "cannot be bound",
			    "; does its directory exist, and may you write there?");
	if (lstat(address->sun_path, &st) < 0 || chmod(address->sun_path, mode) < 0)
		return fail(error, address->sun_path, "cannot be given its mode", "");
	listener->dev = st.st_dev;
	listener->ino = st.st_ino;
	memcpy(listener->path, address->sun_path, sizeof(listener->path));
	if (listen(listener->fd, SOMAXCONN) < 0)
		return fail(error, address->sun_path, "cannot be listened on", "");
	return 0;
}

static struct sup_listener *listener_new(struct sup_server *server)
{
	struct sup_listener *listener = calloc(1, sizeof(*listener));

	if (!listener)
		return NULL;
	listener->server = server;
	listener->fd = -1;
	return listener;
}

static int watch(struct sup_listener *listener)
{
	struct event_base *base = listener->server->base;

	listener->ev_accept = event_new(base, listener->fd, EV_READ | EV_PERSIST, on_accept, listener);
	listener->ev_rest = evtimer_new(base, on_rested, listener);
	if (!listener->ev_accept || !listener->ev_rest)
		return -1;
	return event_add(listener->ev_accept, NULL);
}

int sup_listen_start(struct sup_server *server, char error[SUP_LISTEN_ERROR_MAX])
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const char *path = server->config->socket;

	if (strlen(path) >= sizeof(address.sun_path)) {
		errno = ENAMETOOLONG;
		return fail(error, path, "cannot be used", "; a socket's path has at most 107 bytes");
	}
	memcpy(address.sun_path, path, strlen(path) + 1);
	server->listener = listener_new(server);
	if (!server->listener)
		return fail(error, path, "cannot be made", "");
	if (clear_stale(&address, error) == 0 &&
	    bind_socket(server->listener, &address, (mode_t)server->config->socket_mode, error) == 0) {
		if (watch(server->listener) == 0)
			return 0;
		fail(error, path, "cannot be watched", "");
	}
	sup_listen_stop(server);
	return -1;
}

void sup_listen_stop(struct sup_server *server)
{
	struct sup_listener *listener = server->listener;
	struct stat st;

	if (!listener)
		return;
	/* Not if a successor has put its own there. */
	if (listener->path[0] && lstat(listener->path, &st) == 0 && st.st_dev == listener->dev &&
	    st.st_ino == listener->ino)
		unlink(listener->path);
	if (listener->ev_accept)
		event_free(listener->ev_accept);
	if (listener->ev_rest)
		event_free(listener->ev_rest);
	if (listener->fd >= 0)
		close(listener->fd);
	free(listener);
	server->listener = NULL;
}
