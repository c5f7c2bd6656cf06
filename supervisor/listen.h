/* The listening socket: made with its mode, replaced when stale, guarded by the peers' uids. */
#ifndef BROOD_SUPERVISOR_LISTEN_H
#define BROOD_SUPERVISOR_LISTEN_H

#include "supervisor/server.h"

#define SUP_LISTEN_ERROR_MAX 512

/* Listens on config->socket. 0, or -1 with one line in `error`. */
int sup_listen_start(struct sup_server *server, char error[SUP_LISTEN_ERROR_MAX]);

/* Stops accepting and removes the socket file, if it still is ours. */
void sup_listen_stop(struct sup_server *server);

#endif
