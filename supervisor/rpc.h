/*
 * What a client says: one MessagePack-RPC message, taken apart and judged. Pure: no I/O, no allocation, no state.
 *
 * The bytes come from brood_scan_feed; nothing else about them is known. Slices point into the message.
 */
#ifndef BROOD_SUPERVISOR_RPC_H
#define BROOD_SUPERVISOR_RPC_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/limits.h"
#include "protocol/reader.h"

#define SUP_RPC_ERROR_MAX 256

struct sup_rpc {
	bool notification; /* then there is no id and no answer */
	uint32_t id;
	struct brood_slice method;
	struct brood_slice params; /* a whole array */
};

/* 0, or BROOD_E_MALFORMED with a phrase in `error` when it is no message of the protocol. */
int sup_rpc_parse(const uint8_t *message, size_t len, struct sup_rpc *out, char error[SUP_RPC_ERROR_MAX]);

struct sup_run {
	struct brood_slice map;	    /* params[0], whole, as it goes on to the worker */
	struct brood_slice profile; /* data is NULL when the field is absent */
	bool stream;
	bool limit_given[BROOD_LIMIT_COUNT];
	struct brood_limits limits; /* where given */
};

/* These return 0, or a negative error (`bad-params`) with the answer's message in `error`. */
int sup_run_parse(struct brood_slice params, struct sup_run *out, char error[SUP_RPC_ERROR_MAX]);
int sup_hello_parse(struct brood_slice params, uint64_t *version, char error[SUP_RPC_ERROR_MAX]);
int sup_cancel_parse(struct brood_slice params, uint32_t *id, char error[SUP_RPC_ERROR_MAX]);
int sup_status_parse(struct brood_slice params, char error[SUP_RPC_ERROR_MAX]);

/* Lowers `limits` (the profile's) to what the call asks for. A limit above the profile's is an error. */
int sup_run_limits(const struct sup_run *run, const char *profile, struct brood_limits *limits,
		   char error[SUP_RPC_ERROR_MAX]);

#endif
