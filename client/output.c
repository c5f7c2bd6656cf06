/*
 * Runs in:   brood
 * Trusts:    nothing about who reads its output
 * Blocks on: its output, but never longer than until a signal
 *
 * Our descriptors may be shared with other processes, so they are not made non-blocking. Instead each write is waited for, together with signals,
 * and is no longer than what a pipe that polls as writable takes without blocking.
 */
#include "client/output.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

/* 1 when it can be written to, 0 to ask again, -1 with output->error. */
static int wait_writable(struct cli_output *output)
{
	struct pollfd fds[2] = {{.fd = output->fd, .events = POLLOUT}, {.fd = output->signals, .events = POLLIN}};
	int n = poll(fds, 2, -1);

	if (n < 0 && errno == EINTR)
		return 0;
	if (n < 0)
		output->error = errno;
	else if (fds[1].revents)
		output->error = EINTR;
	return output->error ? -1 : 1;
}

int cli_output_write(struct cli_output *output, const void *data, size_t len)
{
	const char *at = data;

	while (len > 0 && !output->error) {
		ssize_t n = wait_writable(output);

		if (n <= 0)
			continue;
		n = write(output->fd, at, len < PIPE_BUF ? len : PIPE_BUF);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			output->error = errno;
		if (n <= 0)
			continue;
		at += n;
		len -= (size_t)n;
	}
	return output->error ? -1 : 0;
}

static ssize_t on_write(void *context, const char *data, size_t len)
{
	return cli_output_write(context, data, len) == 0 ? (ssize_t)len : 0;
}

FILE *cli_output_stream(struct cli_output *output)
{
	return fopencookie(output, "w", (cookie_io_functions_t){.write = on_write});
}
