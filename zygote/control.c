/*
 * Runs in:   brood-zygote.
 * Trusts:    the supervisor to be who it is; its packets are judged all the same.
 * Blocks on: the control socket. A zygote has nothing to do that the supervisor does not wait for.
 *
 * Packets are written into one buffer that grows for the first, READY, and is used again, so that nothing is allocated while serving.
 */
#include "zygote/control.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protocol/fds.h"
#include "zygote/proc.h"
#include "zygote/zygote.h"

static msgpack_sbuffer out;

/* Takes the descriptors out of the ancillary data. */
static void take_fds(struct msghdr *msg, struct zyg_packet *packet)
{
	packet->fd_count = 0;
	packet->fds_cut = msg->msg_flags & MSG_CTRUNC;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t count;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (packet->fd_count < BROOD_CONTROL_FDS) {
				packet->fds[packet->fd_count++] = fd;
				continue;
			}
			close(fd);
			packet->fds_cut = true;
		}
	}
}

int zyg_control_read(struct zyg_packet *packet)
{
	union {
		struct cmsghdr align;
		/* Room for one more than is allowed, so that one too many is seen. */
		char bytes[CMSG_SPACE((BROOD_CONTROL_FDS + 1) * sizeof(int))];
	} control;
	struct iovec data = {.iov_base = packet->data, .iov_len = sizeof(packet->data)};
	struct msghdr msg = {.msg_iov = &data,
			     .msg_iovlen = 1,
			     .msg_control = control.bytes,
			     .msg_controllen = sizeof(control.bytes)};
	ssize_t len;

	do
		len = recvmsg(BROOD_ZYG_FD_CONTROL, &msg, MSG_CMSG_CLOEXEC);
	while (len < 0 && errno == EINTR);
	packet->fd_count = 0;
	packet->len = 0;
	if (len < 0)
		return errno == ECONNRESET ? 0 : -errno;
	take_fds(&msg, packet);
	if (msg.msg_flags & MSG_TRUNC) {
		zyg_packet_close(packet);
		return -EMSGSIZE;
	}
	packet->len = (size_t)len;
	/* No message is empty, so an empty packet can only be the end of the stream. */
	if (len == 0)
		zyg_packet_close(packet);
	return len > 0;
}

void zyg_packet_close(struct zyg_packet *packet)
{
	for (size_t i = 0; i < packet->fd_count; i++)
		close(packet->fds[i]);
	packet->fd_count = 0;
}

/* Sends what the writer has put into `out`, with one descriptor or none (-1). */
static int send_packet(int written, int fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec data = {.iov_base = out.data, .iov_len = out.size};
	struct msghdr msg = {.msg_iov = &data, .msg_iovlen = 1};
	ssize_t sent;

	if (written < 0)
		return -ENOMEM;
	if (fd >= 0) {
		struct cmsghdr *c = &control.align;

		memset(&control, 0, sizeof(control));
		*c = (struct cmsghdr){
			.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(c), &fd, sizeof(int));
		msg.msg_control = control.bytes;
		msg.msg_controllen = sizeof(control.bytes);
	}
	do
		sent = sendmsg(BROOD_ZYG_FD_CONTROL, &msg, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

int zyg_control_failed(const struct brood_failed *failed)
{
	msgpack_sbuffer_clear(&out);
	return send_packet(brood_failed_write(&out, failed), -1);
}

int zyg_control_ready(const struct brood_ready *ready)
{
	msgpack_sbuffer_clear(&out);
	return send_packet(brood_ready_write(&out, ready), -1);
}

int zyg_control_forked(uint64_t worker, pid_t pid, int pidfd)
{
	msgpack_sbuffer_clear(&out);
	return send_packet(brood_forked_write(&out, worker, pid), pidfd);
}

int zyg_control_fork_failed(uint64_t worker, int error)
{
	msgpack_sbuffer_clear(&out);
	return send_packet(brood_fork_failed_write(&out, worker, error), -1);
}

int zyg_control_exited(const struct brood_exited *exited)
{
	msgpack_sbuffer_clear(&out);
	return send_packet(brood_exited_write(&out, exited), -1);
}

/* --- the first step --- */

#define NAMESPACE_LAYERS                                                               \
	(BROOD_LAYER_BIT(BROOD_LAYER_USER_NS) | BROOD_LAYER_BIT(BROOD_LAYER_PID_NS) |  \
	 BROOD_LAYER_BIT(BROOD_LAYER_NET_NS) | BROOD_LAYER_BIT(BROOD_LAYER_IPC_NS) |   \
	 BROOD_LAYER_BIT(BROOD_LAYER_UTS_NS) | BROOD_LAYER_BIT(BROOD_LAYER_MOUNT_NS) | \
	 BROOD_LAYER_BIT(BROOD_LAYER_CGROUP_NS))

static int wait_for_start(struct zyg *z)
{
	struct pollfd control = {.fd = BROOD_ZYG_FD_CONTROL, .events = POLLIN};
	int ready;

	do
		ready = poll(&control, 1, BROOD_START_TIMEOUT_MS);
	while (ready < 0 && errno == EINTR);
	if (ready < 0)
		return zyg_fail(z, errno, "cannot wait on descriptor %d: %s; brood-zygote is started by broodd only",
				BROOD_ZYG_FD_CONTROL, strerror(errno));
	if (ready == 0)
		return zyg_fail(z, ETIMEDOUT, "no START came within %d ms", BROOD_START_TIMEOUT_MS);
	return 0;
}

int zyg_step_start(struct zyg *z)
{
	static struct zyg_packet packet;
	enum brood_control type;
	int got;

	z->memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	z->pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	z->proc = zyg_proc_open();
	if (z->proc < 0)
		return zyg_fail(z, -z->proc, "cannot open /proc/self: %s; Brood needs /proc to be mounted",
				strerror(-z->proc));
	if (wait_for_start(z) < 0)
		return -1;
	got = zyg_control_read(&packet);
	if (got <= 0)
		return zyg_fail(z, -got,
				"no START could be read from descriptor %d: %s; brood-zygote is started by broodd only",
				BROOD_ZYG_FD_CONTROL, got ? strerror(-got) : "it is closed");
	zyg_packet_close(&packet);
	got = brood_control_type(packet.data, packet.len, &type);
	if (got == 0 && !brood_control_allowed(BROOD_PEER_SUPERVISOR, BROOD_ZYGOTE_BORN, type))
		got = BROOD_E_STATE;
	if (got == 0)
		got = brood_start_parse(packet.data, packet.len, &z->start);
	if (got < 0)
		return zyg_fail(z, EPROTO, "the first packet is not a START: %s", brood_strerror(got));
	/* The namespaces are the supervisor's word; every other layer is read back here before it counts. */
	z->layers = z->start.layers_given & NAMESPACE_LAYERS;
	return 0;
}
