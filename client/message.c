/*
 * Runs in:   brood
 * Trusts:    nothing about what is quoted
 * Blocks on: standard error
 */
#include "client/message.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "protocol/scan.h"
#include "protocol/status.h"

#define TEXT_MAX 4096

static void say(const char *format, va_list args) __attribute__((format(printf, 1, 0)));

static void say(const char *format, va_list args)
{
	char text[TEXT_MAX + 1] = "brood: ";
	size_t start = strlen(text), len;

	vsnprintf(text + start, sizeof(text) - start - 1, format, args);
	len = start + brood_utf8_prefix((const uint8_t *)text + start, strlen(text + start), TEXT_MAX);
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			text[i] = ' ';
	}
	text[len++] = '\n';
	/* One write, so that lines of several processes do not mix. There is nobody to tell that standard error is closed. */
	if (write(STDERR_FILENO, text, len) < 0)
		return;
}

void cli_complain(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
}

int cli_usage_error(const char *command, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
	fprintf(stderr, "Try 'brood%s%s --help'.\n", command ? " " : "", command ? command : "");
	return BROOD_EXIT_USAGE;
}
