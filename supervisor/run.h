/* The supervisor's main loop. */
#ifndef BROOD_SUPERVISOR_RUN_H
#define BROOD_SUPERVISOR_RUN_H

#include "supervisor/listen.h"
#include "supervisor/server.h"

/*
 * Serves until it is told to stop; all that was started is gone when it returns. The caller sets config, config_path, overrides, stdio,
 * zygote_path and cores, and owns them. `any_file`: standard input or output may be a regular file. 0, or -1 with a line in `error`.
 */
int sup_server_run(struct sup_server *server, bool any_file, char error[SUP_LISTEN_ERROR_MAX]);

#endif
