/*
 * The control socket to the supervisor: whole packets in, whole packets out. The one place where bytes cross.
 */
#ifndef BROOD_ZYGOTE_CONTROL_H
#define BROOD_ZYGOTE_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "protocol/messages.h"

struct zyg_packet {
	size_t len;
	size_t fd_count; /* descriptors that came with it; the receiver of the packet owns them */
	bool fds_cut;	 /* more came, or there was no room for them; those are closed already */
	int fds[BROOD_CONTROL_FDS];
	uint8_t data[BROOD_CONTROL_MAX];
};

/* Waits for a packet. 1, 0 when the supervisor has closed the socket, or a negative errno (EMSGSIZE: longer than allowed). */
int zyg_control_read(struct zyg_packet *packet);

/* Closes the descriptors that came with a packet. */
void zyg_packet_close(struct zyg_packet *packet);

/* Send one packet each. 0 or a negative errno; EPIPE and ECONNRESET mean that the supervisor is gone. */
int zyg_control_failed(const struct brood_failed *failed);
int zyg_control_ready(const struct brood_ready *ready);
int zyg_control_forked(uint64_t worker, pid_t pid, int pidfd);
int zyg_control_fork_failed(uint64_t worker, int error);
int zyg_control_exited(const struct brood_exited *exited);

#endif
