/* The command lines of brood run and brood status. What is said on standard error is the boundary test's matter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "client/options.h"
#include "protocol/status.h"

#define ARGS_MAX 16

static struct cli_options options;

typedef int (*parser)(int argc, char **argv, struct cli_options *out);

/* Parses the words, of which the list ends with NULL, into `options`. */
static int parse_list(parser parse, const char *first, va_list list)
{
	static char words[ARGS_MAX][512];
	char *argv[ARGS_MAX + 1];
	int argc = 0;

	for (const char *word = first; word; word = va_arg(list, const char *)) {
		assert_in_range(argc, 0, ARGS_MAX - 1);
		snprintf(words[argc], sizeof(words[argc]), "%s", word);
		argv[argc] = words[argc];
		argc++;
	}
	argv[argc] = NULL;
	cli_options_free(&options);
	return parse(argc, argv, &options);
}

static int parse_run(const char *first, ...)
{
	va_list list;
	int result;

	va_start(list, first);
	result = parse_list(cli_options_run, first, list);
	va_end(list);
	return result;
}

static int parse_status(const char *first, ...)
{
	va_list list;
	int result;

	va_start(list, first);
	result = parse_list(cli_options_status, first, list);
	va_end(list);
	return result;
}

#define RUN(...) parse_run(__VA_ARGS__, (const char *)NULL)
#define STATUS(...) parse_status(__VA_ARGS__, (const char *)NULL)

static int setup(void **state)
{
	(void)state;
	unsetenv("BROOD_SOCKET");
	memset(&options, 0, sizeof(options));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	cli_options_free(&options);
	memset(&options, 0, sizeof(options));
	return 0;
}

static void test_code_or_file(void **state)
{
	(void)state;
	assert_int_equal(RUN("run", "-c", "1+1"), 0);
	assert_string_equal(options.code, "1+1");
	assert_null(options.file);
	assert_null(options.socket);
	assert_int_equal(RUN("run", "-c", ""), 0);
	assert_string_equal(options.code, "");
	assert_int_equal(RUN("run", "a.py", "--json"), 0);
	assert_string_equal(options.file, "a.py");
	assert_true(options.json);
	assert_int_equal(RUN("run", "-"), 0);
	assert_string_equal(options.file, "-");
	assert_int_equal(RUN("run", "--", "-c"), 0);
	assert_string_equal(options.file, "-c");
	assert_int_equal(RUN("run"), BROOD_EXIT_USAGE);
	assert_int_equal(RUN("run", "a.py", "b.py"), BROOD_EXIT_USAGE);
	assert_int_equal(RUN("run", "-c", "1", "a.py"), BROOD_EXIT_USAGE);
}

static void test_limits(void **state)
{
	(void)state;
	assert_int_equal(RUN("run", "-c", "1", "--wall", "1500ms", "--memory=64m", "--output", "0"), 0);
	assert_true(options.limit_given[BROOD_LIMIT_WALL]);
	assert_int_equal(options.limits.v[BROOD_LIMIT_WALL], 1500);
	assert_int_equal(options.limits.v[BROOD_LIMIT_MEMORY], 64 * BROOD_MIB);
	assert_true(options.limit_given[BROOD_LIMIT_OUTPUT]);
	assert_int_equal(options.limits.v[BROOD_LIMIT_OUTPUT], 0);
	assert_false(options.limit_given[BROOD_LIMIT_CPU]);
	assert_false(options.limit_given[BROOD_LIMIT_VALUE]);
	assert_int_equal(RUN("run", "-c", "1", "--cpu", "1h", "--value", "1k"), 0);
	assert_int_equal(options.limits.v[BROOD_LIMIT_CPU], 3600000);
	assert_int_equal(options.limits.v[BROOD_LIMIT_VALUE], 1024);
}

static void test_limits_out_of_range(void **state)
{
	static const char *const BAD[][2] = {
		{"--wall", "0"},     {"--wall", "61m"},	  {"--wall", "5x"},   {"--wall", ""},	   {"--cpu", "-1"},
		{"--memory", "15m"}, {"--memory", "65g"}, {"--memory", "5s"}, {"--output", "65m"}, {"--value", "1023"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++)
		assert_int_equal(RUN("run", "-c", "1", BAD[i][0], BAD[i][1]), BROOD_EXIT_USAGE);
}

static void test_inputs(void **state)
{
	(void)state;
	assert_int_equal(RUN("run", "-c", "1", "--input", "n=1", "--input", "n2={\"a\": \"=\"}"), 0);
	assert_int_equal(options.inputs_count, 2);
	assert_int_equal(options.inputs.size, 11);
	assert_memory_equal(options.inputs.data,
			    "\xa1n\x01\xa2n2\x81\xa1"
			    "a\xa1=",
			    11);
	assert_int_equal(RUN("run", "-c", "1", "--input", "h\xc3\xa9=null"), 0);
}

static void test_bad_inputs(void **state)
{
	static const char *const BAD[] = {"n", "=1", "1n=1", "a b=1", "a.b=1", "n=", "n=hello", "\xff=1"};

	(void)state;
	for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++)
		assert_int_equal(RUN("run", "-c", "1", "--input", BAD[i]), BROOD_EXIT_USAGE);
	assert_int_equal(RUN("run", "-c", "1", "--input", "n=1", "--input", "n=1"), BROOD_EXIT_USAGE);
}

static void test_server(void **state)
{
	static char path[200];

	(void)state;
	assert_int_equal(RUN("run", "-c", "1", "--socket", "/s"), 0);
	assert_string_equal(options.socket, "/s");
	assert_int_equal(RUN("run", "-c", "1", "--socket", "/s", "--config", "c"), BROOD_EXIT_USAGE);
	setenv("BROOD_SOCKET", "/e", 1);
	assert_int_equal(RUN("run", "-c", "1"), 0);
	assert_string_equal(options.socket, "/e");
	assert_int_equal(RUN("run", "-c", "1", "--socket", "/s"), 0);
	assert_string_equal(options.socket, "/s");
	/* A configuration asks for a private broodd, whatever the environment says. */
	assert_int_equal(RUN("run", "-c", "1", "--config", "c"), 0);
	assert_null(options.socket);
	assert_string_equal(options.config, "c");
	setenv("BROOD_SOCKET", "", 1);
	assert_int_equal(RUN("run", "-c", "1"), 0);
	assert_null(options.socket);
	memset(path, 'p', sizeof(path) - 1);
	assert_int_equal(RUN("run", "-c", "1", "--socket", path), BROOD_EXIT_USAGE);
	path[107] = '\0';
	assert_int_equal(RUN("run", "-c", "1", "--socket", path), 0);
}

static void test_other_options(void **state)
{
	(void)state;
	assert_int_equal(RUN("run", "-c", "1", "--profile", "p"), 0);
	assert_string_equal(options.profile, "p");
	assert_int_equal(RUN("run", "-c", "1", "--profile", ""), BROOD_EXIT_USAGE);
	assert_int_equal(RUN("run", "-c", "1", "--profile", "\xff"), BROOD_EXIT_USAGE);
	assert_int_equal(RUN("run", "--help"), 0);
	assert_true(options.help);
	assert_int_equal(RUN("run", "-c", "1", "--nothing"), BROOD_EXIT_USAGE);
	assert_int_equal(RUN("run", "-c", "1", "--json=1"), BROOD_EXIT_USAGE);
	assert_int_equal(RUN("run", "-x"), BROOD_EXIT_USAGE);
	assert_int_equal(RUN("run", "-c"), BROOD_EXIT_USAGE);
	assert_int_equal(RUN("run", "-c", "1", "--wall"), BROOD_EXIT_USAGE);
}

static void test_status(void **state)
{
	(void)state;
	assert_int_equal(STATUS("status", "--socket", "/s", "--json"), 0);
	assert_string_equal(options.socket, "/s");
	assert_true(options.json);
	assert_int_equal(STATUS("status"), BROOD_EXIT_USAGE);
	assert_int_equal(STATUS("status", "--socket", "/s", "more"), BROOD_EXIT_USAGE);
	assert_int_equal(STATUS("status", "--wall", "5s"), BROOD_EXIT_USAGE);
	setenv("BROOD_SOCKET", "/e", 1);
	assert_int_equal(STATUS("status"), 0);
	assert_string_equal(options.socket, "/e");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_code_or_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_limits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_limits_out_of_range, setup, teardown),
		cmocka_unit_test_setup_teardown(test_inputs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_inputs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_server, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_options, setup, teardown),
		cmocka_unit_test_setup_teardown(test_status, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
