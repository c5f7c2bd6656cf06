/*
 * The messages between supervisor, zygote and worker, and who may send which when. PROTOCOL.md, parts 4 and 5.
 *
 * Writers append to a msgpack_sbuffer that the caller owns (msgpack-c); they return 0, BROOD_E_MEMORY or BROOD_E_UTF8 (a
 * text of the caller's is not UTF-8), and on failure append nothing. Parsers take
 * one whole packet or frame payload, judge every byte of it (scan and types, sizes, ranges), and leave *out untouched on failure.
 */
#ifndef BROOD_PROTOCOL_MESSAGES_H
#define BROOD_PROTOCOL_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <msgpack.h>

#include "protocol/error.h"
#include "protocol/layers.h"
#include "protocol/limits.h"
#include "protocol/reader.h"

/* --- supervisor and zygote --- */

enum brood_control {
	BROOD_C_START = 1,
	BROOD_C_READY,
	BROOD_C_FAILED,
	BROOD_C_FORK,
	BROOD_C_FORKED,
	BROOD_C_FORK_FAILED,
	BROOD_C_EXITED,
};

enum brood_peer { BROOD_PEER_SUPERVISOR, BROOD_PEER_ZYGOTE };

/* Of the zygote, as both sides see it. */
enum brood_zygote_state {
	BROOD_ZYGOTE_BORN,     /* executed, no START yet */
	BROOD_ZYGOTE_STARTING, /* START sent */
	BROOD_ZYGOTE_READY,    /* READY sent */
	BROOD_ZYGOTE_GONE,     /* FAILED sent, or the channel closed */
};

/* The permission table: may `sender` send `type` in `state`? */
bool brood_control_allowed(enum brood_peer sender, enum brood_zygote_state state, enum brood_control type);

/* The type of a packet (judged as a whole first, so that the parsers below may follow), or an error. */
int brood_control_type(const uint8_t *packet, size_t len, enum brood_control *out);

#define BROOD_PRELOAD_MAX 256 /* modules of a profile */
#define BROOD_PATHS_MAX 64    /* directories of a profile's module path */
#define BROOD_ENV_MAX 64      /* environment variables of a profile */
#define BROOD_TEXT_MAX 4096   /* bytes of a path, a module's name, a variable, a FAILED message */

struct brood_env {
	char *name, *value;
};

/* START: what a zygote needs to know. Strings are never NULL; an empty one means "not set". */
struct brood_start {
	char *profile;
	char *python;	/* interpreter or virtual environment; empty: the one that was built in */
	char **preload; /* modules to import before the lock, in this order */
	size_t preload_count;
	char **paths; /* directories added to sys.path, shown read-only inside the root */
	size_t paths_count;
	struct brood_env *env; /* the whole environment of the code */
	size_t env_count;
	bool site_packages;	    /* put the interpreter's site-packages (Debian: dist-packages) on sys.path */
	bool filter;		    /* load the seccomp filters; only sanitizer builds and tests say no */
	uint32_t layers_given;	    /* namespaces that the supervisor already put the zygote into (layer bits) */
	uint32_t uid, gid;	    /* outside ids to change to when started as root; 0: keep */
	uint32_t workers_max;	    /* most workers alive at once */
	struct brood_limits limits; /* of the profile */
};

/* Also BROOD_E_TOO_LARGE: more than BROOD_CONTROL_MAX. */
int brood_start_write(msgpack_sbuffer *to, const struct brood_start *start);
int brood_start_parse(const uint8_t *packet, size_t len, struct brood_start *out);
void brood_start_free(struct brood_start *start); /* what parse allocated; NULL and zeroed structs are fine */

struct brood_ready {
	uint32_t layers;	  /* layer bits that are on, those of layers_given included */
	char python[128];	  /* "3.11.2 (/usr/bin/python3.11)" */
	uint64_t base_data_bytes; /* private writable memory (what RLIMIT_DATA counts) of the zygote when READY */
	uint64_t base_as_bytes;	  /* address space (what RLIMIT_AS counts) likewise */
	uint64_t start_us;	  /* from execution to READY */
};

int brood_ready_write(msgpack_sbuffer *to, const struct brood_ready *ready);
int brood_ready_parse(const uint8_t *packet, size_t len, struct brood_ready *out);

struct brood_failed {
	char step[64];			  /* what was tried: "import numpy", "mount root" */
	int error;			  /* errno, or 0 */
	char message[BROOD_TEXT_MAX + 1]; /* one line for people: what failed, why, what to do */
};

int brood_failed_write(msgpack_sbuffer *to, const struct brood_failed *failed);
int brood_failed_parse(const uint8_t *packet, size_t len, struct brood_failed *out);

/* `warm`: the worker is to warm up before it parks. Not while calls run or wait: it would take its time from them. */
int brood_fork_write(msgpack_sbuffer *to, uint64_t worker, bool warm);
int brood_fork_parse(const uint8_t *packet, size_t len, uint64_t *worker, bool *warm);

/* `pid` is the zygote's own view of it; the supervisor goes by the pidfd. */
int brood_forked_write(msgpack_sbuffer *to, uint64_t worker, int32_t pid);
int brood_forked_parse(const uint8_t *packet, size_t len, uint64_t *worker, int32_t *pid);

int brood_fork_failed_write(msgpack_sbuffer *to, uint64_t worker, int error);
int brood_fork_failed_parse(const uint8_t *packet, size_t len, uint64_t *worker, int *error);

struct brood_exited {
	uint64_t worker;
	bool signalled; /* code is a signal's number, else an exit status 0..255 */
	int code;
	uint64_t cpu_us; /* user and system, over the worker's whole life */
	uint64_t max_rss_bytes;
};

int brood_exited_write(msgpack_sbuffer *to, const struct brood_exited *exited);
int brood_exited_parse(const uint8_t *packet, size_t len, struct brood_exited *out);

/* --- supervisor and worker: payloads of frames --- */

enum brood_worker_frame {
	BROOD_W_PARKED = 1,
	BROOD_W_RUN,
	BROOD_W_RESULT,
};

/* Of a worker, as both sides see it. */
enum brood_worker_state {
	BROOD_WORKER_WARMING, /* forked; PARKED has not come */
	BROOD_WORKER_PARKED,
	BROOD_WORKER_RUNNING, /* RUN sent */
	BROOD_WORKER_DONE,    /* RESULT came; nothing may follow */
};

bool brood_worker_frame_allowed(bool from_worker, enum brood_worker_state state, enum brood_worker_frame type);
int brood_worker_frame_type(const uint8_t *payload, size_t len, enum brood_worker_frame *out);

int brood_parked_write(msgpack_sbuffer *to);

/*
 * RUN in two pieces, so that params (a slice of the client's own bytes) are not copied: this writes all that stands before
 * them. The frame's length is the sbuffer's size plus params.len.
 */
int brood_run_write_head(msgpack_sbuffer *to, const struct brood_limits *limits);
int brood_run_parse(const uint8_t *payload, size_t len, struct brood_limits *limits, struct brood_slice *params);

enum brood_outcome { BROOD_OUT_OK, BROOD_OUT_ERROR, BROOD_OUT_MEMORY, BROOD_OUT_DENIED };

/*
 * RESULT, as the supervisor takes it: hostile. Slices are whole MessagePack values inside the payload (with their heads), ready to be
 * copied into the record; `value` nests at most BROOD_NESTING_MAX + 1 deep, the one being for the mark of a cut (ext 13, which is an array)
 * in its innermost container. An absent field is a nil slice; an absent `truncated` has the length 0.
 * `limits` bounds value and repr (value_bytes); the error's texts are bounded by BROOD_ERROR_TEXT_MAX.
 */
struct brood_result {
	enum brood_outcome outcome;
	struct brood_slice value;
	struct brood_slice repr;
	struct brood_slice error;     /* nil, or exactly {type, message, traceback, line} in that order */
	struct brood_slice truncated; /* an array of maps that were judged: what, kept_bytes, cut_bytes, reason */
	bool has_exit_code;
	int64_t exit_code;
};

int brood_result_parse(const uint8_t *payload, size_t len, const struct brood_limits *limits, struct brood_result *out);

#endif
