/*
 * Runs in:   brood
 * Trusts:    nothing but that the scanner found whole values
 * Blocks on: nothing
 */
#include "client/answer.h"

#include <string.h>

#include "protocol/error.h"

/* --- messages --- */

/* The error of a response: {"code": str, "message": str}. */
static int parse_error(struct brood_reader *r, struct cli_answer *out)
{
	struct brood_slice key;
	uint32_t count;

	if (brood_read_map(r, &count) < 0)
		return BROOD_E_MALFORMED;
	for (; count > 0; count--) {
		int result;

		if (brood_read_str(r, &key) < 0)
			return BROOD_E_MALFORMED;
		if (brood_slice_is(key, "code"))
			result = brood_read_str(r, &out->code);
		else if (brood_slice_is(key, "message"))
			result = brood_read_str(r, &out->message);
		else
			result = brood_read_any(r, NULL);
		if (result < 0)
			return BROOD_E_MALFORMED;
	}
	return out->code.data && out->message.data && brood_read_nil(r) == 0 ? 0 : BROOD_E_MALFORMED;
}

/* [1, id, error, result], after the 1. */
static int parse_response(struct brood_reader *r, uint32_t id, struct cli_answer *out)
{
	bool ours = brood_read_nil(r) < 0;
	uint64_t found;

	if (ours && (brood_read_u64(r, &found) < 0 || found != id))
		return BROOD_E_MALFORMED;
	if (brood_peek(r) != BROOD_T_NIL) {
		out->kind = CLI_ANSWER_ERROR;
		return parse_error(r, out);
	}
	out->kind = CLI_ANSWER_RESULT;
	return ours && brood_read_nil(r) == 0 && brood_read_any(r, &out->result) == 0 ? 0 : BROOD_E_MALFORMED;
}

/* [2, method, params], after the 2. */
static int parse_notification(struct brood_reader *r, uint32_t id, struct cli_answer *out)
{
	struct brood_slice method, stream;
	uint32_t count;
	uint64_t found;

	if (brood_read_str(r, &method) < 0)
		return BROOD_E_MALFORMED;
	if (!brood_slice_is(method, "output")) {
		out->kind = CLI_ANSWER_OTHER;
		return 0;
	}
	if (brood_read_array(r, &count) < 0 || count != 3 || brood_read_u64(r, &found) < 0 || found != id ||
	    brood_read_str(r, &stream) < 0 || brood_read_bin(r, &out->data) < 0)
		return BROOD_E_MALFORMED;
	if (!brood_slice_is(stream, "stdout") && !brood_slice_is(stream, "stderr"))
		return BROOD_E_MALFORMED;
	out->kind = CLI_ANSWER_OUTPUT;
	out->fd = brood_slice_is(stream, "stdout") ? 1 : 2;
	return 0;
}

int cli_answer_parse(struct brood_slice message, uint32_t id, struct cli_answer *out)
{
	struct cli_answer answer = {.fd = -1};
	struct brood_reader r;
	uint32_t count;
	uint64_t type;
	int result = BROOD_E_MALFORMED;

	brood_reader_init(&r, message.data, message.len);
	if (brood_read_array(&r, &count) < 0 || brood_read_u64(&r, &type) < 0)
		return BROOD_E_MALFORMED;
	if (type == 1 && count == 4)
		result = parse_response(&r, id, &answer);
	else if (type == 2 && count == 3)
		result = parse_notification(&r, id, &answer);
	if (result == 0)
		*out = answer;
	return result;
}

/* --- records --- */

/* A str, or nil, which leaves *out as it is. */
static int read_text(struct brood_reader *r, struct brood_slice *out)
{
	return brood_read_nil(r) == 0 ? 0 : brood_read_str(r, out);
}

static int read_error(struct brood_reader *r, struct brood_slice *traceback)
{
	struct brood_slice key;
	uint32_t count;
	int result = 0;

	if (brood_read_nil(r) == 0)
		return 0;
	if (brood_read_map(r, &count) < 0)
		return BROOD_E_TYPE;
	for (; result == 0 && count > 0; count--) {
		if (brood_read_str(r, &key) < 0)
			return BROOD_E_TYPE;
		result = brood_slice_is(key, "traceback") ? read_text(r, traceback) : brood_read_any(r, NULL);
	}
	return result;
}

static int read_status(struct brood_reader *r, enum brood_status *out)
{
	struct brood_slice name;
	int status;

	if (brood_read_str(r, &name) < 0)
		return BROOD_E_TYPE;
	status = brood_status_by_name((const char *)name.data, name.len);
	if (status < 0)
		return status;
	*out = (enum brood_status)status;
	return 0;
}

static int read_field(struct brood_reader *r, struct brood_slice key, struct cli_record *record, bool *has_status)
{
	if (brood_slice_is(key, "status")) {
		*has_status = true;
		return read_status(r, &record->status);
	}
	if (brood_slice_is(key, "message"))
		return read_text(r, &record->message);
	if (brood_slice_is(key, "repr"))
		return read_text(r, &record->repr);
	if (brood_slice_is(key, "error"))
		return read_error(r, &record->traceback);
	if (brood_slice_is(key, "exit_code"))
		return brood_read_nil(r) == 0 ? 0 : brood_read_i64(r, &record->exit_code);
	if (brood_slice_is(key, "truncated"))
		return brood_peek(r) == BROOD_T_ARRAY ? brood_read_any(r, &record->truncated) : BROOD_E_TYPE;
	return brood_read_any(r, NULL);
}

int cli_record_parse(struct brood_slice slice, struct cli_record *out)
{
	struct cli_record record = {.status = BROOD_LOST};
	struct brood_slice key;
	struct brood_reader r;
	bool has_status = false;
	uint32_t count;

	brood_reader_init(&r, slice.data, slice.len);
	if (brood_read_map(&r, &count) < 0)
		return BROOD_E_TYPE;
	for (; count > 0; count--) {
		int result = brood_read_str(&r, &key);

		if (result == 0)
			result = read_field(&r, key, &record, &has_status);
		if (result < 0)
			return result;
	}
	if (!has_status)
		return BROOD_E_MISSING;
	*out = record;
	return 0;
}

int cli_cut_read(struct brood_reader *r, struct cli_cut *out)
{
	struct cli_cut cut = {.kept_bytes = 0};
	struct brood_slice key;
	uint32_t count;
	int result = 0;

	if (brood_read_map(r, &count) < 0)
		return BROOD_E_TYPE;
	for (; result == 0 && count > 0; count--) {
		if (brood_read_str(r, &key) < 0)
			return BROOD_E_TYPE;
		if (brood_slice_is(key, "what"))
			result = brood_read_str(r, &cut.what);
		else if (brood_slice_is(key, "reason"))
			result = brood_read_str(r, &cut.reason);
		else if (brood_slice_is(key, "kept_bytes"))
			result = brood_read_u64(r, &cut.kept_bytes);
		else if (brood_slice_is(key, "cut_bytes"))
			result = brood_read_u64(r, &cut.cut_bytes);
		else
			result = brood_read_any(r, NULL);
	}
	if (result == 0 && !cut.what.data)
		result = BROOD_E_MISSING;
	if (result == 0)
		*out = cut;
	return result;
}
