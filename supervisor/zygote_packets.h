/* What passes over a zygote's control channel, both ways. zygote.c's only. */
#ifndef BROOD_SUPERVISOR_ZYGOTE_PACKETS_H
#define BROOD_SUPERVISOR_ZYGOTE_PACKETS_H

#include "supervisor/zygote.h"

/* Between the end of a zygote's channel and the end of its process. */
#define SUP_ZYGOTE_END_US 1000000

/* The event handler of the channel: takes packets while there are any. */
void sup_zygote_on_control(int fd, short what, void *context);

/* Sends one packet with its descriptors. 0, or -1 with errno (EAGAIN: the channel is full). */
int sup_zygote_send(struct sup_zygote *zygote, const msgpack_sbuffer *packet, const int *fds, size_t fds_count);

#endif
