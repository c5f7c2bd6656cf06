/* Messages between supervisor and zygote: round trips, and each part wrong in turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "protocol/messages.h"

static msgpack_sbuffer buffer;

static int setup(void **state)
{
	(void)state;
	msgpack_sbuffer_init(&buffer);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	msgpack_sbuffer_destroy(&buffer);
	return 0;
}

static const uint8_t *bytes(void)
{
	return (const uint8_t *)buffer.data;
}

static struct brood_start sample_start(void)
{
	static char *preload[] = {"json", "re"}, *paths[] = {"/srv/lib"};
	static struct brood_env env[] = {{"TZ", "UTC"}};
	struct brood_start start = {.profile = "p",
				    .python = "",
				    .preload = preload,
				    .preload_count = 2,
				    .paths = paths,
				    .paths_count = 1,
				    .env = env,
				    .env_count = 1,
				    .site_packages = true,
				    .filter = true,
				    .layers_given = 6,
				    .uid = 5,
				    .gid = 6,
				    .workers_max = 9};

	brood_limits_preset(&start.limits);
	return start;
}

static void test_start_round_trip(void **state)
{
	struct brood_start start = sample_start(), got;

	(void)state;
	assert_int_equal(brood_start_write(&buffer, &start), 0);
	assert_int_equal(brood_start_parse(bytes(), buffer.size, &got), 0);
	assert_string_equal(got.profile, "p");
	assert_string_equal(got.preload[1], "re");
	assert_string_equal(got.paths[0], "/srv/lib");
	assert_string_equal(got.env[0].name, "TZ");
	assert_string_equal(got.env[0].value, "UTC");
	assert_true(got.site_packages && got.filter);
	assert_int_equal(got.layers_given, 6);
	assert_int_equal(got.uid, 5);
	assert_int_equal(got.gid, 6);
	assert_int_equal(got.workers_max, 9);
	assert_memory_equal(&got.limits, &start.limits, sizeof(got.limits));
	brood_start_free(&got);
	brood_start_free(&got);
	brood_start_free(NULL);
}

static void test_start_out_of_range(void **state)
{
	struct brood_start got;

	for (int what = 0; what < 5; what++) {
		struct brood_start start = sample_start();

		teardown(state);
		setup(state);
		if (what == 0)
			start.workers_max = 0;
		else if (what == 1)
			start.workers_max = BROOD_WORKERS_CEILING + 1;
		else if (what == 2)
			start.limits.v[BROOD_LIMIT_WALL] = BROOD_LIMITS[BROOD_LIMIT_WALL].ceiling + 1;
		else if (what == 3)
			start.layers_given = UINT32_MAX;
		else
			start.limits.v[BROOD_LIMIT_MEMORY] = 1;
		assert_int_equal(brood_start_write(&buffer, &start), 0);
		assert_int_equal(brood_start_parse(bytes(), buffer.size, &got), BROOD_E_RANGE);
	}
}

static void test_the_small_ones_round_trip(void **state)
{
	struct brood_ready ready = {.layers = 3,
				    .python = "3.11",
				    .base_data_bytes = 1,
				    .base_as_bytes = 2,
				    .start_us = 3},
			   ready_got;
	struct brood_failed failed = {.step = "import x", .error = 2, .message = "no"}, failed_got;
	struct brood_exited exited = {.worker = UINT64_MAX,
				      .signalled = true,
				      .code = 11,
				      .cpu_us = 5,
				      .max_rss_bytes = 6},
			    exited_got;
	uint64_t worker;
	int32_t pid;
	bool warm = false;
	int error;

	assert_int_equal(brood_ready_write(&buffer, &ready), 0);
	assert_int_equal(brood_ready_parse(bytes(), buffer.size, &ready_got), 0);
	assert_memory_equal(&ready, &ready_got, sizeof(ready));
	teardown(state), setup(state);
	assert_int_equal(brood_failed_write(&buffer, &failed), 0);
	assert_int_equal(brood_failed_parse(bytes(), buffer.size, &failed_got), 0);
	assert_string_equal(failed_got.message, "no");
	assert_int_equal(failed_got.error, 2);
	teardown(state), setup(state);
	assert_int_equal(brood_exited_write(&buffer, &exited), 0);
	assert_int_equal(brood_exited_parse(bytes(), buffer.size, &exited_got), 0);
	assert_true(exited_got.worker == UINT64_MAX && exited_got.signalled && exited_got.code == 11);
	teardown(state), setup(state);
	assert_int_equal(brood_fork_write(&buffer, 7, true), 0);
	assert_int_equal(brood_fork_parse(bytes(), buffer.size, &worker, &warm), 0);
	assert_int_equal(worker, 7);
	assert_true(warm);
	teardown(state), setup(state);
	assert_int_equal(brood_forked_write(&buffer, 8, 99), 0);
	assert_int_equal(brood_forked_parse(bytes(), buffer.size, &worker, &pid), 0);
	assert_int_equal(pid, 99);
	teardown(state), setup(state);
	assert_int_equal(brood_fork_failed_write(&buffer, 9, 11), 0);
	assert_int_equal(brood_fork_failed_parse(bytes(), buffer.size, &worker, &error), 0);
	assert_int_equal(error, 11);
}

/* Every byte changed to every value, and every truncation: parsed rightly or refused, never a crash, and nothing leaks. */
static void test_spoilt_packets_are_refused_or_right(void **state)
{
	struct brood_start start = sample_start(), got;
	size_t refused = 0;

	(void)state;
	assert_int_equal(brood_start_write(&buffer, &start), 0);
	for (size_t i = 0; i < buffer.size; i++) {
		uint8_t *copy = malloc(buffer.size);

		for (int value = 0; value < 256; value += 5) {
			memcpy(copy, buffer.data, buffer.size);
			copy[i] = (uint8_t)value;
			if (brood_start_parse(copy, buffer.size, &got) == 0)
				brood_start_free(&got);
			else
				refused++;
		}
		assert_true(brood_start_parse(copy, i, &got) < 0);
		free(copy);
	}
	assert_true(refused > buffer.size * 20);
}

static void test_wrong_endings(void **state)
{
	static const struct {
		const char *packet;
		size_t len;
	} WRONG[] = {
		{"\x96\x07\x01\xa4quit\x00\x00\x00", 11}, /* neither exit nor signal */
		{"\x96\x07\x01\xa4"
		 "exit\xcd\x01\x00\x00\x00",
		 13},					    /* 256 is no exit status */
		{"\x96\x07\x01\xa6signal\x41\x00\x00", 13}, /* 65 is no signal */
		{"\x96\x07\xff\xa4"
		 "exit\x00\x00\x00",
		 11}, /* a negative worker */
		{"\x95\x07\x01\xa4"
		 "exit\x00\x00",
		 10}, /* one too few */
		{"\x96\x06\x01\xa4"
		 "exit\x00\x00\x00",
		 11}, /* another type */
	};
	struct brood_exited exited;

	(void)state;
	assert_int_equal(brood_exited_parse((const uint8_t *)"\x96\x07\x01\xa4"
							     "exit\x00\x00\x00",
					    11, &exited),
			 0);
	for (size_t i = 0; i < sizeof(WRONG) / sizeof(WRONG[0]); i++)
		assert_true(brood_exited_parse((const uint8_t *)WRONG[i].packet, WRONG[i].len, &exited) < 0);
}

static void test_who_may_say_what_when(void **state)
{
	int allowed = 0;

	(void)state;
	for (int state_now = BROOD_ZYGOTE_BORN; state_now <= BROOD_ZYGOTE_GONE; state_now++) {
		for (int type = BROOD_C_START; type <= BROOD_C_EXITED; type++) {
			for (int sender = BROOD_PEER_SUPERVISOR; sender <= BROOD_PEER_ZYGOTE; sender++)
				allowed += brood_control_allowed((enum brood_peer)sender,
								 (enum brood_zygote_state)state_now,
								 (enum brood_control)type);
		}
	}
	/* START, READY, FAILED, FORK, FORKED, FORK_FAILED, EXITED: each by one side in one state. */
	assert_int_equal(allowed, 7);
	assert_true(brood_control_allowed(BROOD_PEER_SUPERVISOR, BROOD_ZYGOTE_BORN, BROOD_C_START));
	assert_true(brood_control_allowed(BROOD_PEER_ZYGOTE, BROOD_ZYGOTE_READY, BROOD_C_EXITED));
	assert_false(brood_control_allowed(BROOD_PEER_ZYGOTE, BROOD_ZYGOTE_STARTING, BROOD_C_FORKED));
}

static void test_types(void **state)
{
	enum brood_control type;
	uint8_t *large = calloc(1, BROOD_CONTROL_MAX + 1);

	(void)state;
	assert_int_equal(brood_control_type((const uint8_t *)"\x93\x04\x01\xc3", 4, &type), 0);
	assert_int_equal(type, BROOD_C_FORK);
	assert_int_equal(brood_control_type((const uint8_t *)"\x92\x08\x01", 3, &type), BROOD_E_UNKNOWN);
	assert_int_equal(brood_control_type((const uint8_t *)"\x92\x00\x01", 3, &type), BROOD_E_UNKNOWN);
	assert_int_equal(brood_control_type((const uint8_t *)"\x90", 1, &type), BROOD_E_TYPE);
	assert_int_equal(brood_control_type((const uint8_t *)"\x80", 1, &type), BROOD_E_TYPE);
	assert_int_equal(brood_control_type((const uint8_t *)"", 0, &type), BROOD_E_MALFORMED);
	assert_int_equal(brood_control_type(large, BROOD_CONTROL_MAX + 1, &type), BROOD_E_TOO_LARGE);
	free(large);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_start_round_trip, setup, teardown),
		cmocka_unit_test_setup_teardown(test_start_out_of_range, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_small_ones_round_trip, setup, teardown),
		cmocka_unit_test_setup_teardown(test_spoilt_packets_are_refused_or_right, setup, teardown),
		cmocka_unit_test(test_wrong_endings),
		cmocka_unit_test(test_who_may_say_what_when),
		cmocka_unit_test(test_types),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
