/*
 * Runs in:   brood
 * Trusts:    nothing that the other side sends
 * Blocks on: the answer, without bound, as the server holds the watch; after a cancellation for GIVE_UP_MS
 */
#include "client/exchange.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>

#include "client/message.h"

#define GIVE_UP_MS 3000

/* --- cancelling --- */

/* Asks the server to end the call. Its answer is still waited for, so that nothing goes on behind the user's back. */
static void stop(struct cli_exchange *exchange, int exit_status)
{
	static const char METHOD[] = "cancel";
	msgpack_packer pk;

	if (exchange->stopped)
		return;
	exchange->stopped = exit_status;
	exchange->give_up_ms = cli_now_ms() + GIVE_UP_MS;
	msgpack_packer_init(&pk, &exchange->link->out, msgpack_sbuffer_write);
	msgpack_pack_array(&pk, 3);
	msgpack_pack_int(&pk, 2);
	msgpack_pack_str(&pk, strlen(METHOD));
	msgpack_pack_str_body(&pk, METHOD, strlen(METHOD));
	msgpack_pack_array(&pk, 1);
	msgpack_pack_int(&pk, CLI_REQUEST_ID);
}

static void on_signal(struct cli_exchange *exchange)
{
	if (!exchange->stopped)
		cli_complain("cancelled");
	stop(exchange, BROOD_EXIT_FAILED);
}

/* Standard error may be closed, like any program's; without standard output there is no use in going on. */
static void on_output(struct cli_exchange *exchange, const struct cli_answer *answer)
{
	struct cli_output *output = answer->fd == 1 ? &exchange->out : &exchange->err;

	if (!exchange->show || exchange->stopped)
		return;
	if (cli_output_write(output, answer->data.data, answer->data.len) == 0 || output != &exchange->out)
		return;
	if (output->error == EPIPE) {
		stop(exchange, CLI_EXIT_READER_GONE);
	} else if (output->error != EINTR) {
		cli_complain("cannot write to standard output: %s", strerror(output->error));
		stop(exchange, BROOD_EXIT_FAILED);
	}
}

/* --- a connection that ends --- */

static void explain_end(struct cli_link *link)
{
	int status;

	/* Its own words, if it had any, came out on our standard error. */
	cli_link_close(link);
	status = link->broodd.status;
	if (!link->is_private)
		cli_complain("broodd closed the connection before answering");
	else if (WIFSIGNALED(status))
		cli_complain("broodd ended before answering (signal %d)", WTERMSIG(status));
	else
		cli_complain("broodd ended before answering (exit status %d)", WEXITSTATUS(status));
}

/* Says why no answer will come; silently when none is wanted any more. */
static int fail(struct cli_exchange *exchange, enum cli_event event)
{
	int error = errno;

	if (exchange->stopped)
		return exchange->stopped;
	switch (event) {
	case CLI_EV_CLOSED:
		explain_end(exchange->link);
		break;
	case CLI_EV_CUT_SHORT:
		cli_complain("broodd ended the connection in the middle of its answer");
		break;
	case CLI_EV_GARBAGE:
		cli_complain("broodd sent bytes that are no message of the protocol, or too large a one");
		break;
	case CLI_EV_MESSAGE:
		cli_complain("broodd sent a message that does not belong to this request");
		break;
	case CLI_EV_FAILED:
	case CLI_EV_TIMEOUT:
	case CLI_EV_SIGNAL:
		cli_complain("the connection to broodd failed: %s", strerror(error));
		break;
	}
	return BROOD_EXIT_FAILED;
}

int cli_exchange(struct cli_exchange *exchange, struct cli_answer *answer)
{
	for (;;) {
		struct brood_slice message;
		enum cli_event event =
			cli_link_next(exchange->link, exchange->stopped ? exchange->give_up_ms : -1, &message);

		if (event == CLI_EV_SIGNAL) {
			on_signal(exchange);
			continue;
		}
		if (event != CLI_EV_MESSAGE || cli_answer_parse(message, CLI_REQUEST_ID, answer) < 0)
			return fail(exchange, event);
		if (answer->kind == CLI_ANSWER_OUTPUT)
			on_output(exchange, answer);
		else if (answer->kind != CLI_ANSWER_OTHER)
			return 0;
	}
}
