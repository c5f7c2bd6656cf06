/* What `hello` and `status` tell. */
#ifndef BROOD_SUPERVISOR_STATUS_H
#define BROOD_SUPERVISOR_STATUS_H

#include <msgpack.h>

#include "supervisor/server.h"

void sup_pack_hello(msgpack_packer *pk, const struct sup_server *server);
void sup_pack_status(msgpack_packer *pk, const struct sup_server *server);

#endif
