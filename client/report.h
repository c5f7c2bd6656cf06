/* Answers as the user sees them. Each function returns the exit status that the answer asks for. */
#ifndef BROOD_CLIENT_REPORT_H
#define BROOD_CLIENT_REPORT_H

#include <stdbool.h>

#include "client/answer.h"
#include "client/output.h"

/* For people: the value's repr on `out`; what was cut, the traceback or how the call was ended on standard error. */
int cli_report_record(struct brood_slice record, struct cli_output *out, struct cli_output *err);

/* For programs: the whole record on one line. */
int cli_report_record_json(struct brood_slice record, struct cli_output *out);

/* An error of the protocol: on standard error, or with `json` as an object on `out`. */
int cli_report_error(const struct cli_answer *answer, bool json, struct cli_output *out);

/* The result of `status`: one field a line, maps indented. */
int cli_report_status(struct brood_slice result, struct cli_output *out);
int cli_report_status_json(struct brood_slice result, struct cli_output *out);

#endif
