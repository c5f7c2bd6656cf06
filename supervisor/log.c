/*
 * Runs in:   broodd
 * Trusts:    nobody's text: every message is escaped before it is written
 * Blocks on: standard error, whose reader is the operator's
 */
#include "supervisor/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "protocol/scan.h"

static const char *const LEVEL_NAMES[SUP_LOG_LEVELS] = {"debug", "info", "warning", "error"};

static enum sup_log_level least_level = SUP_LOG_INFO;
static int as_json;

int sup_log_level_by_name(const char *name)
{
	for (int i = 0; i < SUP_LOG_LEVELS; i++) {
		if (strcmp(LEVEL_NAMES[i], name) == 0)
			return i;
	}
	return -1;
}

int sup_log_format_by_name(const char *name)
{
	if (strcmp(name, "text") == 0)
		return 0;
	return strcmp(name, "json") == 0 ? 1 : -1;
}

void sup_log_configure(enum sup_log_level least, int json)
{
	least_level = least;
	as_json = json;
}

/* Escapes into `to`, which has room for six bytes for each byte of `text`. Returns the length. */
static size_t escape(char *to, const char *text, size_t len)
{
	int plain_utf8 = brood_utf8_valid((const uint8_t *)text, len);
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		/* C1 controls (U+0080 to U+009F) drive terminals too: in UTF-8 they begin with 0xc2. */
		int c1 = c == 0xc2 && i + 1 < len && (unsigned char)text[i + 1] < 0xa0;

		if (as_json && (c == '"' || c == '\\')) {
			to[n++] = '\\';
			to[n++] = (char)c;
		} else if (c < 0x20 || c == 0x7f || c1 || (c >= 0x80 && !plain_utf8)) {
			n += (size_t)sprintf(to + n, as_json ? "\\u%04x" : "\\x%02x", c);
			if (c1)
				n += (size_t)sprintf(to + n, as_json ? "\\u%04x" : "\\x%02x", (unsigned char)text[++i]);
		} else {
			to[n++] = (char)c;
		}
	}
	return n;
}

static void timestamp(char *to, size_t room)
{
	struct timespec now;
	struct tm utc;
	size_t n;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc);
	n = strftime(to, room, "%Y-%m-%dT%H:%M:%S", &utc);
	snprintf(to + n, room - n, ".%03ldZ", now.tv_nsec / 1000000);
}

void sup_log(enum sup_log_level level, const char *format, ...)
{
	static const char CUT[] = " [cut]";
	static char message[SUP_LOG_LINE_MAX + sizeof(CUT)];
	static char line[6 * sizeof(message) + 128];
	char when[40];
	va_list args;
	size_t len, n;
	int wanted;

	if (level < least_level)
		return;
	va_start(args, format);
	wanted = vsnprintf(message, SUP_LOG_LINE_MAX, format, args);
	va_end(args);
	if (wanted < 0)
		return;
	len = strlen(message);
	if ((size_t)wanted > len) {
		len = brood_utf8_prefix((const uint8_t *)message, len, len);
		memcpy(message + len, CUT, sizeof(CUT));
		len += sizeof(CUT) - 1;
	}
	timestamp(when, sizeof(when));
	if (as_json)
		n = (size_t)sprintf(line, "{\"time\":\"%s\",\"level\":\"%s\",\"message\":\"", when, LEVEL_NAMES[level]);
	else
		n = (size_t)sprintf(line, "%s %-7s ", when, LEVEL_NAMES[level]);
	n += escape(line + n, message, len);
	if (as_json) {
		line[n++] = '"';
		line[n++] = '}';
	}
	line[n++] = '\n';
	/* One write, so that lines of processes that share the descriptor do not mix. */
	if (write(STDERR_FILENO, line, n) < 0)
		return;
}
