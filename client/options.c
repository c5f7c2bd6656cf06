/*
 * Runs in:   brood
 * Trusts:    the user's intentions, not the user's spelling
 * Blocks on: nothing
 */
#include "client/options.h"

#include <ctype.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "client/json_read.h"
#include "client/message.h"
#include "protocol/error.h"
#include "protocol/scan.h"
#include "protocol/status.h"

/* Options without a letter. The five limits follow each other in the order of BROOD_LIMITS. */
enum {
	OPT_LIMIT = 256,
	OPT_INPUT = OPT_LIMIT + BROOD_LIMIT_COUNT,
	OPT_PROFILE,
	OPT_JSON,
	OPT_SOCKET,
	OPT_CONFIG,
};

static const struct option RUN_OPTIONS[] = {
	{"wall", required_argument, NULL, OPT_LIMIT + BROOD_LIMIT_WALL},
	{"cpu", required_argument, NULL, OPT_LIMIT + BROOD_LIMIT_CPU},
	{"memory", required_argument, NULL, OPT_LIMIT + BROOD_LIMIT_MEMORY},
	{"output", required_argument, NULL, OPT_LIMIT + BROOD_LIMIT_OUTPUT},
	{"value", required_argument, NULL, OPT_LIMIT + BROOD_LIMIT_VALUE},
	{"input", required_argument, NULL, OPT_INPUT},
	{"profile", required_argument, NULL, OPT_PROFILE},
	{"json", no_argument, NULL, OPT_JSON},
	{"socket", required_argument, NULL, OPT_SOCKET},
	{"config", required_argument, NULL, OPT_CONFIG},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static const struct option STATUS_OPTIONS[] = {
	{"json", no_argument, NULL, OPT_JSON},
	{"socket", required_argument, NULL, OPT_SOCKET},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

/* --- limits --- */

/* The number in the largest unit that leaves no rest: "64g", "1500ms". */
static const char *format_limit(char text[32], enum brood_unit unit, uint64_t number)
{
	static const struct {
		uint64_t factor;
		const char *suffix;
	} UNITS[][4] = {
		[BROOD_UNIT_MS] = {{3600000, "h"}, {60000, "m"}, {1000, "s"}, {1, "ms"}},
		[BROOD_UNIT_BYTES] = {{BROOD_GIB, "g"}, {BROOD_MIB, "m"}, {BROOD_KIB, "k"}, {1, ""}},
	};
	size_t i = 0;

	while (number == 0 ? i < 3 : number % UNITS[unit][i].factor != 0)
		i++;
	snprintf(text, 32, "%llu%s", (unsigned long long)(number / UNITS[unit][i].factor), UNITS[unit][i].suffix);
	return text;
}

void cli_options_print_limits(FILE *to)
{
	static const char *const ABOUT[BROOD_LIMIT_COUNT] = {
		[BROOD_LIMIT_WALL] = "time from start to answer",
		[BROOD_LIMIT_CPU] = "CPU time",
		[BROOD_LIMIT_MEMORY] = "memory",
		[BROOD_LIMIT_OUTPUT] = "output kept of standard output, and of standard error",
		[BROOD_LIMIT_VALUE] = "value kept of the last expression, and of its repr",
	};

	for (int i = 0; i < BROOD_LIMIT_COUNT; i++) {
		const struct brood_limit_spec *spec = &BROOD_LIMITS[i];
		char left[40], preset[32], floor[32], ceiling[32];

		snprintf(left, sizeof(left), "--%s %s", spec->key, spec->unit == BROOD_UNIT_MS ? "TIME" : "SIZE");
		fprintf(to, "  %-20s %s: usually %s, from %s to %s\n", left, ABOUT[i],
			format_limit(preset, spec->unit, spec->preset), format_limit(floor, spec->unit, spec->floor),
			format_limit(ceiling, spec->unit, spec->ceiling));
	}
}

static int set_limit(struct cli_options *options, int i, const char *text)
{
	const struct brood_limit_spec *spec = &BROOD_LIMITS[i];
	bool is_time = spec->unit == BROOD_UNIT_MS;
	char floor[32], ceiling[32];
	uint64_t number = 0;
	int result = is_time ? brood_parse_duration_ms(text, &number) : brood_parse_size(text, &number);

	if (result < 0 || number < spec->floor || number > spec->ceiling)
		return cli_usage_error("run", "--%s %s: allowed is a %s from %s to %s", spec->key, text,
				       is_time ? "time (1500ms, 5s, 2m)" : "size (64k, 512m, 1g)",
				       format_limit(floor, spec->unit, spec->floor),
				       format_limit(ceiling, spec->unit, spec->ceiling));
	options->limits.v[i] = number;
	options->limit_given[i] = true;
	return 0;
}

/* --- inputs --- */

/* Whether Python could take it for a name. Beyond ASCII, and for its own words, Python itself judges. */
static bool name_ok(const char *name, size_t len)
{
	if (len == 0 || len > BROOD_NAME_MAX || isdigit((unsigned char)name[0]))
		return false;
	for (size_t i = 0; i < len; i++) {
		if (!isalnum((unsigned char)name[i]) && name[i] != '_' && (unsigned char)name[i] < 0x80)
			return false;
	}
	return brood_utf8_valid((const uint8_t *)name, len);
}

static bool name_taken(const struct cli_options *options, const char *name, size_t len)
{
	for (uint32_t i = 0; i < options->inputs_count; i++) {
		if (strncmp(options->input_names[i], name, len + 1) == 0)
			return true;
	}
	return false;
}

static int add_input(struct cli_options *options, const char *text)
{
	const char *equals = strchr(text, '=');
	size_t len = equals ? (size_t)(equals - text) : 0;
	char error[CLI_JSON_ERROR_MAX];
	msgpack_packer pk;
	int result;

	if (!equals)
		return cli_usage_error("run", "--input %s: allowed is NAME=JSON", text);
	if (!name_ok(text, len))
		return cli_usage_error("run", "--input %.*s: the name is not a Python identifier",
				       (int)(len < 200 ? len : 200), text);
	/* What is compared is the name with its '='. */
	if (name_taken(options, text, len))
		return cli_usage_error("run", "--input %.*s is given twice", (int)len, text);
	if (options->inputs_count == CLI_INPUTS_MAX)
		return cli_usage_error("run", "more than %d inputs", CLI_INPUTS_MAX);
	msgpack_packer_init(&pk, &options->inputs, msgpack_sbuffer_write);
	if (msgpack_pack_str(&pk, len) < 0 || msgpack_pack_str_body(&pk, text, len) < 0) {
		cli_complain("out of memory");
		return BROOD_EXIT_FAILED;
	}
	result = cli_json_read(&options->inputs, equals + 1, strlen(equals + 1), error);
	if (result < 0)
		return cli_usage_error("run", "--input %.*s: %s", (int)len, text, error);
	options->input_names[options->inputs_count++] = text;
	return 0;
}

/* --- the rest --- */

static int set_profile(struct cli_options *options, const char *text)
{
	size_t len = strlen(text);

	if (len == 0 || len > BROOD_NAME_MAX || !brood_utf8_valid((const uint8_t *)text, len))
		return cli_usage_error("run", "--profile %.200s: allowed is a name of at most %d bytes", text,
				       BROOD_NAME_MAX);
	options->profile = text;
	return 0;
}

static int set_socket(struct cli_options *options, const char *command, const char *origin, const char *text)
{
	if (text[0] == '\0' || strlen(text) >= sizeof(((struct sockaddr_un *)0)->sun_path))
		return cli_usage_error(command, "%s %.200s: allowed is a path of at most %zu bytes", origin, text,
				       sizeof(((struct sockaddr_un *)0)->sun_path) - 1);
	options->socket = text;
	return 0;
}

static int take_option(struct cli_options *options, const char *command, int option)
{
	if (option >= OPT_LIMIT && option < OPT_LIMIT + BROOD_LIMIT_COUNT)
		return set_limit(options, option - OPT_LIMIT, optarg);
	switch (option) {
	case OPT_INPUT:
		return add_input(options, optarg);
	case OPT_PROFILE:
		return set_profile(options, optarg);
	case OPT_SOCKET:
		return set_socket(options, command, "--socket", optarg);
	case OPT_CONFIG:
		options->config = optarg;
		return 0;
	case OPT_JSON:
		options->json = true;
		return 0;
	case 'c':
		options->code = optarg;
		return 0;
	case 'h':
		options->help = true;
		return 0;
	case ':':
		return cli_usage_error(command, "option '%s' needs an argument", optarg);
	default:
		return cli_usage_error(command, "unknown option '%s'", optarg);
	}
}

/* Fills `options` from the command line; operands are left at optind. */
static int parse(int argc, char **argv, const char *letters, const struct option *longs, struct cli_options *options)
{
	int option, result = 0;

	optind = 0; /* starts anew, with glibc's state too */
	opterr = 0;
	while (result == 0 && !options->help) {
		char letter[3] = "-";

		option = getopt_long(argc, argv, letters, longs, NULL);
		if (option == -1)
			break;
		if (option == '?' || option == ':') {
			/* An unknown letter is in optopt; an unknown word stands just before the next argument. */
			letter[1] = (char)optopt;
			optarg = optopt > 0 && optopt < OPT_LIMIT ? letter : argv[optind - 1];
		}
		result = take_option(options, argv[0], option);
	}
	return result;
}

/* The environment counts where the command line says nothing about the server. */
static int settle_server(struct cli_options *options, const char *command)
{
	const char *socket = getenv("BROOD_SOCKET");

	if (options->socket && options->config)
		return cli_usage_error(command, "--config is for a private broodd, so it cannot stand beside --socket");
	if (options->socket || options->config || !socket || !socket[0])
		return 0;
	return set_socket(options, command, "BROOD_SOCKET", socket);
}

int cli_options_run(int argc, char **argv, struct cli_options *out)
{
	int result;

	memset(out, 0, sizeof(*out));
	msgpack_sbuffer_init(&out->inputs);
	result = parse(argc, argv, ":c:h", RUN_OPTIONS, out);
	if (result != 0 || out->help)
		return result;
	if (optind < argc)
		out->file = argv[optind++];
	if (optind < argc)
		return cli_usage_error("run", "unexpected argument '%s'", argv[optind]);
	if (out->code && out->file)
		return cli_usage_error("run", "both -c and '%s' are given; there is one program a call", out->file);
	if (!out->code && !out->file)
		return cli_usage_error("run", "nothing to run: give -c CODE, a FILE, or - for standard input");
	return settle_server(out, "run");
}

int cli_options_status(int argc, char **argv, struct cli_options *out)
{
	int result;

	memset(out, 0, sizeof(*out));
	msgpack_sbuffer_init(&out->inputs);
	result = parse(argc, argv, ":h", STATUS_OPTIONS, out);
	if (result != 0 || out->help)
		return result;
	if (optind < argc)
		return cli_usage_error("status", "unexpected argument '%s'", argv[optind]);
	result = settle_server(out, "status");
	if (result == 0 && !out->socket)
		return cli_usage_error("status", "which broodd? Give --socket PATH, or set BROOD_SOCKET");
	return result;
}

void cli_options_free(struct cli_options *options)
{
	if (options)
		msgpack_sbuffer_destroy(&options->inputs);
}
