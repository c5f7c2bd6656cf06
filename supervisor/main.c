/*
 * Runs in:   broodd
 * Trusts:    its command line and its configuration
 * Blocks on: nothing
 *
 * Exit status: 0 stopped as told, 1 could not start (one line says why), 2 usage.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <libgen.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "brood_version.h"
#include "supervisor/log.h"
#include "supervisor/run.h"

#define OVERRIDES_MAX 128

#ifndef BROOD_LIBEXEC_RELATIVE
#define BROOD_LIBEXEC_RELATIVE "../libexec/brood"
#endif

static const char USAGE[] =
	"Usage: broodd (--socket PATH | --stdio) [options]\n"
	"\n"
	"Keeps pools of started, locked Python processes and runs one call in each.\n"
	"\n"
	"  --socket PATH        listen on a unix socket\n"
	"  --stdio              serve one client on standard input and output\n"
	"  --config FILE        read the configuration; see brood.conf(5)\n"
	"  -o SECTION:KEY=VALUE set a key as the configuration would; SECTION is broodd or a profile's name\n"
	"  --log-level LEVEL    debug, info, warning or error\n"
	"  --log-format FORMAT  text or json\n"
	"  --check-config       read the configuration, say whether it is good, and exit\n"
	"  --limits             print every limit with its default and its range, and exit\n"
	"  --version, --help\n";

struct options {
	const char *config;
	char *overrides[OVERRIDES_MAX];
	size_t overrides_count;
	bool stdio, socket, check_config;
};

static _Noreturn void usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

static _Noreturn void usage(const char *format, ...)
{
	va_list args;

	fputs("broodd: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputs("\nTry 'broodd --help'.\n", stderr);
	exit(2);
}

static void override(struct options *options, const char *prefix, const char *value)
{
	char *text;

	if (options->overrides_count == OVERRIDES_MAX)
		usage("more than 128 overrides: %s", value);
	if (asprintf(&text, "%s%s", prefix, value) < 0) {
		fputs("broodd: out of memory\n", stderr);
		exit(1);
	}
	options->overrides[options->overrides_count++] = text;
}

static void free_overrides(struct options *options)
{
	while (options->overrides_count > 0)
		free(options->overrides[--options->overrides_count]);
}

static void print_limits(void)
{
	printf("%-24s %14s %14s %14s\n", "limit of a call", "default", "least", "most");
	for (int i = 0; i < BROOD_LIMIT_COUNT; i++) {
		const struct brood_limit_spec *spec = &BROOD_LIMITS[i];

		printf("%-24s %14llu %14llu %14llu\n", spec->field, (unsigned long long)spec->preset,
		       (unsigned long long)spec->floor, (unsigned long long)spec->ceiling);
	}
	printf("%-24s %14llu %14d %14llu\n", "request (bytes)", (unsigned long long)BROOD_REQUEST_PRESET, 1024,
	       (unsigned long long)BROOD_REQUEST_CEILING);
	printf("%-24s %14d %14d %14d\n", "nesting (containers)", BROOD_NESTING_MAX, 1, BROOD_NESTING_MAX);
	printf("%-24s %14d %14d %14d\n", "open_calls (a client)", BROOD_OPEN_CALLS_PRESET, 1, BROOD_OPEN_CALLS_CEILING);
	printf("%-24s %14d %14d %14d\n", "queue (calls)", BROOD_QUEUE_PRESET, 0, BROOD_QUEUE_CEILING);
	printf("%-24s %14d %14d %14d\n", "clients (connections)", BROOD_CLIENTS_PRESET, 1, BROOD_CLIENTS_CEILING);
}

static void parse_options(int argc, char **argv, struct options *options)
{
	enum { SOCKET = 256, STDIO, CONFIG, LOG_LEVEL, LOG_FORMAT, CHECK, LIMITS, VERSION, HELP };
	static const struct option LONG[] = {{"socket", required_argument, NULL, SOCKET},
					     {"stdio", no_argument, NULL, STDIO},
					     {"config", required_argument, NULL, CONFIG},
					     {"log-level", required_argument, NULL, LOG_LEVEL},
					     {"log-format", required_argument, NULL, LOG_FORMAT},
					     {"check-config", no_argument, NULL, CHECK},
					     {"limits", no_argument, NULL, LIMITS},
					     {"version", no_argument, NULL, VERSION},
					     {"help", no_argument, NULL, HELP},
					     {NULL, 0, NULL, 0}};
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":o:", LONG, NULL)) != -1) {
		switch (c) {
		case SOCKET:
			options->socket = true;
			override(options, "broodd:socket=", optarg);
			break;
		case STDIO:
			options->stdio = true;
			break;
		case CONFIG:
			options->config = optarg;
			break;
		case 'o':
			override(options, "", optarg);
			break;
		case LOG_LEVEL:
			override(options, "broodd:log_level=", optarg);
			break;
		case LOG_FORMAT:
			override(options, "broodd:log_format=", optarg);
			break;
		case CHECK:
			options->check_config = true;
			break;
		case LIMITS:
			print_limits();
			exit(0);
		case VERSION:
			puts("broodd " BROOD_VERSION);
			exit(0);
		case HELP:
			fputs(USAGE, stdout);
			exit(0);
		case ':':
			usage("option '%s' needs an argument", argv[optind - 1]);
		default:
			usage("unknown option '%s'", argv[optind - 1]);
		}
	}
	if (optind < argc)
		usage("unexpected argument '%s'", argv[optind]);
}

static _Noreturn void fail(const char *text)
{
	fprintf(stderr, "broodd: %s\n", text);
	exit(1);
}

/* Where brood-zygote lies: as configured, or beside this program (build tree), or in ../libexec/brood (installed). */
static void find_zygote(struct sup_server *server)
{
	static const char *const PLACES[] = {"", BROOD_LIBEXEC_RELATIVE "/"};
	char self[PATH_MAX], text[PATH_MAX + 128];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	const char *directory;

	if (server->config->zygote_path[0]) {
		snprintf(server->zygote_path, sizeof(server->zygote_path), "%s", server->config->zygote_path);
		if (access(server->zygote_path, X_OK) == 0)
			return;
		snprintf(text, sizeof(text), "zygote_path = %s cannot be executed: %s", server->zygote_path,
			 strerror(errno));
		fail(text);
	}
	self[n > 0 ? n : 0] = '\0';
	directory = dirname(self);
	for (size_t i = 0; i < sizeof(PLACES) / sizeof(PLACES[0]); i++) {
		int len = snprintf(server->zygote_path, sizeof(server->zygote_path), "%s/%sbrood-zygote", directory,
				   PLACES[i]);

		if (len > 0 && (size_t)len < sizeof(server->zygote_path) && access(server->zygote_path, X_OK) == 0)
			return;
	}
	snprintf(text, sizeof(text),
		 "brood-zygote is neither beside broodd in %.2000s nor in " BROOD_LIBEXEC_RELATIVE
		 "; set zygote_path in [broodd]",
		 directory);
	fail(text);
}

/* Each worker takes six descriptors of ours. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* 0, 1 and 2 must be something, or the next descriptor that is opened would become one of them. */
static void ensure_standard_fds(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

static bool is_regular(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

static void use_stdio(void)
{
	for (int fd = STDIN_FILENO; fd <= STDOUT_FILENO; fd++) {
		int flags = fcntl(fd, F_GETFL);

		if (flags >= 0)
			fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	}
}

int main(int argc, char **argv)
{
	char config_error[SUP_CONFIG_ERROR_MAX], error[SUP_LISTEN_ERROR_MAX];
	struct sup_server server = {0};
	struct options options = {0};
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	int result;

	ensure_standard_fds();
	parse_options(argc, argv, &options);
	server.config = sup_config_load(options.config, options.overrides, options.overrides_count, config_error);
	if (!server.config)
		fail(config_error);
	if (options.check_config) {
		puts("broodd: the configuration is good");
		sup_config_free(server.config);
		free_overrides(&options);
		return 0;
	}
	/* A `socket` in the configuration is for those who do not ask for --stdio. */
	if (options.stdio ? options.socket : server.config->socket[0] == '\0')
		usage("give either --stdio or a socket (--socket PATH, or `socket` in [broodd])");
	sup_log_configure((enum sup_log_level)server.config->log_level, server.config->log_json);
	server.config_path = options.config;
	server.overrides = options.overrides;
	server.overrides_count = options.overrides_count;
	server.stdio = options.stdio;
	server.cores = cores > 0 ? (unsigned)cores : 1;
	find_zygote(&server);
	raise_descriptor_limit();
	/* It holds what all clients sent and got: no process of the same user may look into its memory, and no core file keeps it. */
	if (prctl(PR_SET_DUMPABLE, 0) < 0)
		fail("cannot make this process unreadable to others of its user (prctl PR_SET_DUMPABLE)");
	signal(SIGPIPE, SIG_IGN);
	if (server.stdio)
		use_stdio();
	result = sup_server_run(&server, server.stdio && (is_regular(0) || is_regular(1)), error);
	sup_config_free(server.config);
	free_overrides(&options);
	if (result < 0)
		fail(error);
	return 0;
}
