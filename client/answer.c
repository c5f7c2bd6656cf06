/*
 * Runs in:   brood
 * Trusts:    nothing that a server sends
 * Blocks on: nothing
 */
#include "client/answer.h"

#include "protocol/error.h"
#include "protocol/status.h"

static int parse_error(struct brood_reader *r, struct cli_answer *out)
{
	struct brood_slice key;
	uint32_t count;

	if (brood_read_map(r, &count) < 0)
		return BROOD_E_TYPE;
	for (; count > 0; count--) {
		int result;

		if (brood_read_str(r, &key) < 0)
			return BROOD_E_TYPE;
		if (brood_slice_is(key, "code"))
			result = brood_read_str(r, &out->code);
		else if (brood_slice_is(key, "message"))
			result = brood_read_str(r, &out->message);
		else
			result = brood_read_any(r, NULL);
		if (result < 0)
			return result;
	}
	return out->code.data && out->message.data ? 0 : BROOD_E_MISSING;
}

static int parse_response(struct brood_reader *r, struct cli_answer *out)
{
	uint64_t id;

	if (brood_read_nil(r) < 0) {
		if (brood_read_u64(r, &id) < 0 || id > UINT32_MAX)
			return BROOD_E_TYPE;
		out->has_id = true;
		out->id = (uint32_t)id;
	}
	if (brood_read_nil(r) == 0) {
		out->kind = CLI_ANSWER_RESULT;
		return brood_read_any(r, &out->result);
	}
	out->kind = CLI_ANSWER_ERROR;
	return parse_error(r, out);
}

static int parse_notification(struct brood_reader *r, struct cli_answer *out)
{
	struct brood_slice method, stream;
	uint32_t count;
	uint64_t id;

	out->kind = CLI_ANSWER_OTHER;
	if (brood_read_str(r, &method) < 0)
		return BROOD_E_TYPE;
	if (!brood_slice_is(method, "output"))
		return 0;
	if (brood_read_array(r, &count) < 0 || count != 3 || brood_read_u64(r, &id) < 0 || id > UINT32_MAX ||
	    brood_read_str(r, &stream) < 0 || brood_read_bin(r, &out->output) < 0)
		return BROOD_E_TYPE;
	out->kind = CLI_ANSWER_OUTPUT;
	out->has_id = true;
	out->id = (uint32_t)id;
	out->is_stderr = brood_slice_is(stream, "stderr");
	return 0;
}

int cli_answer_parse(const uint8_t *message, size_t len, struct cli_answer *out)
{
	struct cli_answer answer = {0};
	struct brood_reader r;
	uint64_t type;
	uint32_t count;
	int result = BROOD_E_MALFORMED;

	brood_reader_init(&r, message, len);
	if (brood_read_array(&r, &count) < 0 || brood_read_u64(&r, &type) < 0)
		return BROOD_E_MALFORMED;
	if (type == 1 && count == 4)
		result = parse_response(&r, &answer);
	else if (type == 2 && count == 3)
		result = parse_notification(&r, &answer);
	if (result < 0)
		return result;
	*out = answer;
	return 0;
}

/* A str, or nil, which leaves it as it is. */
static int text_or_nil(struct brood_reader *r, struct brood_slice *out)
{
	return brood_read_nil(r) == 0 ? 0 : brood_read_str(r, out);
}

static int parse_traceback(struct brood_reader *r, struct brood_slice *out)
{
	struct brood_slice key;
	uint32_t count;

	if (brood_read_nil(r) == 0)
		return 0;
	if (brood_read_map(r, &count) < 0)
		return BROOD_E_TYPE;
	for (; count > 0; count--) {
		int result = brood_read_str(r, &key);

		if (result == 0)
			result = brood_slice_is(key, "traceback") ? brood_read_str(r, out) : brood_read_any(r, NULL);
		if (result < 0)
			return result;
	}
	return 0;
}

static int parse_field(struct brood_reader *r, struct brood_slice key, struct cli_record *out)
{
	struct brood_slice status;

	if (brood_slice_is(key, "status")) {
		if (brood_read_str(r, &status) < 0)
			return BROOD_E_TYPE;
		out->status = brood_status_by_name((const char *)status.data, status.len);
		return out->status;
	}
	if (brood_slice_is(key, "message"))
		return text_or_nil(r, &out->message);
	if (brood_slice_is(key, "repr"))
		return text_or_nil(r, &out->repr);
	if (brood_slice_is(key, "error"))
		return parse_traceback(r, &out->traceback);
	if (brood_slice_is(key, "truncated"))
		return brood_read_any(r, &out->truncated);
	if (brood_slice_is(key, "exit_code") && brood_read_nil(r) < 0) {
		out->has_exit_code = true;
		return brood_read_i64(r, &out->exit_code);
	}
	return brood_slice_is(key, "exit_code") ? 0 : brood_read_any(r, NULL);
}

int cli_record_parse(struct brood_slice result, struct cli_record *out)
{
	struct cli_record record = {.status = -1};
	struct brood_reader r;
	struct brood_slice key;
	uint32_t count;

	brood_reader_init(&r, result.data, result.len);
	if (brood_read_map(&r, &count) < 0)
		return BROOD_E_TYPE;
	for (; count > 0; count--) {
		int error = brood_read_str(&r, &key);

		if (error == 0)
			error = parse_field(&r, key, &record);
		if (error < 0)
			return error;
	}
	if (record.status < 0)
		return BROOD_E_MISSING;
	*out = record;
	return 0;
}
