/*
 * What the server says: responses, and the record of a call. Pure: packs into a buffer that the caller owns.
 */
#ifndef BROOD_SUPERVISOR_RECORD_H
#define BROOD_SUPERVISOR_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <msgpack.h>

#include "protocol/messages.h"
#include "protocol/status.h"
#include "supervisor/output.h"

/* RPC error codes. PROTOCOL.md, part 1. */
enum sup_rpc_code {
	SUP_RPC_MALFORMED,
	SUP_RPC_UNKNOWN_METHOD,
	SUP_RPC_BAD_PARAMS,
	SUP_RPC_UNKNOWN_PROFILE,
	SUP_RPC_DUPLICATE_ID,
	SUP_RPC_UNSUPPORTED_VERSION,
	SUP_RPC_UNAVAILABLE,
	SUP_RPC_FORBIDDEN,
};

struct sup_usage {
	uint64_t wall_us, cpu_us, peak_memory_bytes, queue_us;
};

struct sup_record {
	enum brood_status status;
	const char *message;
	const struct brood_result *result; /* the worker's part; NULL when there is none */
	const struct sup_output *out, *err;
	bool stream; /* output was sent already */
	bool has_exit_code;
	int64_t exit_code; /* where there is no result */
	int signal;	   /* 0: none */
	struct sup_usage usage;
	uint32_t layers;
	const char *profile;
	uint64_t worker; /* 0: none was involved */
};

/* The head of a response with a result; the result is to follow. */
void sup_pack_response(msgpack_packer *pk, uint32_t id);
/* A whole response with an error. has_id false: nil. */
void sup_pack_error(msgpack_packer *pk, bool has_id, uint32_t id, enum sup_rpc_code code, const char *message);
/* A whole response to `run`. */
void sup_pack_record(msgpack_packer *pk, uint32_t id, const struct sup_record *record);
/* A whole `output` notification. */
void sup_pack_output(msgpack_packer *pk, uint32_t id, bool is_stderr, const uint8_t *data, size_t len);

/* A str from a NUL-terminated text; bytes that are not UTF-8 become '?'. */
void sup_pack_text(msgpack_packer *pk, const char *text);
/* The names of the layers, as an array. */
void sup_pack_layers(msgpack_packer *pk, uint32_t layers);

#endif
