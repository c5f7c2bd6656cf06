/*
 * Runs in:   brood
 * Trusts:    nothing in an answer. The repr and the traceback are printed as they are, as Python would print them
 * Blocks on: standard output and standard error
 */
#include "client/report.h"

#include <errno.h>
#include <string.h>

#include "client/exchange.h"
#include "client/json_write.h"
#include "client/message.h"
#include "protocol/error.h"

#define TREE_DEPTH_MAX 8

/* --- ends --- */

static int fail_answer(void)
{
	cli_complain("broodd sent an answer that is not of the protocol");
	return BROOD_EXIT_FAILED;
}

/* The exit status, unless standard output failed. */
static int finish(const struct cli_output *out, int exit_status)
{
	if (out->error == EPIPE)
		return CLI_EXIT_READER_GONE;
	if (out->error == EINTR)
		cli_complain("cancelled");
	else if (out->error)
		cli_complain("cannot write to standard output: %s", strerror(out->error));
	return out->error ? BROOD_EXIT_FAILED : exit_status;
}

/* A text that its writer may have ended with a newline or not. */
static void write_line(struct cli_output *to, struct brood_slice text)
{
	cli_output_write(to, text.data, text.len);
	if (text.len == 0 || text.data[text.len - 1] != '\n')
		cli_output_write(to, "\n", 1);
}

static int exit_of(const struct cli_record *record)
{
	return brood_status_exit(record->status, record->exit_code != 0);
}

/* --- records for people --- */

static int length(struct brood_slice text)
{
	return text.len < 4096 ? (int)text.len : 4096;
}

static void report_cut(const struct cli_cut *cut)
{
	int len = length(cut->what);
	const char *what = (const char *)cut->what.data;

	if (cut->cut_bytes > 0)
		cli_complain("%.*s cut after %llu bytes (%llu more were thrown away)", len, what,
			     (unsigned long long)cut->kept_bytes, (unsigned long long)cut->cut_bytes);
	else
		cli_complain("%.*s cut after %llu bytes: %.*s", len, what, (unsigned long long)cut->kept_bytes,
			     length(cut->reason), cut->reason.data ? (const char *)cut->reason.data : "");
}

static int report_cuts(struct brood_slice truncated)
{
	struct brood_reader r;
	struct cli_cut cut;
	uint32_t count;

	if (!truncated.data)
		return 0;
	brood_reader_init(&r, truncated.data, truncated.len);
	if (brood_read_array(&r, &count) < 0)
		return BROOD_E_TYPE;
	for (; count > 0; count--) {
		if (cli_cut_read(&r, &cut) < 0)
			return BROOD_E_TYPE;
		/* The value itself is not shown here, only its repr, which has an entry of its own. */
		if (!brood_slice_is(cut.what, "value"))
			report_cut(&cut);
	}
	return 0;
}

static void report_ending(const struct cli_record *record, struct cli_output *err)
{
	if (record->traceback.len > 0)
		write_line(err, record->traceback);
	/* An exception's traceback says it all; a program that ended itself has said what it wanted to say. */
	if (record->status == BROOD_OK || (record->status == BROOD_ERROR && record->traceback.len > 0))
		return;
	if (record->message.len > 0)
		cli_complain("%.*s", length(record->message), (const char *)record->message.data);
	else
		cli_complain("the call ended with status '%s'", brood_status_name(record->status));
}

int cli_report_record(struct brood_slice slice, struct cli_output *out, struct cli_output *err)
{
	struct cli_record record;

	if (cli_record_parse(slice, &record) < 0)
		return fail_answer();
	if (record.repr.data) {
		cli_output_write(out, record.repr.data, record.repr.len);
		cli_output_write(out, "\n", 1);
	}
	if (report_cuts(record.truncated) < 0)
		return fail_answer();
	report_ending(&record, err);
	return finish(out, exit_of(&record));
}

/* --- JSON --- */

static int write_json(struct cli_output *out, struct brood_slice value, int (*write)(FILE *, struct brood_slice))
{
	FILE *to = cli_output_stream(out);
	int result;

	if (!to)
		return BROOD_E_MEMORY;
	result = write(to, value);
	if (result == 0)
		putc_unlocked('\n', to);
	fclose(to);
	return result;
}

int cli_report_record_json(struct brood_slice slice, struct cli_output *out)
{
	struct cli_record record;

	if (cli_record_parse(slice, &record) < 0 || write_json(out, slice, cli_json_write_record) < 0)
		return fail_answer();
	return finish(out, exit_of(&record));
}

int cli_report_status_json(struct brood_slice result, struct cli_output *out)
{
	if (write_json(out, result, cli_json_write) < 0)
		return fail_answer();
	return finish(out, 0);
}

/* --- errors --- */

static void write_error_json(const struct cli_answer *answer, struct cli_output *out)
{
	FILE *to = cli_output_stream(out);

	if (!to)
		return;
	fputs("{\"error\": {\"code\": ", to);
	cli_json_write_str(to, answer->code);
	fputs(", \"message\": ", to);
	cli_json_write_str(to, answer->message);
	fputs("}}\n", to);
	fclose(to);
}

int cli_report_error(const struct cli_answer *answer, bool json, struct cli_output *out)
{
	/* These two speak of what the user asked for, as everything else in the request is ours. */
	bool usage = brood_slice_is(answer->code, "bad-params") || brood_slice_is(answer->code, "unknown-profile");

	if (json)
		write_error_json(answer, out);
	else
		cli_complain("%.*s (%.*s)", length(answer->message), (const char *)answer->message.data,
			     length(answer->code), (const char *)answer->code.data);
	return finish(out, usage ? BROOD_EXIT_USAGE : BROOD_EXIT_FAILED);
}

/* --- the status of a server --- */

static int write_tree(FILE *to, struct brood_reader *r, unsigned depth);

static void write_plain(FILE *to, struct brood_slice text)
{
	for (size_t i = 0; i < text.len; i++)
		putc_unlocked(text.data[i] < 0x20 || text.data[i] == 0x7f ? ' ' : text.data[i], to);
}

static int write_scalar(FILE *to, struct brood_reader *r)
{
	struct brood_slice value;

	if (brood_read_str(r, &value) == 0) {
		write_plain(to, value);
		return 0;
	}
	return brood_read_any(r, &value) < 0 ? BROOD_E_MALFORMED : cli_json_write(to, value);
}

static int write_list(FILE *to, struct brood_reader *r)
{
	uint32_t count;
	int result = brood_read_array(r, &count);

	for (uint32_t i = 0; result == 0 && i < count; i++) {
		fputs(i > 0 ? ", " : "", to);
		result = write_scalar(to, r);
	}
	return result;
}

/* What follows a key: the rest of its line, or indented lines of its own. */
static int write_branch(FILE *to, struct brood_reader *r, unsigned depth)
{
	int result;

	if (brood_peek(r) == BROOD_T_MAP) {
		fputs(":\n", to);
		return write_tree(to, r, depth + 1);
	}
	fputs(": ", to);
	result = brood_peek(r) == BROOD_T_ARRAY ? write_list(to, r) : write_scalar(to, r);
	putc_unlocked('\n', to);
	return result;
}

static int write_tree(FILE *to, struct brood_reader *r, unsigned depth)
{
	struct brood_slice key;
	uint32_t count;
	int result = depth < TREE_DEPTH_MAX ? brood_read_map(r, &count) : BROOD_E_TOO_DEEP;

	for (; result == 0 && count > 0; count--) {
		result = brood_read_str(r, &key);
		if (result < 0)
			break;
		fprintf(to, "%*s", (int)(2 * depth), "");
		write_plain(to, key);
		result = write_branch(to, r, depth);
	}
	return result;
}

int cli_report_status(struct brood_slice slice, struct cli_output *out)
{
	FILE *to = cli_output_stream(out);
	struct brood_reader r;
	int result = BROOD_E_MEMORY;

	if (to) {
		brood_reader_init(&r, slice.data, slice.len);
		result = write_tree(to, &r, 0);
		fclose(to);
	}
	return result < 0 ? fail_answer() : finish(out, 0);
}
