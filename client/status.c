/*
 * Runs in:   brood
 * Trusts:    its user; nothing that broodd sends
 * Blocks on: the answer, its output
 *
 * brood status.
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
#include "protocol/error.h"

static const char USAGE[] =
	"Usage: brood status [--json] [--socket PATH]\n"
	"\n"
	"Shows what the broodd at PATH (else $BROOD_SOCKET) does: its calls, its profiles, their processes.\n"
	"\n"
	"  --json         print it as one line of JSON\n"
	"  --socket PATH  the socket on which it listens\n"
	"  -h, --help     this text\n";

static int ask(struct cli_link *link, const struct cli_options *options)
{
	struct cli_exchange exchange = {.link = link, .out = {.fd = 1, .signals = link->signals}};
	struct cli_answer answer;
	int result;

	if (cli_request_status(&link->out) < 0) {
		cli_complain("%s", brood_strerror(BROOD_E_MEMORY));
		return BROOD_EXIT_FAILED;
	}
	if (cli_link_open(link, options) < 0)
		return BROOD_EXIT_FAILED;
	result = cli_exchange(&exchange, &answer);
	if (result != 0 || exchange.stopped)
		return exchange.stopped ? exchange.stopped : result;
	if (answer.kind == CLI_ANSWER_ERROR)
		return cli_report_error(&answer, options->json, &exchange.out);
	return options->json ? cli_report_status_json(answer.result, &exchange.out)
			     : cli_report_status(answer.result, &exchange.out);
}

int cli_command_status(int argc, char **argv)
{
	struct cli_options options;
	struct cli_link link;
	int result = cli_options_status(argc, argv, &options), signals;

	if (result != 0 || options.help) {
		if (result == 0)
			fputs(USAGE, stdout);
		cli_options_free(&options);
		return result;
	}
	signals = cli_signals_install();
	if (signals < 0) {
		cli_complain("cannot make a pipe: %s", strerror(errno));
		result = BROOD_EXIT_FAILED;
	} else {
		cli_link_init(&link, signals);
		result = ask(&link, &options);
		cli_link_free(&link);
	}
	cli_options_free(&options);
	return result;
}
