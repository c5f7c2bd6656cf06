/*
 * Runs in:   broodd
 * Trusts:    nothing: a client's bytes, well formed by the scanner's word and otherwise arbitrary
 * Blocks on: nothing
 *
 * The fields of params are read by tables. A field that is not in the table is an error, so that a misspelt limit is never silently dropped;
 * a field given twice is an error too, so that what is judged here is what the worker will read.
 */
#include "supervisor/rpc.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "protocol/error.h"

static int fail(char *error, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

static int fail(char *error, int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error, SUP_RPC_ERROR_MAX, format, args);
	va_end(args);
	return code;
}

int sup_rpc_parse(const uint8_t *message, size_t len, struct sup_rpc *out, char error[SUP_RPC_ERROR_MAX])
{
	struct sup_rpc rpc = {0};
	struct brood_reader r;
	uint64_t type, id = 0;
	uint32_t count;

	brood_reader_init(&r, message, len);
	if (brood_read_array(&r, &count) < 0 || count < 1 || brood_read_u64(&r, &type) < 0)
		return fail(error, BROOD_E_MALFORMED,
			    "a message is an array that begins with 0 (request) or 2 (notification)");
	if (type == 0 ? count != 4 : type != 2 || count != 3)
		return fail(error, BROOD_E_MALFORMED, "a message is [0, id, method, params] or [2, method, params]");
	rpc.notification = type == 2;
	if (!rpc.notification && (brood_read_u64(&r, &id) < 0 || id > UINT32_MAX))
		return fail(error, BROOD_E_MALFORMED, "a request's id is an unsigned integer below 2^32");
	rpc.id = (uint32_t)id;
	if (brood_read_str(&r, &rpc.method) < 0 || rpc.method.len > BROOD_METHOD_MAX)
		return fail(error, BROOD_E_MALFORMED, "a method is a str of at most %d bytes", BROOD_METHOD_MAX);
	if (brood_peek(&r) != BROOD_T_ARRAY || brood_read_any(&r, &rpc.params) < 0)
		return fail(error, BROOD_E_MALFORMED, "params is an array");
	*out = rpc;
	return 0;
}

/* --- the fields of run --- */

enum run_field {
	RUN_CODE,
	RUN_NAME,
	RUN_INPUTS,
	RUN_PROFILE,
	RUN_LIMITS,
	RUN_STREAM,
	RUN_FIELDS,
};

static const char *const RUN_FIELD_NAMES[RUN_FIELDS] = {"code", "name", "inputs", "profile", "limits", "stream"};

/* The index of the key that comes next in `names`, marked in *seen; or an error. */
static int next_field(struct brood_reader *r, const char *const *names, unsigned count, unsigned *seen,
		      const char *where, char *error)
{
	struct brood_slice key;

	if (brood_read_str(r, &key) < 0)
		return fail(error, BROOD_E_TYPE, "%s: a key is not a str", where);
	for (unsigned i = 0; i < count; i++) {
		if (!brood_slice_is(key, names[i]))
			continue;
		if (*seen & (1u << i))
			return fail(error, BROOD_E_MALFORMED, "%s: '%s' is given twice", where, names[i]);
		*seen |= 1u << i;
		return (int)i;
	}
	return fail(error, BROOD_E_UNKNOWN, "%s: unknown field '%.*s'", where, (int)(key.len < 64 ? key.len : 64),
		    (const char *)key.data);
}

static int read_text(struct brood_reader *r, const char *what, size_t most, struct brood_slice *out, char *error)
{
	struct brood_slice text;

	if (brood_read_str(r, &text) < 0)
		return fail(error, BROOD_E_TYPE, "run: '%s' is not a str", what);
	if (text.len > most)
		return fail(error, BROOD_E_TOO_LARGE, "run: '%s' is longer than %zu bytes", what, most);
	*out = text;
	return 0;
}

static int read_inputs(struct brood_reader *r, char *error)
{
	struct brood_slice name;
	uint32_t count;

	if (brood_read_map(r, &count) < 0)
		return fail(error, BROOD_E_TYPE, "run: 'inputs' is not a map");
	for (; count > 0; count--) {
		int result = read_text(r, "inputs", BROOD_NAME_MAX, &name, error);

		if (result < 0)
			return fail(error, result, "run: a name in 'inputs' is not a str of at most %d bytes",
				    BROOD_NAME_MAX);
		if (brood_read_any(r, NULL) < 0)
			return fail(error, BROOD_E_MALFORMED, "run: 'inputs' is cut short");
	}
	return 0;
}

static int read_limits(struct brood_reader *r, struct sup_run *run, char *error)
{
	const char *names[BROOD_LIMIT_COUNT];
	unsigned seen = 0;
	uint32_t count;

	for (int i = 0; i < BROOD_LIMIT_COUNT; i++)
		names[i] = BROOD_LIMITS[i].field;
	if (brood_read_map(r, &count) < 0)
		return fail(error, BROOD_E_TYPE, "run: 'limits' is not a map");
	for (; count > 0; count--) {
		int i = next_field(r, names, BROOD_LIMIT_COUNT, &seen, "limits", error);

		if (i < 0)
			return i;
		if (brood_read_u64(r, &run->limits.v[i]) < 0)
			return fail(error, BROOD_E_TYPE, "limits: '%s' is not an unsigned integer", names[i]);
		run->limit_given[i] = true;
	}
	return 0;
}

static int read_code(struct brood_reader *r, char *error)
{
	struct brood_slice code;

	if (brood_read_str(r, &code) < 0 && brood_read_bin(r, &code) < 0)
		return fail(error, BROOD_E_TYPE, "run: 'code' is neither str nor bin");
	return 0;
}

static int read_run_field(struct brood_reader *r, enum run_field field, struct sup_run *run, char *error)
{
	struct brood_slice ignored;

	switch (field) {
	case RUN_CODE:
		return read_code(r, error);
	case RUN_NAME:
		return read_text(r, "name", BROOD_NAME_MAX, &ignored, error);
	case RUN_INPUTS:
		return read_inputs(r, error);
	case RUN_PROFILE:
		return read_text(r, "profile", BROOD_NAME_MAX, &run->profile, error);
	case RUN_LIMITS:
		return read_limits(r, run, error);
	case RUN_STREAM:
		if (brood_read_bool(r, &run->stream) < 0)
			return fail(error, BROOD_E_TYPE, "run: 'stream' is not a bool");
		return 0;
	case RUN_FIELDS:
		break;
	}
	return fail(error, BROOD_E_UNKNOWN, "run: unknown field");
}

/* The only element of params, which must be of this type. */
static int only_param(struct brood_slice params, enum brood_type type, const char *what, struct brood_reader *r,
		      char *error)
{
	uint32_t count;

	brood_reader_init(r, params.data, params.len);
	if (brood_read_array(r, &count) < 0 || count != 1 || brood_peek(r) != type)
		return fail(error, BROOD_E_TYPE, "%s", what);
	return 0;
}

int sup_run_parse(struct brood_slice params, struct sup_run *out, char error[SUP_RPC_ERROR_MAX])
{
	struct sup_run run = {0};
	struct brood_reader r;
	unsigned seen = 0;
	uint32_t count;
	int result;

	result = only_param(params, BROOD_T_MAP, "run: params is an array of one map", &r, error);
	if (result < 0)
		return result;
	run.map.data = r.pos;
	run.map.len = (size_t)(r.end - r.pos);
	brood_read_map(&r, &count);
	for (; count > 0; count--) {
		result = next_field(&r, RUN_FIELD_NAMES, RUN_FIELDS, &seen, "run", error);
		if (result >= 0)
			result = read_run_field(&r, (enum run_field)result, &run, error);
		if (result < 0)
			return result;
	}
	if (!(seen & (1u << RUN_CODE)))
		return fail(error, BROOD_E_MISSING, "run: 'code' is missing");
	*out = run;
	return 0;
}

int sup_run_limits(const struct sup_run *run, const char *profile, struct brood_limits *limits,
		   char error[SUP_RPC_ERROR_MAX])
{
	for (int i = 0; i < BROOD_LIMIT_COUNT; i++) {
		const struct brood_limit_spec *spec = &BROOD_LIMITS[i];
		unsigned long long asked = run->limits.v[i], most = limits->v[i];

		if (!run->limit_given[i])
			continue;
		if (asked > most)
			return fail(error, BROOD_E_RANGE,
				    "limits: %s = %llu is above the %llu of profile '%s'; a call may only lower it",
				    spec->field, asked, most, profile);
		if (asked < spec->floor)
			return fail(error, BROOD_E_RANGE, "limits: %s = %llu is below the least, %llu", spec->field,
				    asked, (unsigned long long)spec->floor);
	}
	for (int i = 0; i < BROOD_LIMIT_COUNT; i++) {
		if (run->limit_given[i])
			limits->v[i] = run->limits.v[i];
	}
	return 0;
}

int sup_hello_parse(struct brood_slice params, uint64_t *version, char error[SUP_RPC_ERROR_MAX])
{
	static const char *const NAMES[] = {"version", "client"};
	uint64_t wanted = 1;
	struct brood_reader r;
	struct brood_slice client;
	unsigned seen = 0;
	uint32_t count;
	int result;

	result = only_param(params, BROOD_T_MAP, "hello: params is an array of one map", &r, error);
	if (result < 0)
		return result;
	brood_read_map(&r, &count);
	for (; count > 0; count--) {
		result = next_field(&r, NAMES, 2, &seen, "hello", error);
		if (result < 0)
			return result;
		if (result == 0 && brood_read_u64(&r, &wanted) < 0)
			return fail(error, BROOD_E_TYPE, "hello: 'version' is not an unsigned integer");
		if (result == 1 && (brood_read_str(&r, &client) < 0 || client.len > BROOD_CLIENT_NAME_MAX))
			return fail(error, BROOD_E_TYPE, "hello: 'client' is not a str of at most %d bytes",
				    BROOD_CLIENT_NAME_MAX);
	}
	*version = wanted;
	return 0;
}

int sup_cancel_parse(struct brood_slice params, uint32_t *id, char error[SUP_RPC_ERROR_MAX])
{
	static const char WHAT[] = "cancel: params is an array of one request id";
	struct brood_reader r;
	uint64_t wanted;
	int result = only_param(params, BROOD_T_UINT, WHAT, &r, error);

	if (result < 0)
		return result;
	if (brood_read_u64(&r, &wanted) < 0 || wanted > UINT32_MAX)
		return fail(error, BROOD_E_RANGE, "%s", WHAT);
	*id = (uint32_t)wanted;
	return 0;
}

int sup_status_parse(struct brood_slice params, char error[SUP_RPC_ERROR_MAX])
{
	struct brood_reader r;
	uint32_t count;

	brood_reader_init(&r, params.data, params.len);
	if (brood_read_array(&r, &count) < 0 || count != 0)
		return fail(error, BROOD_E_TYPE, "status: params is an empty array");
	return 0;
}
