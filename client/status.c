/*
 * Runs in:   brood
 * Trusts:    not the server's bytes
 * Blocks on: the server
 *
 * `brood status`: what `status` of the protocol tells, as JSON or indented for people.
 */
#include <stdio.h>
#include <stdlib.h>

#include "client/answer.h"
#include "client/command.h"
#include "client/json.h"
#include "client/link.h"
#include "client/options.h"
#include "protocol/status.h"

static const char USAGE[] = "Usage: brood status [--json] [--socket PATH]\n"
			    "\n"
			    "Shows what the supervisor behind PATH ($BROOD_SOCKET) is doing.\n";

/* [0, 1, "status", []] */
static const uint8_t REQUEST[] = {0x94, 0x00, 0x01, 0xa6, 's', 't', 'a', 't', 'u', 's', 0x90};

/* One line a leaf, maps indented. */
static int show(struct brood_reader *r, int indent)
{
	struct brood_slice key;
	uint32_t count;

	if (brood_read_map(r, &count) < 0)
		return -1;
	for (; count > 0; count--) {
		if (brood_read_str(r, &key) < 0)
			return -1;
		printf("%*s%.*s", indent, "", (int)key.len, (const char *)key.data);
		if (brood_peek(r) == BROOD_T_MAP) {
			putchar('\n');
			if (show(r, indent + 2) < 0)
				return -1;
		} else {
			fputs(": ", stdout);
			if (cli_json_write(stdout, r) < 0)
				return -1;
			putchar('\n');
		}
	}
	return 0;
}

static int show_answer(const struct cli_answer *answer, bool json)
{
	struct brood_reader r;
	int result;

	if (answer->kind == CLI_ANSWER_ERROR) {
		cli_say("%.*s", (int)answer->message.len, (const char *)answer->message.data);
		return BROOD_EXIT_FAILED;
	}
	brood_reader_init(&r, answer->result.data, answer->result.len);
	result = json ? cli_json_write(stdout, &r) : show(&r, 0);
	if (json)
		putchar('\n');
	return result < 0 || fflush(stdout) != 0 ? BROOD_EXIT_FAILED : 0;
}

int cli_status(int argc, char **argv)
{
	static struct cli_options options;
	struct cli_link link = {.in_fd = -1, .out_fd = -1, .signal_fd = -1};
	char error[CLI_ERROR_MAX];
	struct cli_answer answer;
	const uint8_t *message;
	int result = BROOD_EXIT_FAILED;
	size_t len;

	if (cli_options_status(argc, argv, getenv("BROOD_SOCKET"), &options, error) < 0) {
		cli_say("%s; try 'brood status --help'", error);
		return BROOD_EXIT_USAGE;
	}
	if (options.help) {
		fputs(USAGE, stdout);
		return 0;
	}
	if (cli_link_open(&link, &options, error) < 0)
		cli_say("%s", error);
	else if (cli_link_send(&link, REQUEST, sizeof(REQUEST)) < 0 || cli_link_next(&link, &message, &len) != CLI_MESSAGE ||
		 cli_answer_parse(message, len, &answer) < 0)
		cli_say("the server did not answer");
	else
		result = show_answer(&answer, options.json);
	cli_link_close(&link);
	return result;
}
