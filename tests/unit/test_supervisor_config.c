/* The configuration: every wrong line is one error that names the line and what is allowed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "protocol/layers.h"
#include "supervisor/config.h"

static char error[SUP_CONFIG_ERROR_MAX];

static struct sup_config *parse(const char *text)
{
	return sup_config_parse("test.conf", text, strlen(text), error);
}

static const struct sup_profile_config *profile(const struct sup_config *config, const char *name)
{
	return sup_config_profile(config, name, strlen(name));
}

static void test_nothing_gives_the_defaults(void **state)
{
	struct sup_config *config = parse("");

	(void)state;
	assert_non_null(config);
	assert_int_equal(config->socket_mode, 0600);
	assert_int_equal(config->profiles_count, 1);
	assert_int_equal(profile(config, "default")->limits.v[BROOD_LIMIT_WALL], 5000);
	assert_int_equal(profile(config, "default")->limits.v[BROOD_LIMIT_MEMORY], 512 * 1024 * 1024);
	assert_true(profile(config, "default")->preload_count > 10);
	sup_config_free(config);
}

static void test_every_key_is_read(void **state)
{
	struct sup_config *config =
		parse("\xef\xbb\xbf# comment\n[broodd]\nsocket = /tmp/x.sock\nsocket_mode = 0660\n"
		      "allow_users = root, 1234\nlog_level = debug\nlog_format = json\nqueue = 7\n"
		      "open_calls = 8\nclients = 9\nrequest = 1m\nnesting = 10\ngrace = 1500ms\n"
		      "zygote_path = /z\nworker_uid = 77\nworker_gid = 78\n"
		      "[profile data]\npython = /opt/venv\npreload = numpy, pandas ; both\npreload = json\n"
		      "paths = /srv/a,/srv/b\nsite_packages = yes\nenv.TZ = UTC\nwall = 2s\ncpu = 1500ms\n"
		      "memory = 1g\noutput = 64k\nvalue = 32k\nparked = 2\nworkers = 5\nzygotes = 3\n"
		      "require = seccomp, no-caps\n[profile bare]\n");
	const struct sup_profile_config *data;

	(void)state;
	if (!config)
		fail_msg("%s", error);
	assert_string_equal(config->socket, "/tmp/x.sock");
	assert_int_equal(config->socket_mode, 0660);
	assert_int_equal(config->allow_users_count, 2);
	assert_int_equal(config->allow_users[1], 1234);
	assert_int_equal(config->log_json, 1);
	assert_int_equal(config->queue, 7);
	assert_int_equal(config->open_calls, 8);
	assert_int_equal(config->clients, 9);
	assert_int_equal(config->request_bytes, 1024 * 1024);
	assert_int_equal(config->nesting, 10);
	assert_int_equal(config->grace_ms, 1500);
	assert_string_equal(config->zygote_path, "/z");
	assert_int_equal(config->worker_uid, 77);
	assert_int_equal(config->worker_gid, 78);
	assert_int_equal(config->profiles_count, 3);
	data = profile(config, "data");
	assert_string_equal(data->python, "/opt/venv");
	assert_int_equal(data->preload_count, 3);
	assert_string_equal(data->preload[2], "json");
	assert_string_equal(data->paths[1], "/srv/b");
	assert_int_equal(data->site_packages, 1);
	assert_string_equal(data->env[0].name, "TZ");
	assert_string_equal(data->env[0].value, "UTC");
	assert_int_equal(data->limits.v[BROOD_LIMIT_WALL], 2000);
	assert_int_equal(data->limits.v[BROOD_LIMIT_CPU], 1500);
	assert_int_equal(data->limits.v[BROOD_LIMIT_MEMORY], 1024 * 1024 * 1024);
	assert_int_equal(data->limits.v[BROOD_LIMIT_OUTPUT], 64 * 1024);
	assert_int_equal(data->limits.v[BROOD_LIMIT_VALUE], 32 * 1024);
	assert_int_equal(data->parked, 2);
	assert_int_equal(data->workers, 5);
	assert_int_equal(data->zygotes, 3);
	assert_int_equal(data->require, BROOD_LAYER_BIT(BROOD_LAYER_SECCOMP) | BROOD_LAYER_BIT(BROOD_LAYER_NO_CAPS));
	assert_non_null(profile(config, "bare"));
	sup_config_free(config);
}

static void test_wrong_lines_name_themselves(void **state)
{
	static const struct {
		const char *text, *line, *says;
	} WRONG[] = {
		{"x = 1\n", "test.conf:1: ", "before the first section"},
		{"[nonsense]\nx = 1\n", "test.conf:1: ", "[broodd] and [profile NAME]"},
		{"[profile ]\n", "test.conf:1: ", "NAME of at most"},
		{"[profile broodd]\n", "test.conf:1: ", "not 'broodd'"},
		{"[profile a/b]\n", "test.conf:1: ", "NAME of at most"},
		{"[broodd]\n\nspeed = 9\n", "test.conf:3: ", "unknown key 'speed'; allowed are socket,"},
		{"[profile default]\nwal = 5s\n", "test.conf:2: ", "unknown key 'wal'; allowed are python,"},
		{"[broodd]\nqueue = -1\n", "test.conf:2: ", "0 to 1048576"},
		{"[broodd]\nqueue = 1x\n", "test.conf:2: ", "0 to 1048576"},
		{"[broodd]\nqueue = 99999999999999999999999\n", "test.conf:2: ", "0 to 1048576"},
		{"[broodd]\nsocket_mode = 9\n", "test.conf:2: ", "octal"},
		{"[broodd]\nsocket_mode = 1777\n", "test.conf:2: ", "octal"},
		{"[broodd]\nlog_level = loud\n", "test.conf:2: ", "debug, info, warning or error"},
		{"[broodd]\nnesting = 65\n", "test.conf:2: ", "1 to 64"},
		{"[broodd]\nallow_users = no_such_user_here\n", "test.conf:2: ", "no user 'no_such_user_here'"},
		{"[broodd]\nqueue = 1\nqueue = 2\n", "test.conf:3: ", "given twice"},
		{"[broodd]\njust words\n", "test.conf:2: ", "neither [SECTION] nor KEY = VALUE"},
		{"[profile default]\nwall = 2h\n", "test.conf:2: ", "from 1 to 3600000 ms"},
		{"[profile default]\nwall = soon\n", "test.conf:2: ", "a time such as"},
		{"[profile default]\nmemory = 1k\n", "test.conf:2: ", "a size such as"},
		{"[profile default]\nsite_packages = maybe\n", "test.conf:2: ", "yes or no"},
		{"[profile default]\npaths = relative\n", "test.conf:2: ", "absolute"},
		{"[profile default]\npreload = os; import evil\n", "test.conf:2: ", "256 module names"},
		{"[profile default]\nrequire = magic\n", "test.conf:2: ", "seccomp"},
		{"[profile default]\nenv. = x\n", "test.conf:2: ", "env.NAME"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(WRONG) / sizeof(WRONG[0]); i++) {
		struct sup_config *config = parse(WRONG[i].text);

		if (config)
			fail_msg("accepted: %s", WRONG[i].text);
		if (strncmp(error, WRONG[i].line, strlen(WRONG[i].line)) != 0 || !strstr(error, WRONG[i].says))
			fail_msg("for %s said: %s", WRONG[i].text, error);
	}
}

static void test_a_long_line_is_an_error_and_not_two_lines(void **state)
{
	char text[1000];
	int n = snprintf(text, sizeof(text), "[broodd]\nsocket = /%0300d\nqueue = 1\n", 1);

	(void)state;
	assert_true(n > 300);
	assert_null(parse(text));
	assert_non_null(strstr(error, "test.conf:2: "));
	assert_non_null(strstr(error, "longer than"));
}

static void test_overrides_win_and_are_judged(void **state)
{
	char *good[] = {"default:wall=60s", "broodd:queue=3", "default:wall=61s"};
	char *bad[][1] = {{"default:wall"}, {"wall=5s"}, {"nope:wall=5s"}, {"default:wal=5s"}, {"default:wall=-1"}};
	struct sup_config *config = sup_config_load(NULL, good, 3, error);

	(void)state;
	assert_non_null(config);
	assert_int_equal(profile(config, "default")->limits.v[BROOD_LIMIT_WALL], 61000);
	assert_int_equal(config->queue, 3);
	sup_config_free(config);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_null(sup_config_load(NULL, bad[i], 1, error));
		assert_non_null(strstr(error, "-o "));
	}
	assert_null(sup_config_load("/no/such/file", NULL, 0, error));
	assert_non_null(strstr(error, "/no/such/file"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_gives_the_defaults),
		cmocka_unit_test(test_every_key_is_read),
		cmocka_unit_test(test_wrong_lines_name_themselves),
		cmocka_unit_test(test_a_long_line_is_an_error_and_not_two_lines),
		cmocka_unit_test(test_overrides_win_and_are_judged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
