/* How a call ended, the words for it, and what the `brood` command exits with. PROTOCOL.md, part 1. */
#ifndef BROOD_PROTOCOL_STATUS_H
#define BROOD_PROTOCOL_STATUS_H

#include <stddef.h>

enum brood_status {
	BROOD_OK,
	BROOD_ERROR,
	BROOD_TIMEOUT,
	BROOD_CPU,
	BROOD_MEMORY,
	BROOD_OUTPUT,
	BROOD_DENIED,
	BROOD_CRASHED,
	BROOD_CANCELLED,
	BROOD_BUSY,
	BROOD_LOST,
	BROOD_STATUS_COUNT,
};

/* "ok", "error", … Static. */
const char *brood_status_name(enum brood_status status);

/* The status of this name (not NUL-terminated), or BROOD_E_UNKNOWN. */
int brood_status_by_name(const char *name, size_t len);

/* Exit status of `brood run`: exit_code is the record's, 0 when it has none. */
int brood_status_exit(enum brood_status status, long exit_code);

/* Exit statuses of the command that are no call's ending. */
#define BROOD_EXIT_USAGE 2
#define BROOD_EXIT_FAILED 125

#endif
