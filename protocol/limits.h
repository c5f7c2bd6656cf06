/*
 * Every number that bounds what a peer can cause, in one place.
 *
 * A call's limits have a default, a floor and a ceiling. The configuration may set them per profile within
 * floor and ceiling; a call may only lower what its profile gives. PROTOCOL.md, part 6.
 */
#ifndef BROOD_PROTOCOL_LIMITS_H
#define BROOD_PROTOCOL_LIMITS_H

#include <stddef.h>
#include <stdint.h>

#define BROOD_KIB ((uint64_t)1024)
#define BROOD_MIB (1024 * BROOD_KIB)
#define BROOD_GIB (1024 * BROOD_MIB)

/* The five limits of a call, in the order of BROOD_LIMITS. */
enum brood_limit_id {
	BROOD_LIMIT_WALL,
	BROOD_LIMIT_CPU,
	BROOD_LIMIT_MEMORY,
	BROOD_LIMIT_OUTPUT,
	BROOD_LIMIT_VALUE,
	BROOD_LIMIT_COUNT,
};

enum brood_unit { BROOD_UNIT_MS, BROOD_UNIT_BYTES };

struct brood_limit_spec {
	const char *field; /* name in the protocol, with its unit: "wall_ms" */
	const char *key;   /* name in the configuration and on the command line: "wall" */
	enum brood_unit unit;
	uint64_t floor, preset, ceiling;
};

/* Values of one call or one profile, indexed by enum brood_limit_id. */
struct brood_limits {
	uint64_t v[BROOD_LIMIT_COUNT];
};

extern const struct brood_limit_spec BROOD_LIMITS[BROOD_LIMIT_COUNT];

/* The defaults of BROOD_LIMITS. */
void brood_limits_preset(struct brood_limits *out);

/*
 * Parses "1500ms", "5s", "2m", "1h" (a bare number is seconds) into milliseconds, and "512m", "1g", "64k", "100"
 * (powers of 1024; "kb", "kib", "KiB" and the like are accepted) into bytes. Fractions ("0.5s") are allowed.
 * Returns 0, or BROOD_E_SYNTAX or BROOD_E_RANGE; *out is untouched on failure.
 */
int brood_parse_duration_ms(const char *text, uint64_t *out);
int brood_parse_size(const char *text, uint64_t *out);

/* Containers inside a value. The scanner's stack has room for the envelope of a message as well. */
#define BROOD_NESTING_MAX 64
#define BROOD_ENVELOPE_DEPTH 4 /* [0, id, "run", [{inputs: {name: value}}]]: the containers around an input */
#define BROOD_SCAN_DEPTH (BROOD_NESTING_MAX + BROOD_ENVELOPE_DEPTH)

/* On top of the memory limit, for address space only: thread stacks, allocator arenas and libraries reserve far more than they use. */
#define BROOD_AS_RESERVE (128 * BROOD_MIB)

/* One message from a client: default and ceiling of the setting `request`. */
#define BROOD_REQUEST_PRESET (16 * BROOD_MIB)
#define BROOD_REQUEST_CEILING (256 * BROOD_MIB)

#define BROOD_OPEN_CALLS_PRESET 256 /* requests of one client without an answer yet */
#define BROOD_OPEN_CALLS_CEILING 65536
#define BROOD_QUEUE_PRESET 1024 /* calls of all clients that wait for a worker */
#define BROOD_QUEUE_CEILING 1048576
#define BROOD_CLIENTS_PRESET 4096
#define BROOD_CLIENTS_CEILING 65536

#define BROOD_METHOD_MAX 64	  /* bytes of a method's name */
#define BROOD_NAME_MAX 1024	  /* bytes of `name`, of a profile's name, of an input's name */
#define BROOD_CLIENT_NAME_MAX 128 /* bytes of hello's `client` */

/* Once a client lets this much pile up, none of its queued calls start and no more of its requests are read. */
#define BROOD_BACKLOG_HIGH (1 * BROOD_MIB)

#define BROOD_WORKERS_CEILING 4096 /* alive at once in one profile */

#define BROOD_CONTROL_MAX (64 * BROOD_KIB) /* a packet between supervisor and zygote */
#define BROOD_CONTROL_FDS 4

/* A worker's RESULT: value and repr at their limit, an error, and the field names. */
#define BROOD_ERROR_TEXT_MAX (64 * BROOD_KIB) /* bytes of error.message and, apart, of error.traceback */
#define BROOD_RESULT_SLACK (160 * BROOD_KIB)
#define BROOD_RESULT_MAX(value_bytes) (2 * (value_bytes) + BROOD_RESULT_SLACK)
#define BROOD_TRUNCATED_MAX 16 /* entries */

/* Output is read and thrown away beyond its limit, but a flood ends the call: status `output`. */
#define BROOD_OUTPUT_FLOOD_FACTOR 16
#define BROOD_OUTPUT_FLOOD_FLOOR (1 * BROOD_MIB)

#define BROOD_OPAQUE_REPR_MAX 4096 /* characters of the repr of an opaque value inside a value */

/* Time that a worker gets from FORK to PARKED, and a zygote from START to READY. */
#define BROOD_PARK_TIMEOUT_MS 10000
#define BROOD_START_TIMEOUT_MS 60000
/* Between a worker's end of file on the answer pipe and the zygote's EXITED. */
#define BROOD_VANISH_GRACE_MS 1000

#endif
