/* What a server answered, taken apart. */
#ifndef BROOD_CLIENT_ANSWER_H
#define BROOD_CLIENT_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/reader.h"

enum cli_answer_kind {
	CLI_ANSWER_RESULT, /* `result` is the whole value */
	CLI_ANSWER_ERROR,  /* `code` and `message`; `has_id` false: it concerns the connection */
	CLI_ANSWER_OUTPUT, /* `is_stderr` and `output` */
	CLI_ANSWER_OTHER,  /* a notification that is not known */
};

struct cli_answer {
	enum cli_answer_kind kind;
	bool has_id;
	uint32_t id;
	struct brood_slice result, code, message, output;
	bool is_stderr;
};

/* Judges one whole message. 0, or a negative error when it is none of the protocol. */
int cli_answer_parse(const uint8_t *message, size_t len, struct cli_answer *out);

/* The parts of a call's record that the command shows. Slices point into it; data is NULL where a field is nil or absent. */
struct cli_record {
	int status; /* enum brood_status */
	struct brood_slice message, repr, traceback, truncated;
	bool has_exit_code;
	int64_t exit_code;
};

int cli_record_parse(struct brood_slice result, struct cli_record *out);

#endif
