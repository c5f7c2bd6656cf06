/*
 * Runs in:   broodd
 * Trusts:    nothing that a client sends; that it may use this server at all was decided by its uid (listen.c)
 * Blocks on: nothing: what a client does not take is kept up to a bound, and then nothing more is made for it
 *
 * Reading: bytes go through the scanner as they come; a message is looked at only once it is whole and proved harmless. Most
 * messages come in one read and are handled from the server's scratch without a copy.
 *
 * Back-pressure: beyond BROOD_BACKLOG_HIGH bytes that a client has not taken, its requests are not read, its waiting calls do not start, and its
 * streaming calls' pipes are not read. What can still come is the answers of its running calls, each of which has its own bound.
 */
#include "supervisor/client.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol/error.h"
#include "supervisor/call.h"
#include "supervisor/log.h"
#include "supervisor/methods.h"
#include "supervisor/profile.h"
#include "supervisor/worker.h"

#define HALF_CLOSED_CHECK_US 100000

/* --- the end --- */

static void client_free(struct sup_client *client)
{
	struct sup_client_lane *lane;

	while ((lane = TAILQ_FIRST(&client->lanes)) != NULL) {
		TAILQ_REMOVE(&client->lanes, lane, link);
		free(lane);
	}
	if (client->ev_in)
		event_free(client->ev_in);
	if (client->ev_out)
		event_free(client->ev_out);
	if (client->ev_half_closed)
		event_free(client->ev_half_closed);
	if (client->ev_dead)
		event_free(client->ev_dead);
	if (client->backlog)
		evbuffer_free(client->backlog);
	if (client->out_fd >= 0 && client->out_fd != client->in_fd)
		close(client->out_fd);
	if (client->in_fd >= 0)
		close(client->in_fd);
	free(client->buf);
	free(client);
}

void sup_client_destroy(struct sup_client *client)
{
	struct sup_call *call;

	client->dead = true;
	while ((call = TAILQ_FIRST(&client->calls)) != NULL)
		sup_call_forget(call);
	TAILQ_REMOVE(&client->server->clients, client, link);
	client->server->clients_count--;
	client_free(client);
}

static void on_dead(evutil_socket_t fd, short what, void *context)
{
	struct sup_client *client = context;
	struct sup_server *server = client->server;

	(void)fd;
	(void)what;
	TAILQ_REMOVE(&server->clients, client, link);
	server->clients_count--;
	client_free(client);
	if (server->stdio && server->clients_count == 0)
		sup_server_stop(server, "the client on standard input is gone");
	sup_server_check_stopped(server);
}

void sup_client_drop(struct sup_client *client, const char *why)
{
	struct sup_call *call, *next;
	struct sup_profile *profile;

	if (client->dead)
		return;
	client->dead = true;
	sup_log(SUP_LOG_DEBUG, "client %llu: %s", (unsigned long long)client->serial, why);
	event_del(client->ev_in);
	event_del(client->ev_out);
	event_del(client->ev_half_closed);
	for (call = TAILQ_FIRST(&client->calls); call; call = next) {
		next = TAILQ_NEXT(call, link);
		sup_call_forget(call);
	}
	/* Workers became free and places in queues too. */
	TAILQ_FOREACH(profile, &client->server->profiles, link)
	sup_profile_wake(profile);
	event_active(client->ev_dead, 0, 0);
}

void sup_client_finish(struct sup_client *client)
{
	if (client->dead)
		return;
	client->closing = true;
	event_del(client->ev_in);
	if (evbuffer_get_length(client->backlog) == 0)
		sup_client_drop(client, "closed after its last answer");
}

/* Whether the other side is gone altogether, not only done with sending. */
static bool hung_up(const struct sup_client *client)
{
	struct pollfd out = {.fd = client->out_fd, .events = 0};

	return poll(&out, 1, 0) > 0 && (out.revents & (POLLHUP | POLLERR));
}

static void on_half_closed(evutil_socket_t fd, short what, void *context)
{
	struct sup_client *client = context;

	(void)fd;
	(void)what;
	if (hung_up(client))
		sup_client_drop(client, "hung up");
	else
		sup_timer_set(client->ev_half_closed, HALF_CLOSED_CHECK_US);
}

void sup_client_call_ended(struct sup_client *client)
{
	if (!client->dead && client->eof && client->open == 0)
		sup_client_finish(client);
}

static void on_eof(struct sup_client *client)
{
	client->eof = true;
	event_del(client->ev_in);
	if (hung_up(client))
		sup_client_drop(client, "hung up");
	else if (client->open == 0)
		sup_client_finish(client);
	else
		sup_timer_set(client->ev_half_closed, HALF_CLOSED_CHECK_US);
}

/* --- writing --- */

bool sup_client_backlogged(const struct sup_client *client)
{
	return evbuffer_get_length(client->backlog) > BROOD_BACKLOG_HIGH;
}

void sup_client_send_packed(struct sup_client *client)
{
	struct sup_buffer *packed = &client->server->packed;
	size_t written = 0;

	if (client->dead)
		return;
	if (packed->failed) {
		sup_client_drop(client, "no memory for its answer");
		return;
	}
	if (evbuffer_get_length(client->backlog) == 0) {
		ssize_t n = write(client->out_fd, packed->data, packed->len);

		if (n < 0 && errno != EAGAIN && errno != EINTR) {
			sup_client_drop(client, "does not take its answer any more");
			return;
		}
		written = n > 0 ? (size_t)n : 0;
		if (written == packed->len)
			return;
	}
	if (evbuffer_add(client->backlog, packed->data + written, packed->len - written) < 0) {
		sup_client_drop(client, "no memory for its answer");
		return;
	}
	event_add(client->ev_out, NULL);
	/* Its waiting calls are passed over from now on (profile.c). */
	if (sup_client_backlogged(client))
		event_del(client->ev_in);
}

/* It takes answers again: go on with all that was held back. */
static void release(struct sup_client *client)
{
	struct sup_call *call;
	struct sup_client_lane *lane;

	if (!client->eof && !client->closing)
		event_add(client->ev_in, NULL);
	TAILQ_FOREACH(call, &client->calls, link)
	{
		if (call->worker && call->stream)
			sup_worker_resume_output(call->worker);
	}
	TAILQ_FOREACH(lane, &client->lanes, link)
	sup_profile_wake(lane->profile);
}

static void on_writable(evutil_socket_t fd, short what, void *context)
{
	struct sup_client *client = context;
	bool was_held = sup_client_backlogged(client);

	(void)what;
	if (evbuffer_write(client->backlog, fd) < 0 && errno != EAGAIN && errno != EINTR) {
		sup_client_drop(client, "does not take its answer any more");
		return;
	}
	if (was_held && !sup_client_backlogged(client))
		release(client);
	if (evbuffer_get_length(client->backlog) > 0)
		return;
	event_del(client->ev_out);
	if (client->closing)
		sup_client_drop(client, "closed after its last answer");
}

/* --- reading --- */

static void reset_scan(struct sup_client *client)
{
	const struct sup_config *config = client->server->config;

	brood_scan_init(&client->scan, config->request_bytes, (unsigned)config->nesting + BROOD_ENVELOPE_DEPTH);
}

static void refuse_bytes(struct sup_client *client, int error)
{
	sup_methods_malformed(client, brood_strerror(error));
	sup_client_finish(client);
}

/* Handles the whole messages at the start of the data. Returns how many bytes they were. */
static size_t take_messages(struct sup_client *client, const uint8_t *data, size_t len)
{
	size_t done = 0, end;

	while (done < len && !client->dead && !client->closing) {
		int got = brood_scan_feed(&client->scan, data + done, len - done, &end);

		if (got < 0) {
			refuse_bytes(client, got);
			return len;
		}
		if (got == 0)
			break;
		reset_scan(client);
		sup_methods_handle(client, data + done, end);
		done += end;
	}
	return done;
}

static int keep(struct sup_client *client, const uint8_t *data, size_t len)
{
	if (client->len + len > client->room) {
		size_t room = client->room ? client->room : 4096;
		uint8_t *grown;

		while (room < client->len + len)
			room *= 2;
		grown = realloc(client->buf, room);
		if (!grown)
			return -1;
		client->buf = grown;
		client->room = room;
	}
	memcpy(client->buf + client->len, data, len);
	client->len += len;
	return 0;
}

static void take_bytes(struct sup_client *client, const uint8_t *data, size_t len)
{
	size_t done = 0;

	if (client->len == 0) {
		done = take_messages(client, data, len);
		if (client->dead || client->closing || done == len)
			return;
	}
	if (keep(client, data + done, len - done) < 0) {
		sup_client_drop(client, "no memory for its request");
		return;
	}
	if (done > 0 || client->len == len - done)
		return; /* what was kept has been scanned already */
	done = take_messages(client, client->buf, client->len);
	if (client->dead || client->closing)
		return;
	client->len -= done;
	memmove(client->buf, client->buf + done, client->len);
	if (client->len == 0) {
		free(client->buf);
		client->buf = NULL;
		client->room = 0;
	}
}

static void on_readable(evutil_socket_t fd, short what, void *context)
{
	struct sup_client *client = context;
	/* Not the server's scratch: handling a message can end calls, whose draining uses that. */
	static uint8_t bytes[SUP_SCRATCH];
	ssize_t n = read(fd, bytes, sizeof(bytes));

	(void)what;
	if (n > 0) {
		take_bytes(client, bytes, (size_t)n);
	} else if (n == 0) {
		if (client->len > 0)
			sup_methods_malformed(client, "the connection ended inside a message");
		if (!client->dead)
			on_eof(client);
	} else if (errno != EAGAIN && errno != EINTR) {
		sup_client_drop(client, strerror(errno));
	}
}

/* --- making --- */

struct sup_lane *sup_client_lane(struct sup_client *client, struct sup_profile *profile)
{
	struct sup_client_lane *lane;

	TAILQ_FOREACH(lane, &client->lanes, link)
	{
		if (lane->profile == profile)
			return &lane->lane;
	}
	lane = calloc(1, sizeof(*lane));
	if (!lane)
		return NULL;
	lane->profile = profile;
	sup_lane_init(&lane->lane, &profile->queue, client);
	TAILQ_INSERT_TAIL(&client->lanes, lane, link);
	return &lane->lane;
}

void sup_client_drop_lanes(struct sup_client *client, const struct sup_profile *profile)
{
	struct sup_client_lane *lane, *next;

	for (lane = TAILQ_FIRST(&client->lanes); lane; lane = next) {
		next = TAILQ_NEXT(lane, link);
		if (lane->profile == profile) {
			TAILQ_REMOVE(&client->lanes, lane, link);
			free(lane);
		}
	}
}

struct sup_client *sup_client_new(struct sup_server *server, int in_fd, int out_fd)
{
	static uint64_t serial;
	struct sup_client *client = calloc(1, sizeof(*client));

	if (!client) {
		close(in_fd);
		if (out_fd != in_fd)
			close(out_fd);
		return NULL;
	}
	client->server = server;
	client->serial = ++serial;
	client->in_fd = in_fd;
	client->out_fd = out_fd;
	TAILQ_INIT(&client->calls);
	TAILQ_INIT(&client->lanes);
	client->backlog = evbuffer_new();
	client->ev_in = event_new(server->base, in_fd, EV_READ | EV_PERSIST, on_readable, client);
	client->ev_out = event_new(server->base, out_fd, EV_WRITE | EV_PERSIST, on_writable, client);
	client->ev_half_closed = evtimer_new(server->base, on_half_closed, client);
	client->ev_dead = evtimer_new(server->base, on_dead, client);
	if (!client->backlog || !client->ev_in || !client->ev_out || !client->ev_half_closed || !client->ev_dead ||
	    event_add(client->ev_in, NULL) < 0) {
		client_free(client);
		return NULL;
	}
	reset_scan(client);
	TAILQ_INSERT_TAIL(&server->clients, client, link);
	server->clients_count++;
	return client;
}
