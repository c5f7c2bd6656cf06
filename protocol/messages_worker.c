/*
 * Runs in:   broodd and workers
 * Trusts:    nothing: RESULT is written by the code that is being confined
 * Blocks on: nothing
 */
#include "protocol/messages.h"
#include "protocol/messages_parts.h"

#define COUNT(table) ((unsigned)(sizeof(table) / sizeof((table)[0])))

/* [array type, limits, params: {inputs: {name: value}}]: three containers around a value; params came from a scan as deep as this. */
#define RUN_DEPTH BROOD_SCAN_DEPTH
/* [type, {value: …}]: two containers around a value, and one for a mark or a typed text in its innermost. */
#define RESULT_DEPTH (BROOD_NESTING_MAX + 3)

bool brood_worker_frame_allowed(bool from_worker, enum brood_worker_state state, enum brood_worker_frame type)
{
	switch (type) {
	case BROOD_W_PARKED:
		return from_worker && state == BROOD_WORKER_WARMING;
	case BROOD_W_RUN:
		return !from_worker && state == BROOD_WORKER_PARKED;
	case BROOD_W_RESULT:
		return from_worker && state == BROOD_WORKER_RUNNING;
	}
	return false;
}

int brood_worker_frame_type(const uint8_t *payload, size_t len, enum brood_worker_frame *out)
{
	struct brood_reader r;
	uint32_t count;
	uint64_t type;
	int result = brood_scan_whole(payload, len, BROOD_SCAN_DEPTH);

	if (result < 0)
		return result;
	brood_reader_init(&r, payload, len);
	if (brood_read_array(&r, &count) < 0 || count < 1 || brood_read_u64(&r, &type) < 0)
		return BROOD_E_TYPE;
	if (type < BROOD_W_PARKED || type > BROOD_W_RESULT)
		return BROOD_E_UNKNOWN;
	if (type == BROOD_W_PARKED && count != 1)
		return BROOD_E_MALFORMED;
	*out = (enum brood_worker_frame)type;
	return 0;
}

int brood_parked_write(msgpack_sbuffer *to)
{
	size_t before = to->size;
	msgpack_packer pk;

	msgpack_packer_init(&pk, to, msgpack_sbuffer_write);
	msgpack_pack_array(&pk, 1);
	msgpack_pack_int(&pk, BROOD_W_PARKED);
	return brood_message_written(to, before);
}

int brood_run_write_head(msgpack_sbuffer *to, const struct brood_limits *limits)
{
	size_t before = to->size, numbers = 2; /* the array's head and the type are a byte each */
	msgpack_packer pk;

	msgpack_packer_init(&pk, to, msgpack_sbuffer_write);
	msgpack_pack_array(&pk, 3);
	msgpack_pack_int(&pk, BROOD_W_RUN);
	brood_message_pack_limits(&pk, limits);
	/* The array still lacks its third value here: judge the limits alone. */
	if (to->size < before + numbers ||
	    brood_scan_whole((const uint8_t *)to->data + before + numbers, to->size - before - numbers, 1) < 0) {
		to->size = before;
		return BROOD_E_MEMORY;
	}
	return 0;
}

int brood_run_parse(const uint8_t *payload, size_t len, struct brood_limits *limits, struct brood_slice *params)
{
	struct brood_limits given;
	struct brood_slice map;
	struct brood_reader r;
	int result = mp_open(&r, payload, len, RUN_DEPTH, 3, BROOD_W_RUN);

	if (result == 0)
		result = brood_message_limits(&r, &given);
	if (result < 0)
		return result;
	if (brood_peek(&r) != BROOD_T_MAP || brood_read_any(&r, &map) < 0)
		return BROOD_E_TYPE;
	*limits = given;
	*params = map;
	return 0;
}

/* --- RESULT --- */

enum result_field {
	RESULT_VALUE,
	RESULT_REPR,
	RESULT_ERROR,
	RESULT_EXIT_CODE,
	RESULT_OUTCOME,
	RESULT_TRUNCATED,
	RESULT_FIELDS,
};

static const char *const RESULT_NAMES[RESULT_FIELDS] = {"value", "repr", "error", "exit_code", "outcome", "truncated"};
static const char *const OUTCOME_NAMES[] = {"ok", "error", "memory", "denied"};

static const uint8_t NIL[] = {0xc0};

static int take_value(struct brood_reader *r, size_t max, struct brood_slice *out)
{
	struct brood_slice value;

	if (brood_read_any(r, &value) < 0)
		return BROOD_E_MALFORMED;
	if (value.len > max)
		return BROOD_E_TOO_LARGE;
	*out = value;
	return 0;
}

static int take_text_or_nil(struct brood_reader *r, size_t max, struct brood_slice *out)
{
	const uint8_t *start = r->pos;
	struct brood_slice text;

	if (brood_read_nil(r) < 0) {
		if (brood_read_str(r, &text) < 0)
			return BROOD_E_TYPE;
		if (text.len > max)
			return BROOD_E_TOO_LARGE;
	}
	*out = (struct brood_slice){start, (size_t)(r->pos - start)};
	return 0;
}

static int take_line(struct brood_reader *r)
{
	uint64_t line;

	if (brood_read_nil(r) == 0)
		return 0;
	if (brood_read_u64(r, &line) < 0)
		return BROOD_E_TYPE;
	return line <= INT32_MAX ? 0 : BROOD_E_RANGE;
}

/* Exactly {type, message, traceback, line}, in that order, or nil. */
static int take_error(struct brood_reader *r, struct brood_slice *out)
{
	static const char *const NAMES[] = {"type", "message", "traceback", "line"};
	static const size_t MOST[] = {BROOD_NAME_MAX, BROOD_ERROR_TEXT_MAX, BROOD_ERROR_TEXT_MAX};
	const uint8_t *start = r->pos;
	struct brood_slice key, text;
	uint32_t count;

	if (brood_peek(r) == BROOD_T_NIL)
		return take_value(r, 1, out);
	if (brood_read_map(r, &count) < 0 || count != COUNT(NAMES))
		return BROOD_E_TYPE;
	for (unsigned i = 0; i < COUNT(NAMES); i++) {
		int result = 0;

		if (brood_read_str(r, &key) < 0 || !brood_slice_is(key, NAMES[i]))
			return BROOD_E_TYPE;
		if (i == COUNT(MOST))
			result = take_line(r);
		else if (brood_read_str(r, &text) < 0)
			result = BROOD_E_TYPE;
		else if (text.len > MOST[i])
			result = BROOD_E_TOO_LARGE;
		if (result < 0)
			return result;
	}
	*out = (struct brood_slice){start, (size_t)(r->pos - start)};
	return 0;
}

/* {what, kept_bytes, cut_bytes, reason}, in that order. Of what only the worker can cut. */
static int take_cut(struct brood_reader *r)
{
	static const char *const NAMES[] = {"what", "kept_bytes", "cut_bytes", "reason"};
	struct brood_slice key, text;
	uint64_t number;
	uint32_t count;

	if (brood_read_map(r, &count) < 0 || count != COUNT(NAMES))
		return BROOD_E_TYPE;
	for (unsigned i = 0; i < COUNT(NAMES); i++) {
		if (brood_read_str(r, &key) < 0 || !brood_slice_is(key, NAMES[i]))
			return BROOD_E_TYPE;
		if (i == 1 || i == 2) {
			if (brood_read_u64(r, &number) < 0)
				return BROOD_E_TYPE;
		} else if (brood_read_str(r, &text) < 0 || text.len > BROOD_NAME_MAX) {
			return BROOD_E_TYPE;
		} else if (i == 0 && !brood_slice_is(text, "value") && !brood_slice_is(text, "repr") &&
			   !brood_slice_is(text, "error")) {
			return BROOD_E_UNKNOWN;
		}
	}
	return 0;
}

static int take_truncated(struct brood_reader *r, struct brood_slice *out)
{
	const uint8_t *start = r->pos;
	uint32_t count;

	if (brood_read_array(r, &count) < 0)
		return BROOD_E_TYPE;
	if (count > BROOD_TRUNCATED_MAX)
		return BROOD_E_TOO_LARGE;
	for (; count > 0; count--) {
		int result = take_cut(r);

		if (result < 0)
			return result;
	}
	*out = (struct brood_slice){start, (size_t)(r->pos - start)};
	return 0;
}

static int take_exit_code(struct brood_reader *r, struct brood_result *result)
{
	int64_t code;

	if (brood_read_nil(r) == 0)
		return 0;
	if (brood_read_i64(r, &code) < 0)
		return BROOD_E_TYPE;
	result->has_exit_code = true;
	result->exit_code = code;
	return 0;
}

static int take_outcome(struct brood_reader *r, struct brood_result *result)
{
	struct brood_slice name;

	if (brood_read_str(r, &name) < 0)
		return BROOD_E_TYPE;
	for (unsigned i = 0; i < COUNT(OUTCOME_NAMES); i++) {
		if (brood_slice_is(name, OUTCOME_NAMES[i])) {
			result->outcome = (enum brood_outcome)i;
			return 0;
		}
	}
	return BROOD_E_UNKNOWN;
}

static int take_field(struct brood_reader *r, enum result_field field, size_t value_max, struct brood_result *result)
{
	switch (field) {
	case RESULT_VALUE:
		return take_value(r, value_max, &result->value);
	case RESULT_REPR:
		return take_text_or_nil(r, value_max, &result->repr);
	case RESULT_ERROR:
		return take_error(r, &result->error);
	case RESULT_EXIT_CODE:
		return take_exit_code(r, result);
	case RESULT_OUTCOME:
		return take_outcome(r, result);
	case RESULT_TRUNCATED:
		return take_truncated(r, &result->truncated);
	case RESULT_FIELDS:
		break;
	}
	return BROOD_E_UNKNOWN;
}

int brood_result_parse(const uint8_t *payload, size_t len, const struct brood_limits *limits, struct brood_result *out)
{
	struct brood_result result = {.value = {NIL, 1}, .repr = {NIL, 1}, .error = {NIL, 1}};
	struct brood_reader r;
	unsigned seen = 0;
	uint32_t count;
	int error = mp_open(&r, payload, len, RESULT_DEPTH, 2, BROOD_W_RESULT);

	if (error < 0)
		return error;
	if (brood_read_map(&r, &count) < 0)
		return BROOD_E_TYPE;
	for (; count > 0; count--) {
		int field = brood_message_key(&r, RESULT_NAMES, RESULT_FIELDS, &seen);

		if (field < 0)
			return field;
		error = take_field(&r, (enum result_field)field, (size_t)limits->v[BROOD_LIMIT_VALUE], &result);
		if (error < 0)
			return error;
	}
	if (!(seen & (1u << RESULT_OUTCOME)))
		return BROOD_E_MISSING;
	*out = result;
	return 0;
}
