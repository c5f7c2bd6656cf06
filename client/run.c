/*
 * Runs in:   brood
 * Trusts:    its user; not the server's bytes, nor the code's output, which goes to the terminal as the user asked
 * Blocks on: the server; standard output
 *
 * `brood run`: one request, then whatever comes until its answer. Ctrl-C asks for the call's cancellation and goes on waiting for the
 * answer; a second one gives up.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/answer.h"
#include "client/command.h"
#include "client/json.h"
#include "client/link.h"
#include "client/options.h"
#include "protocol/status.h"

#define RUN_ID 1
/* A reader of our output that went away: what a shell reports of a program that SIGPIPE ended. */
#define EXIT_PIPE 141

static const char USAGE[] =
	"Usage: brood run [options] (-c CODE | FILE | -)\n"
	"\n"
	"Runs Python in a fresh, locked process. Its output appears as it is written; the value of its last expression\n"
	"is printed as a REPL would.\n"
	"\n"
	"  -c CODE             the code itself; else FILE, or - for standard input\n"
	"  --input NAME=JSON   a global variable of the code (repeatable)\n"
	"  --profile NAME      which profile of the supervisor runs it (default)\n"
	"  --wall 5s --cpu 5s  limits of time\n"
	"  --memory 512m       limit of memory\n"
	"  --output 1m         limit of each output stream\n"
	"  --value 1m          limit of the value\n"
	"  --json              print the whole answer as one line of JSON\n"
	"  --socket PATH       use this supervisor ($BROOD_SOCKET); else a private one is started\n"
	"  --config FILE       configuration of the private supervisor\n"
	"\n"
	"Exit status: 0 ok, 1 the code raised (or exited with a status other than 0), 2 usage, 75 busy, 124 wall time,\n"
	"126 denied, 137 killed for CPU, memory, output or a crash, 125 Brood itself failed.\n";

struct run {
	struct cli_options options;
	struct cli_link link;
	uint8_t *source;
	size_t source_len;
	const char *name; /* in tracebacks */
	bool cancelled;
	bool output_gone;   /* our standard output or error cannot be written any more */
	bool mid_line;	    /* the code's standard output did not end with a line end */
};

void cli_say(const char *format, ...)
{
	va_list args;

	fputs("brood: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	putc('\n', stderr);
}

/* --- the source --- */

static int read_all(int fd, const char *name, uint8_t **data, size_t *len)
{
	size_t room = 64 * 1024;

	*len = 0;
	*data = malloc(room);
	while (*data) {
		ssize_t n = read(fd, *data + *len, room - *len);
		uint8_t *grown;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			cli_say("cannot read %s: %s", name, strerror(errno));
			return -1;
		}
		if (n == 0)
			return 0;
		*len += (size_t)n;
		if (*len > BROOD_REQUEST_CEILING) {
			cli_say("%s is larger than %llu bytes", name, (unsigned long long)BROOD_REQUEST_CEILING);
			return -1;
		}
		if (*len < room)
			continue;
		grown = realloc(*data, room *= 2);
		if (!grown)
			break;
		*data = grown;
	}
	cli_say("no memory for %s", name);
	return -1;
}

static int load_source(struct run *run)
{
	const struct cli_options *options = &run->options;
	int fd, result;

	if (options->code) {
		run->name = "<string>";
		run->source = (uint8_t *)strdup(options->code);
		run->source_len = strlen(options->code);
		return run->source ? 0 : -1;
	}
	if (strcmp(options->file, "-") == 0) {
		run->name = "<stdin>";
		return read_all(STDIN_FILENO, "standard input", &run->source, &run->source_len);
	}
	run->name = options->file;
	fd = open(options->file, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		cli_say("cannot open %s: %s", options->file, strerror(errno));
		return -1;
	}
	result = read_all(fd, options->file, &run->source, &run->source_len);
	close(fd);
	return result;
}

/* --- the request --- */

static void text(msgpack_packer *pk, const char *s, size_t len)
{
	msgpack_pack_str(pk, len);
	msgpack_pack_str_body(pk, s, len);
}

static void key(msgpack_packer *pk, const char *s)
{
	text(pk, s, strlen(s));
}

/* A text that may hold anything: as str when it is UTF-8; the rest is cut off where it is not. */
static void pack_name(msgpack_packer *pk, const char *name)
{
	size_t len = strlen(name);

	if (len > BROOD_NAME_MAX)
		len = brood_utf8_prefix((const uint8_t *)name, len, BROOD_NAME_MAX);
	if (brood_utf8_valid((const uint8_t *)name, len))
		text(pk, name, len);
	else
		key(pk, "<file>");
}

/* A file travels as bytes, so that its own encoding declaration counts. */
static void pack_code(msgpack_packer *pk, const struct run *run)
{
	if (run->options.code && brood_utf8_valid(run->source, run->source_len)) {
		text(pk, (const char *)run->source, run->source_len);
	} else {
		msgpack_pack_bin(pk, run->source_len);
		msgpack_pack_bin_body(pk, run->source, run->source_len);
	}
}

static int pack_inputs(msgpack_packer *pk, const struct cli_options *options)
{
	char error[CLI_JSON_ERROR_MAX];

	msgpack_pack_map(pk, options->inputs_count);
	for (size_t i = 0; i < options->inputs_count; i++) {
		const struct cli_input *input = &options->inputs[i];

		if (!brood_utf8_valid((const uint8_t *)input->name, input->name_len) || input->name_len > BROOD_NAME_MAX) {
			cli_say("--input: a name is not UTF-8, or is too long");
			return -1;
		}
		text(pk, input->name, input->name_len);
		if (cli_json_pack(pk, input->json, error) < 0) {
			cli_say("--input %.*s: %s", (int)input->name_len, input->name, error);
			return -1;
		}
	}
	return 0;
}

/* Limits go with the call to a supervisor that others use too; a private one was started with them. */
static void pack_limits(msgpack_packer *pk, const struct cli_options *options)
{
	size_t count = 0;

	for (int i = 0; i < BROOD_LIMIT_COUNT; i++)
		count += options->limit_given[i] && options->socket;
	msgpack_pack_map(pk, count);
	for (int i = 0; i < BROOD_LIMIT_COUNT; i++) {
		if (!options->limit_given[i] || !options->socket)
			continue;
		key(pk, BROOD_LIMITS[i].field);
		msgpack_pack_uint64(pk, options->limits[i]);
	}
}

static int pack_request(msgpack_packer *pk, const struct run *run)
{
	const struct cli_options *options = &run->options;

	msgpack_pack_array(pk, 4);
	msgpack_pack_int(pk, 0);
	msgpack_pack_int(pk, RUN_ID);
	key(pk, "run");
	msgpack_pack_array(pk, 1);
	msgpack_pack_map(pk, options->profile ? 6 : 5);
	key(pk, "code");
	pack_code(pk, run);
	key(pk, "name");
	pack_name(pk, run->name);
	key(pk, "limits");
	pack_limits(pk, options);
	key(pk, "stream");
	if (options->json)
		msgpack_pack_false(pk);
	else
		msgpack_pack_true(pk);
	if (options->profile) {
		key(pk, "profile");
		pack_name(pk, options->profile);
	}
	key(pk, "inputs");
	return pack_inputs(pk, options);
}

static void cancel(struct run *run)
{
	msgpack_sbuffer request;
	msgpack_packer pk;

	run->cancelled = true;
	msgpack_sbuffer_init(&request);
	msgpack_packer_init(&pk, &request, msgpack_sbuffer_write);
	msgpack_pack_array(&pk, 3);
	msgpack_pack_int(&pk, 2);
	key(&pk, "cancel");
	msgpack_pack_array(&pk, 1);
	msgpack_pack_int(&pk, RUN_ID);
	/* If it cannot be sent the server is gone, which the next read tells. */
	(void)!cli_link_send(&run->link, request.data, request.size);
	msgpack_sbuffer_destroy(&request);
}

/* --- what comes back --- */

static int write_all(int fd, const uint8_t *data, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

static void show_output(struct run *run, const struct cli_answer *answer)
{
	if (run->output_gone || answer->output.len == 0)
		return;
	if (!answer->is_stderr)
		run->mid_line = answer->output.data[answer->output.len - 1] != '\n';
	if (write_all(answer->is_stderr ? STDERR_FILENO : STDOUT_FILENO, answer->output.data, answer->output.len) < 0) {
		run->output_gone = true;
		cancel(run);
	}
}

static void show_truncated(struct brood_slice truncated)
{
	struct brood_slice name, what = {(const uint8_t *)"", 0}, reason = what;
	struct brood_reader r;
	uint32_t count, fields;

	brood_reader_init(&r, truncated.data, truncated.len);
	if (brood_read_array(&r, &count) < 0)
		return;
	for (; count > 0 && brood_read_map(&r, &fields) == 0; count--) {
		uint64_t kept = 0, cut = 0;

		for (; fields > 0 && brood_read_str(&r, &name) == 0; fields--) {
			int result = brood_slice_is(name, "what")	  ? brood_read_str(&r, &what)
				     : brood_slice_is(name, "reason")	  ? brood_read_str(&r, &reason)
				     : brood_slice_is(name, "kept_bytes") ? brood_read_u64(&r, &kept)
				     : brood_slice_is(name, "cut_bytes")  ? brood_read_u64(&r, &cut)
									  : brood_read_any(&r, NULL);
			if (result < 0)
				return;
		}
		if (cut > 0)
			cli_say("%.*s was cut after %llu bytes, %llu more were thrown away (%.*s)", (int)what.len, (const char *)what.data,
				(unsigned long long)kept, (unsigned long long)cut, (int)reason.len, (const char *)reason.data);
		else
			cli_say("%.*s was not sent: %.*s", (int)what.len, (const char *)what.data, (int)reason.len,
				(const char *)reason.data);
	}
}

static int show_json(struct brood_slice result)
{
	struct brood_reader r;
	int error;

	brood_reader_init(&r, result.data, result.len);
	error = cli_json_write_record(stdout, &r);
	putchar('\n');
	return error < 0 || fflush(stdout) != 0 ? -1 : 0;
}

static void show_record(struct run *run, const struct cli_record *record)
{
	if (record->repr.data && !run->output_gone) {
		if (run->mid_line)
			run->output_gone |= write_all(STDOUT_FILENO, (const uint8_t *)"\n", 1) < 0;
		run->output_gone |= write_all(STDOUT_FILENO, record->repr.data, record->repr.len) < 0 ||
				    write_all(STDOUT_FILENO, (const uint8_t *)"\n", 1) < 0;
	}
	if (record->truncated.data)
		show_truncated(record->truncated);
	if (record->traceback.data)
		(void)!write_all(STDERR_FILENO, record->traceback.data, record->traceback.len);
	else if (record->message.len > 0 && !run->output_gone)
		cli_say("%.*s", (int)record->message.len, (const char *)record->message.data);
}

static int on_result(struct run *run, struct brood_slice result)
{
	struct cli_record record;
	int status;

	if (cli_record_parse(result, &record) < 0) {
		cli_say("the server's answer is not one of the protocol");
		return BROOD_EXIT_FAILED;
	}
	status = brood_status_exit((enum brood_status)record.status, record.has_exit_code ? (long)record.exit_code : 0);
	if (run->options.json)
		return show_json(result) < 0 ? EXIT_PIPE : status;
	show_record(run, &record);
	return run->output_gone ? EXIT_PIPE : status;
}

/* An RPC error: of the user's making (2), or Brood's (125). */
static int on_error(const struct run *run, const struct cli_answer *answer)
{
	bool usage = brood_slice_is(answer->code, "bad-params") || brood_slice_is(answer->code, "unknown-profile");

	if (run->options.json) {
		fputs("{\"error\":{\"code\":", stdout);
		cli_json_write_text(stdout, answer->code);
		fputs(",\"message\":", stdout);
		cli_json_write_text(stdout, answer->message);
		puts("}}");
	} else {
		cli_say("%.*s (%.*s)", (int)answer->message.len, (const char *)answer->message.data, (int)answer->code.len,
			(const char *)answer->code.data);
	}
	return usage ? BROOD_EXIT_USAGE : BROOD_EXIT_FAILED;
}

static int on_end(struct run *run)
{
	bool private = run->link.child > 0;

	cli_link_close(&run->link);
	if (private)
		cli_say("broodd ended before answering (exit status %d)", run->link.child_status);
	else
		cli_say("the server closed the connection before answering");
	return BROOD_EXIT_FAILED;
}

/* Until the answer: its exit status. */
static int await_answer(struct run *run)
{
	for (;;) {
		const uint8_t *message;
		struct cli_answer answer;
		size_t len;

		switch (cli_link_next(&run->link, &message, &len)) {
		case CLI_MESSAGE:
			break;
		case CLI_SIGNAL:
			if (run->cancelled) {
				cli_say("interrupted");
				return BROOD_EXIT_FAILED;
			}
			cancel(run);
			continue;
		case CLI_END:
			return on_end(run);
		case CLI_BAD:
			cli_say("the server sent something that is not the protocol");
			return BROOD_EXIT_FAILED;
		}
		if (cli_answer_parse(message, len, &answer) < 0) {
			cli_say("the server sent something that is not the protocol");
			return BROOD_EXIT_FAILED;
		}
		if (answer.kind == CLI_ANSWER_OUTPUT && answer.id == RUN_ID)
			show_output(run, &answer);
		else if (answer.kind == CLI_ANSWER_ERROR && (!answer.has_id || answer.id == RUN_ID))
			return on_error(run, &answer);
		else if (answer.kind == CLI_ANSWER_RESULT && answer.id == RUN_ID)
			return on_result(run, answer.result);
	}
}

static int send_request(struct run *run, const msgpack_sbuffer *request)
{
	char error[CLI_ERROR_MAX];

	if (cli_link_open(&run->link, &run->options, error) < 0) {
		cli_say("%s", error);
		return BROOD_EXIT_FAILED;
	}
	/* A server that hangs up while we send may have said why: the answer is read all the same. */
	(void)!cli_link_send(&run->link, request->data, request->size);
	return await_answer(run);
}

int cli_run(int argc, char **argv)
{
	static struct run run;
	char error[CLI_ERROR_MAX];
	msgpack_sbuffer request;
	msgpack_packer pk;
	int status = BROOD_EXIT_USAGE;

	run.link.in_fd = run.link.out_fd = run.link.signal_fd = -1;
	if (cli_options_run(argc, argv, getenv("BROOD_SOCKET"), &run.options, error) < 0) {
		cli_say("%s; try 'brood run --help'", error);
		return BROOD_EXIT_USAGE;
	}
	if (run.options.help) {
		fputs(USAGE, stdout);
		return 0;
	}
	msgpack_sbuffer_init(&request);
	msgpack_packer_init(&pk, &request, msgpack_sbuffer_write);
	if (load_source(&run) == 0 && pack_request(&pk, &run) == 0)
		status = send_request(&run, &request);
	cli_link_close(&run.link);
	msgpack_sbuffer_destroy(&request);
	free(run.source);
	return status;
}
