/*
 * The supervisor's log: one line an event on standard error, as text or as JSON.
 *
 * Text:  2026-12-01T13:41:50.123Z info  zygote default/1 is ready
 * JSON:  {"time":"2026-12-01T13:41:50.123Z","level":"info","message":"zygote default/1 is ready"}
 *
 * Bytes that are not printable ASCII or valid UTF-8 are escaped, so that nothing a peer says can forge a line or
 * drive a terminal. A line that cannot be written is dropped: the log never blocks a call for long and never fails one.
 */
#ifndef BROOD_SUPERVISOR_LOG_H
#define BROOD_SUPERVISOR_LOG_H

enum sup_log_level { SUP_LOG_DEBUG, SUP_LOG_INFO, SUP_LOG_WARNING, SUP_LOG_ERROR, SUP_LOG_LEVELS };

#define SUP_LOG_LINE_MAX 2048 /* bytes of a message; the rest is cut and marked */

/* The level or format of this name, or -1. */
int sup_log_level_by_name(const char *name);
int sup_log_format_by_name(const char *name); /* "text" 0, "json" 1 */

void sup_log_configure(enum sup_log_level least, int json);

void sup_log(enum sup_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
