/*
 * Runs in:   brood
 * Trusts:    its user; nothing that broodd sends
 * Blocks on: the source, the answer, its output
 *
 * brood run. The request is made whole before anything is started or connected to, so that a mistake costs nothing.
 */
#include "client/command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/exchange.h"
#include "client/message.h"
#include "client/options.h"
#include "client/report.h"
#include "client/request.h"
#include "client/signals.h"
#include "client/source.h"
#include "protocol/error.h"

static const char USAGE_HEAD[] =
	"Usage: brood run [options] (-c CODE | FILE | -)\n"
	"\n"
	"Runs Python code in a fresh, locked process. What it writes appears at once; the value of its last\n"
	"expression is printed as a Python prompt would. A FILE of - is standard input.\n"
	"\n"
	"  -c CODE              the code itself\n"
	"  --input NAME=JSON    make NAME a global variable of the code (repeatable)\n"
	"  --profile NAME       which profile of the configuration runs it\n";

static const char USAGE_TAIL[] =
	"  --json               print the whole answer as one line of JSON\n"
	"  --socket PATH        ask the broodd that listens there (else $BROOD_SOCKET, else a private one)\n"
	"  --config FILE        configuration of the private broodd\n"
	"  -h, --help           this text\n"
	"\n"
	"Exit status: 0 ok; 1 the code raised, or ended itself with another status than 0; 2 usage; 75 busy;\n"
	"124 wall time; 125 Brood itself failed, or the call was cancelled; 126 denied; 137 CPU, memory, output, "
	"crash.\n";

static void print_usage(void)
{
	fputs(USAGE_HEAD, stdout);
	cli_options_print_limits(stdout);
	fputs(USAGE_TAIL, stdout);
}

static int report(struct cli_exchange *exchange, const struct cli_answer *answer, bool json)
{
	int result;

	/* A record is still owed to a program that reads it, but not a text to a user who has stopped it. */
	if (exchange->stopped && !json)
		return exchange->stopped;
	if (exchange->stopped && exchange->out.error == EINTR)
		exchange->out.error = 0;
	if (answer->kind == CLI_ANSWER_ERROR)
		result = cli_report_error(answer, json, &exchange->out);
	else if (json)
		result = cli_report_record_json(answer->result, &exchange->out);
	else
		result = cli_report_record(answer->result, &exchange->out, &exchange->err);
	return exchange->stopped ? exchange->stopped : result;
}

/* The request is in link->out. */
static int ask(struct cli_link *link, const struct cli_options *options)
{
	struct cli_exchange exchange = {
		.link = link,
		.show = !options->json,
		.out = {.fd = 1, .signals = link->signals},
		.err = {.fd = 2, .signals = link->signals},
	};
	struct cli_answer answer;
	int result;

	if (cli_link_open(link, options) < 0)
		return BROOD_EXIT_FAILED;
	result = cli_exchange(&exchange, &answer);
	if (result == 0)
		result = report(&exchange, &answer, options->json);
	return result;
}

static int run(const struct cli_options *options, const struct cli_program *program)
{
	struct cli_link link;
	int signals = cli_signals_install(), result;

	if (signals < 0) {
		cli_complain("cannot make a pipe: %s", strerror(errno));
		return BROOD_EXIT_FAILED;
	}
	cli_link_init(&link, signals);
	result = cli_request_run(&link.out, options, program);
	if (result == 0) {
		result = ask(&link, options);
	} else if (result == BROOD_E_TOO_LARGE) {
		result = cli_usage_error("run", "code and inputs are too large; at most %llu bytes can be sent",
					 (unsigned long long)BROOD_REQUEST_CEILING);
	} else {
		cli_complain("%s", brood_strerror(result));
		result = BROOD_EXIT_FAILED;
	}
	cli_link_free(&link);
	return result;
}

static int run_file(const struct cli_options *options)
{
	struct cli_source source = {.data = NULL};
	struct cli_program program = {.text = false};
	char error[CLI_SOURCE_ERROR_MAX];
	int result;

	if (cli_source_read(&source, options->file, error) < 0)
		return cli_usage_error("run", "%s", error);
	program.code = (struct brood_slice){(const uint8_t *)source.data, source.len};
	program.name = source.name;
	result = run(options, &program);
	cli_source_free(&source);
	return result;
}

static int run_code(const struct cli_options *options)
{
	struct cli_program program = {
		.code = {(const uint8_t *)options->code, strlen(options->code)},
		.name = "<string>",
		.text = true,
	};

	return run(options, &program);
}

int cli_command_run(int argc, char **argv)
{
	struct cli_options options;
	int result = cli_options_run(argc, argv, &options);

	if (result == 0 && options.help)
		print_usage();
	else if (result == 0)
		result = options.code ? run_code(&options) : run_file(&options);
	cli_options_free(&options);
	return result;
}
