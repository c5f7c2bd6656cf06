/*
 * Runs in:   broodd, brood
 * Trusts:    nothing about the text of durations and sizes
 * Blocks on: nothing
 */
#include "protocol/limits.h"

#include <string.h>
#include <strings.h>

#include "protocol/error.h"

const struct brood_limit_spec BROOD_LIMITS[BROOD_LIMIT_COUNT] = {
	[BROOD_LIMIT_WALL] = {"wall_ms", "wall", BROOD_UNIT_MS, 1, 5000, 3600 * 1000},
	[BROOD_LIMIT_CPU] = {"cpu_ms", "cpu", BROOD_UNIT_MS, 1, 5000, 3600 * 1000},
	[BROOD_LIMIT_MEMORY] = {"memory_bytes", "memory", BROOD_UNIT_BYTES, 16 * BROOD_MIB, 512 * BROOD_MIB,
				64 * BROOD_GIB},
	[BROOD_LIMIT_OUTPUT] = {"output_bytes", "output", BROOD_UNIT_BYTES, 0, 1 * BROOD_MIB, 64 * BROOD_MIB},
	[BROOD_LIMIT_VALUE] = {"value_bytes", "value", BROOD_UNIT_BYTES, 1 * BROOD_KIB, 1 * BROOD_MIB, 64 * BROOD_MIB},
};

void brood_limits_preset(struct brood_limits *out)
{
	for (int i = 0; i < BROOD_LIMIT_COUNT; i++)
		out->v[i] = BROOD_LIMITS[i].preset;
}

/* So much before the point, and six digits after it: then no product below can overflow or lose a unit. */
#define WHOLE_MAX UINT64_C(1000000000000)
#define FRACTION_DIGITS 6
#define MILLION UINT64_C(1000000)

/* A number with an optional fraction, in millionths; at least WHOLE_MAX * MILLION when it is too large. Returns what follows it, or NULL. */
static const char *parse_number(const char *text, uint64_t *millionths)
{
	uint64_t whole = 0, fraction = 0, weight = MILLION;
	const char *start = text;
	int digits;

	for (; *text >= '0' && *text <= '9'; text++) {
		if (whole < WHOLE_MAX)
			whole = whole * 10 + (uint64_t)(*text - '0');
	}
	if (text == start)
		return NULL;
	if (*text == '.') {
		digits = 0;
		for (text++; *text >= '0' && *text <= '9'; text++) {
			if (++digits > FRACTION_DIGITS)
				return NULL;
			weight /= 10;
			fraction += weight * (uint64_t)(*text - '0');
		}
		if (digits == 0)
			return NULL;
	}
	*millionths = whole * MILLION + fraction;
	return text;
}

struct suffix {
	const char *text;
	uint64_t factor;
};

static int parse(const char *text, const struct suffix *suffixes, uint64_t *out)
{
	uint64_t millionths;
	const char *rest = parse_number(text, &millionths);

	if (!rest)
		return BROOD_E_SYNTAX;
	for (; suffixes->text; suffixes++) {
		__uint128_t product = (__uint128_t)millionths * suffixes->factor / MILLION;

		if (strcasecmp(rest, suffixes->text) != 0)
			continue;
		if (millionths >= WHOLE_MAX * MILLION || product > INT64_MAX)
			return BROOD_E_RANGE;
		*out = (uint64_t)product;
		return 0;
	}
	return BROOD_E_SYNTAX;
}

int brood_parse_duration_ms(const char *text, uint64_t *out)
{
	static const struct suffix SUFFIXES[] = {{"", 1000},   {"ms", 1},      {"s", 1000},
						 {"m", 60000}, {"h", 3600000}, {NULL, 0}};

	return parse(text, SUFFIXES, out);
}

int brood_parse_size(const char *text, uint64_t *out)
{
	static const struct suffix SUFFIXES[] = {{"", 1},	    {"b", 1},		{"k", BROOD_KIB},
						 {"kb", BROOD_KIB}, {"kib", BROOD_KIB}, {"m", BROOD_MIB},
						 {"mb", BROOD_MIB}, {"mib", BROOD_MIB}, {"g", BROOD_GIB},
						 {"gb", BROOD_GIB}, {"gib", BROOD_GIB}, {NULL, 0}};

	return parse(text, SUFFIXES, out);
}
