/* The messages and records that come from broodd, taken apart. PROTOCOL.md, part 1. */
#ifndef BROOD_CLIENT_ANSWER_H
#define BROOD_CLIENT_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/reader.h"
#include "protocol/status.h"

enum cli_answer_kind {
	CLI_ANSWER_RESULT,
	CLI_ANSWER_ERROR,  /* of this request, or of the connection (id nil) */
	CLI_ANSWER_OUTPUT, /* a notification */
	CLI_ANSWER_OTHER,  /* another notification, to be ignored */
};

/* Slices point into the message. */
struct cli_answer {
	enum cli_answer_kind kind;
	struct brood_slice result;	  /* RESULT: one whole value */
	struct brood_slice code, message; /* ERROR */
	int fd;				  /* OUTPUT: 1 or 2 */
	struct brood_slice data;	  /* OUTPUT */
};

/*
 * `message` was judged by the scanner; `id` is that of our only request. Returns 0, or BROOD_E_MALFORMED for anything that the
 * protocol does not let a server say now: another id, another form.
 */
int cli_answer_parse(struct brood_slice message, uint32_t id, struct cli_answer *out);

/* What the command needs of a record. An absent text has no data. */
struct cli_record {
	enum brood_status status;
	struct brood_slice message;
	struct brood_slice repr;
	struct brood_slice traceback;
	struct brood_slice truncated; /* an array */
	int64_t exit_code;	      /* 0 when it has none */
};

/* One entry of `truncated`. */
struct cli_cut {
	struct brood_slice what, reason;
	uint64_t kept_bytes, cut_bytes;
};

/* Returns 0, BROOD_E_TYPE, BROOD_E_MISSING or BROOD_E_UNKNOWN (a status). Fields that are not known are passed over. */
int cli_record_parse(struct brood_slice record, struct cli_record *out);

/* The next entry, from a reader that stands inside the array. */
int cli_cut_read(struct brood_reader *r, struct cli_cut *out);

#endif
