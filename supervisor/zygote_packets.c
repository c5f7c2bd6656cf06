/*
 * Runs in:   broodd
 * Trusts:    a zygote's packets only as far as they are judged here: malformed or out of turn, they replace it
 * Blocks on: nothing
 */
#include "supervisor/zygote_packets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "supervisor/log.h"
#include "supervisor/worker.h"

#define PACKETS_AT_ONCE 64 /* of one zygote, before others get their turn */

static struct sup_worker *find_worker(struct sup_zygote *zygote, uint64_t id)
{
	struct sup_worker *worker;

	TAILQ_FOREACH(worker, &zygote->workers, link)
	{
		if (worker->id == id)
			return worker;
	}
	return NULL;
}

static int on_ready(struct sup_zygote *zygote, const uint8_t *packet, size_t len)
{
	struct sup_profile *profile = zygote->profile;
	uint32_t missing;
	int error = brood_ready_parse(packet, len, &zygote->ready);

	if (error < 0)
		return error;
	missing = profile->config->require & ~zygote->ready.layers;
	if (missing) {
		const char *name = brood_layer_name((enum brood_layer)__builtin_ctz(missing));

		sup_zygote_fail(
			zygote,
			"profile '%s' requires the layer '%s', which this system does not grant; allow it here, or "
			"take it out of `require`",
			profile->name, name);
		return 0;
	}
	zygote->state = BROOD_ZYGOTE_READY;
	zygote->was_ready = true;
	sup_log(SUP_LOG_INFO, "zygote %s/%u is ready after %llu ms: Python %s", profile->name, zygote->serial,
		(unsigned long long)zygote->ready.start_us / 1000, zygote->ready.python);
	sup_profile_on_ready(profile, zygote);
	return 0;
}

static int on_failed(struct sup_zygote *zygote, const uint8_t *packet, size_t len)
{
	struct brood_failed *failed = malloc(sizeof(*failed));
	int error = failed ? brood_failed_parse(packet, len, failed) : BROOD_E_MEMORY;

	if (error == 0)
		sup_zygote_fail(zygote, "profile '%s' cannot start (%s): %.900s", zygote->profile->name, failed->step,
				failed->message);
	free(failed);
	return error;
}

static int on_forked(struct sup_zygote *zygote, const uint8_t *packet, size_t len, int *pidfd)
{
	struct sup_worker *worker;
	uint64_t id;
	int32_t pid;
	int error = brood_forked_parse(packet, len, &id, &pid);

	if (error < 0)
		return error;
	worker = find_worker(zygote, id);
	if (!worker || worker->forked || *pidfd < 0)
		return BROOD_E_STATE;
	sup_worker_on_forked(worker, *pidfd);
	*pidfd = -1;
	return 0;
}

static int on_fork_failed(struct sup_zygote *zygote, const uint8_t *packet, size_t len)
{
	struct sup_worker *worker;
	uint64_t id;
	int failure, error = brood_fork_failed_parse(packet, len, &id, &failure);

	if (error < 0)
		return error;
	worker = find_worker(zygote, id);
	if (!worker || worker->forked)
		return BROOD_E_STATE;
	sup_log(SUP_LOG_WARNING, "zygote %s/%u cannot fork: %s", zygote->profile->name, zygote->serial,
		strerror(failure));
	sup_worker_on_exited(worker, NULL);
	return 0;
}

static int on_exited(struct sup_zygote *zygote, const uint8_t *packet, size_t len)
{
	struct brood_exited exited;
	struct sup_worker *worker;
	int error = brood_exited_parse(packet, len, &exited);

	if (error < 0)
		return error;
	worker = find_worker(zygote, exited.worker);
	if (!worker || !worker->forked)
		return BROOD_E_STATE;
	sup_worker_on_exited(worker, &exited);
	return 0;
}

static int handle(struct sup_zygote *zygote, const uint8_t *packet, size_t len, int *fd)
{
	enum brood_control type;
	int error = brood_control_type(packet, len, &type);

	if (error < 0)
		return error;
	if (!brood_control_allowed(BROOD_PEER_ZYGOTE, zygote->state, type) || (*fd >= 0 && type != BROOD_C_FORKED))
		return BROOD_E_STATE;
	switch (type) {
	case BROOD_C_READY:
		return on_ready(zygote, packet, len);
	case BROOD_C_FAILED:
		return on_failed(zygote, packet, len);
	case BROOD_C_FORKED:
		return on_forked(zygote, packet, len, fd);
	case BROOD_C_FORK_FAILED:
		return on_fork_failed(zygote, packet, len);
	case BROOD_C_EXITED:
		return on_exited(zygote, packet, len);
	case BROOD_C_START:
	case BROOD_C_FORK:
		break;
	}
	return BROOD_E_STATE;
}

/* One packet with at most one descriptor. 1: got one; 0: nothing now; -1: the channel is at its end. */
static int receive(struct sup_zygote *zygote, uint8_t *packet, size_t *len, int *fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int) * BROOD_CONTROL_FDS)];
		struct cmsghdr align;
	} control;
	struct iovec part = {packet, BROOD_CONTROL_MAX};
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	struct cmsghdr *header;
	ssize_t n = recvmsg(zygote->control_fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);

	*fd = -1;
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	for (header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
		size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < count; i++) {
			int got;

			memcpy(&got, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
			if (*fd < 0)
				*fd = got;
			else
				close(got);
		}
	}
	*len = (size_t)n;
	return n == 0 ? -1 : 1;
}

void sup_zygote_on_control(evutil_socket_t ignored, short what, void *context)
{
	/* Not the server's scratch: packets can end calls, whose draining uses that. */
	static uint8_t packet[BROOD_CONTROL_MAX];
	struct sup_zygote *zygote = context;

	(void)ignored;
	(void)what;
	for (int i = 0; i < PACKETS_AT_ONCE && zygote->state != BROOD_ZYGOTE_GONE; i++) {
		size_t len = 0;
		int fd, error, got = receive(zygote, packet, &len, &fd);

		if (got == 0)
			return;
		if (got < 0) {
			/* The process's end tells more (exit status, signal); it is waited for, but not for long. */
			event_del(zygote->ev_control);
			zygote->channel_closed = true;
			sup_timer_set(zygote->ev_watch, SUP_ZYGOTE_END_US);
			return;
		}
		error = handle(zygote, packet, len, &fd);
		if (fd >= 0)
			close(fd);
		if (error < 0)
			sup_zygote_fail(zygote, "the zygote of profile '%s' broke the protocol: %s",
					zygote->profile->name, brood_strerror(error));
	}
}

int sup_zygote_send(struct sup_zygote *zygote, const msgpack_sbuffer *packet, const int *fds, size_t fds_count)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int) * BROOD_CONTROL_FDS)];
		struct cmsghdr align;
	} control;
	struct iovec part = {packet->data, packet->size};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	struct cmsghdr *header;

	memset(&control, 0, sizeof(control));
	if (fds_count > 0) {
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(sizeof(int) * fds_count);
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(int) * fds_count);
		memcpy(CMSG_DATA(header), fds, sizeof(int) * fds_count);
	}
	return sendmsg(zygote->control_fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -1 : 0;
}
