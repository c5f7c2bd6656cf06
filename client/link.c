/*
 * Runs in:   brood
 * Trusts:    nothing that the other side sends: it is scanned and bounded before anything is read from it
 * Blocks on: the other side, as long as its caller says, and never beyond a signal
 *
 * This is where bytes cross between the command and broodd.
 */
#include "client/link.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "client/message.h"
#include "client/signals.h"

#define READ_ROOM 65536

/* --- opening --- */

void cli_link_init(struct cli_link *link, int signals)
{
	memset(link, 0, sizeof(*link));
	link->fd = link->broodd.pidfd = -1;
	link->signals = signals;
	msgpack_sbuffer_init(&link->out);
	brood_scan_init(&link->scan, CLI_MESSAGE_MAX, BROOD_SCAN_DEPTH);
}

static int connect_socket(struct cli_link *link, const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	/* The options were checked for a path that fits. */
	memcpy(address.sun_path, path, strnlen(path, sizeof(address.sun_path) - 1));
	link->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (link->fd >= 0 && connect(link->fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
		return 0;
	if (errno == EINTR)
		cli_complain("cancelled");
	else
		cli_complain("cannot connect to %s: %s; is broodd running there?", path, strerror(errno));
	return -1;
}

int cli_link_open(struct cli_link *link, const struct cli_options *options)
{
	char error[CLI_BROODD_ERROR_MAX];

	if (options->socket)
		return connect_socket(link, options->socket);
	link->fd = cli_broodd_start(&link->broodd, options, link->out.size, error);
	link->is_private = link->fd >= 0;
	if (link->fd < 0)
		cli_complain("%s", error);
	return link->fd < 0 ? -1 : 0;
}

/* --- traffic --- */

static int make_room(struct cli_link *link)
{
	size_t room = link->in_room ? link->in_room * 2 : 2 * (size_t)READ_ROOM;
	uint8_t *in;

	if (link->in_start > 0) {
		memmove(link->in, link->in + link->in_start, link->in_len - link->in_start);
		link->in_len -= link->in_start;
		link->in_start = 0;
	}
	if (link->in_room - link->in_len >= READ_ROOM)
		return 0;
	/* The scan refuses a message beyond CLI_MESSAGE_MAX, so this stays below four times that. */
	in = realloc(link->in, room);
	if (!in)
		return -1;
	link->in = in;
	link->in_room = room;
	return 0;
}

static int receive(struct cli_link *link)
{
	ssize_t n;

	if (link->in_room - link->in_len < READ_ROOM && make_room(link) < 0)
		return -1;
	n = recv(link->fd, link->in + link->in_len, READ_ROOM, MSG_DONTWAIT);
	if (n > 0)
		link->in_len += (size_t)n;
	/* A reset is how a socket says that the other side closed it without having read all. */
	else if (n == 0 || errno == ECONNRESET)
		link->eof = true;
	else if (errno != EAGAIN && errno != EINTR)
		return -1;
	return 0;
}

/* A side that takes no more bytes may still have something to say, so that is no failure: what it says comes first. */
static void transmit(struct cli_link *link)
{
	ssize_t n =
		send(link->fd, link->out.data + link->sent, link->out.size - link->sent, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n > 0)
		link->sent += (size_t)n;
	else if (errno != EAGAIN && errno != EINTR)
		link->sent = link->out.size;
}

/* Whether a whole message lies in the buffer: CLI_EV_MESSAGE, CLI_EV_GARBAGE, or CLI_EV_TIMEOUT for "not yet". */
static enum cli_event look(struct cli_link *link, struct brood_slice *message)
{
	const uint8_t *start = link->in + link->in_start;
	size_t len = link->in_len - link->in_start, end;
	int result = len > 0 ? brood_scan_feed(&link->scan, start, len, &end) : 0;

	if (result == 0)
		return CLI_EV_TIMEOUT;
	if (result < 0)
		return CLI_EV_GARBAGE;
	link->message_len = end;
	*message = (struct brood_slice){start, end};
	return CLI_EV_MESSAGE;
}

static void pass_message(struct cli_link *link)
{
	if (link->message_len == 0)
		return;
	link->in_start += link->message_len;
	link->message_len = 0;
	brood_scan_init(&link->scan, CLI_MESSAGE_MAX, BROOD_SCAN_DEPTH);
}

int64_t cli_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* One wait. CLI_EV_MESSAGE stands for "something came or went, look again". */
static enum cli_event wait_once(struct cli_link *link, int most_ms)
{
	short out = link->sent < link->out.size ? POLLOUT : 0;
	struct pollfd fds[2] = {{.fd = link->fd, .events = (short)(POLLIN | out)},
				{.fd = link->signals, .events = POLLIN}};
	int n = poll(fds, 2, most_ms);

	if (n < 0 && errno != EINTR)
		return CLI_EV_FAILED;
	if (n < 0)
		return CLI_EV_MESSAGE;
	if (n == 0)
		return CLI_EV_TIMEOUT;
	if (fds[1].revents) {
		cli_signals_drain(link->signals);
		return CLI_EV_SIGNAL;
	}
	if (fds[0].revents & POLLOUT)
		transmit(link);
	if (fds[0].revents & ~POLLOUT && receive(link) < 0)
		return CLI_EV_FAILED;
	return CLI_EV_MESSAGE;
}

static int wait_ms(int64_t deadline_ms)
{
	int64_t left = deadline_ms - cli_now_ms();

	if (deadline_ms < 0)
		return -1;
	return left < 0 ? 0 : left < INT_MAX ? (int)left : INT_MAX;
}

enum cli_event cli_link_next(struct cli_link *link, int64_t deadline_ms, struct brood_slice *message)
{
	pass_message(link);
	for (;;) {
		enum cli_event event = look(link, message);

		if (event != CLI_EV_TIMEOUT)
			return event;
		if (link->eof)
			return link->in_len > link->in_start ? CLI_EV_CUT_SHORT : CLI_EV_CLOSED;
		event = wait_once(link, wait_ms(deadline_ms));
		if (event != CLI_EV_MESSAGE)
			return event;
	}
}

/* --- the end --- */

void cli_link_close(struct cli_link *link)
{
	if (link->fd >= 0)
		close(link->fd);
	link->fd = -1;
	cli_broodd_end(&link->broodd);
}

void cli_link_free(struct cli_link *link)
{
	if (!link)
		return;
	cli_link_close(link);
	msgpack_sbuffer_destroy(&link->out);
	free(link->in);
	link->in = NULL;
}
