/* Frames between supervisor and worker. RESULT is written by hostile hands: every way to spoil it is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "protocol/messages.h"

static msgpack_sbuffer buffer;
static msgpack_packer pk;
static struct brood_limits limits;
static struct brood_result result;

static int setup(void **state)
{
	(void)state;
	msgpack_sbuffer_init(&buffer);
	msgpack_packer_init(&pk, &buffer, msgpack_sbuffer_write);
	brood_limits_preset(&limits);
	limits.v[BROOD_LIMIT_VALUE] = 1024;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	msgpack_sbuffer_destroy(&buffer);
	return 0;
}

static void again(void **state)
{
	teardown(state);
	setup(state);
}

static void text(const char *s)
{
	msgpack_pack_str(&pk, strlen(s));
	msgpack_pack_str_body(&pk, s, strlen(s));
}

/* [3, {outcome: ok, …]: `more` fields are to follow. */
static void begin(size_t more)
{
	msgpack_pack_array(&pk, 2);
	msgpack_pack_int(&pk, BROOD_W_RESULT);
	msgpack_pack_map(&pk, 1 + more);
	text("outcome"), text("ok");
}

static int parse(void)
{
	return brood_result_parse((const uint8_t *)buffer.data, buffer.size, &limits, &result);
}

static void long_text(size_t len)
{
	char *body = calloc(1, len + 1);

	memset(body, 'x', len);
	text(body);
	free(body);
}

static void pack_error(const char *a, const char *b, const char *c, const char *d)
{
	text("error");
	msgpack_pack_map(&pk, 4);
	text(a), text("ValueError");
	text(b), text("bad");
	text(c), text("Traceback …");
	text(d), msgpack_pack_int(&pk, 3);
}

static void test_a_full_result(void **state)
{
	(void)state;
	begin(5);
	text("value"), msgpack_pack_array(&pk, 1), msgpack_pack_int(&pk, 1);
	text("repr"), text("[1]");
	pack_error("type", "message", "traceback", "line");
	text("exit_code"), msgpack_pack_int(&pk, -3);
	text("truncated"), msgpack_pack_array(&pk, 1), msgpack_pack_map(&pk, 4);
	text("what"), text("repr"), text("kept_bytes"), msgpack_pack_int(&pk, 1), text("cut_bytes"),
		msgpack_pack_int(&pk, 2);
	text("reason"), text("long");
	assert_int_equal(parse(), 0);
	assert_int_equal(result.outcome, BROOD_OUT_OK);
	assert_int_equal(result.value.len, 2);
	assert_memory_equal(result.repr.data, "\xa3[1]", 4);
	assert_true(result.has_exit_code);
	assert_int_equal(result.exit_code, -3);
	assert_true(result.error.len > 10);
	assert_true(result.truncated.len > 10);
}

static void test_the_least_result_has_nils(void **state)
{
	(void)state;
	begin(0);
	assert_int_equal(parse(), 0);
	assert_memory_equal(result.value.data, "\xc0", 1);
	assert_memory_equal(result.repr.data, "\xc0", 1);
	assert_memory_equal(result.error.data, "\xc0", 1);
	assert_int_equal(result.truncated.len, 0);
	assert_false(result.has_exit_code);
}

static void test_sizes_at_and_over_the_limit(void **state)
{
	begin(2);
	text("value"), long_text(1024 - 3), text("repr"), long_text(1024);
	assert_int_equal(parse(), 0);
	again(state);
	begin(1);
	text("value"), long_text(1024 - 2);
	assert_int_equal(parse(), BROOD_E_TOO_LARGE);
	again(state);
	begin(1);
	text("repr"), long_text(1024 + 1);
	assert_int_equal(parse(), BROOD_E_TOO_LARGE);
	again(state);
	begin(1);
	text("error"), msgpack_pack_map(&pk, 4), text("type"), text("T"), text("message"),
		long_text(BROOD_ERROR_TEXT_MAX + 1);
	text("traceback"), text(""), text("line"), msgpack_pack_nil(&pk);
	assert_int_equal(parse(), BROOD_E_TOO_LARGE);
}

static void test_a_value_may_nest_so_deep_and_no_deeper(void **state)
{
	/* One level more than a value's own limit is for a mark in its innermost container. */
	for (int depth = BROOD_NESTING_MAX; depth <= BROOD_NESTING_MAX + 2; depth++) {
		again(state);
		begin(1);
		text("value");
		for (int i = 0; i < depth; i++)
			msgpack_pack_array(&pk, 1);
		msgpack_pack_nil(&pk);
		assert_int_equal(parse(), depth <= BROOD_NESTING_MAX + 1 ? 0 : BROOD_E_TOO_DEEP);
	}
}

static void pack_spoilt(int what)
{
	switch (what) {
	case 0: /* unknown field */
		begin(1), text("status"), text("ok");
		break;
	case 1: /* the same twice */
		begin(2), text("repr"), text("a"), text("repr"), text("b");
		break;
	case 2: /* a field of the error out of order */
		begin(1), pack_error("message", "type", "traceback", "line");
		break;
	case 3:
		begin(1), pack_error("type", "message", "traceback", "lines");
		break;
	case 4: /* a repr that is no text */
		begin(1), text("repr"), msgpack_pack_int(&pk, 1);
		break;
	case 5: /* an exit code that is none */
		begin(1), text("exit_code"), text("3");
		break;
	case 6:
		begin(1), text("exit_code"), msgpack_pack_uint64(&pk, UINT64_MAX);
		break;
	case 7: /* a cut of what the worker cannot cut */
		begin(1), text("truncated"), msgpack_pack_array(&pk, 1), msgpack_pack_map(&pk, 4);
		text("what"), text("stdout"), text("kept_bytes"), msgpack_pack_int(&pk, 1), text("cut_bytes"),
			msgpack_pack_int(&pk, 1);
		text("reason"), text("");
		break;
	case 8: /* no outcome */
		msgpack_pack_array(&pk, 2), msgpack_pack_int(&pk, BROOD_W_RESULT), msgpack_pack_map(&pk, 0);
		break;
	case 9: /* an outcome that is none */
		msgpack_pack_array(&pk, 2), msgpack_pack_int(&pk, BROOD_W_RESULT), msgpack_pack_map(&pk, 1);
		text("outcome"), text("timeout");
		break;
	case 10: /* something behind it */
		begin(0), msgpack_pack_nil(&pk);
		break;
	case 11: /* a third element */
		msgpack_pack_array(&pk, 3), msgpack_pack_int(&pk, BROOD_W_RESULT), msgpack_pack_map(&pk, 0),
			msgpack_pack_nil(&pk);
		break;
	case 12: /* a key that is no text */
		begin(1), msgpack_pack_int(&pk, 1), msgpack_pack_int(&pk, 1);
		break;
	case 13: /* a negative line */
		begin(1), text("error"), msgpack_pack_map(&pk, 4), text("type"), text("T"), text("message"), text("");
		text("traceback"), text(""), text("line"), msgpack_pack_int(&pk, -1);
		break;
	case 14: /* an array where the map should be */
		msgpack_pack_array(&pk, 2), msgpack_pack_int(&pk, BROOD_W_RESULT), msgpack_pack_array(&pk, 0);
		break;
	default: /* too many cuts */
		begin(1), text("truncated"), msgpack_pack_array(&pk, BROOD_TRUNCATED_MAX + 1);
		for (int i = 0; i <= BROOD_TRUNCATED_MAX; i++)
			msgpack_pack_map(&pk, 0);
		break;
	}
}

static void test_every_way_to_spoil_it_is_refused(void **state)
{
	for (int what = 0; what <= 15; what++) {
		again(state);
		pack_spoilt(what);
		result.outcome = BROOD_OUT_DENIED;
		if (parse() >= 0)
			fail_msg("case %d was accepted", what);
		assert_int_equal(result.outcome, BROOD_OUT_DENIED);
	}
}

static void test_run_round_trip(void **state)
{
	struct brood_limits got;
	struct brood_slice params;
	size_t head;

	(void)state;
	assert_int_equal(brood_run_write_head(&buffer, &limits), 0);
	head = buffer.size;
	msgpack_pack_map(&pk, 1);
	text("code"), text("1");
	assert_int_equal(brood_run_parse((const uint8_t *)buffer.data, buffer.size, &got, &params), 0);
	assert_memory_equal(&got, &limits, sizeof(got));
	assert_ptr_equal(params.data, buffer.data + head);
	assert_int_equal(params.len, buffer.size - head);
	for (size_t len = 0; len < buffer.size; len++)
		assert_true(brood_run_parse((const uint8_t *)buffer.data, len, &got, &params) < 0);
}

static void test_who_may_say_what_when(void **state)
{
	int allowed = 0;

	(void)state;
	for (int now = BROOD_WORKER_WARMING; now <= BROOD_WORKER_DONE; now++) {
		for (int type = BROOD_W_PARKED; type <= BROOD_W_RESULT; type++) {
			for (int worker = 0; worker <= 1; worker++)
				allowed += brood_worker_frame_allowed(worker, (enum brood_worker_state)now,
								      (enum brood_worker_frame)type);
		}
	}
	assert_int_equal(allowed, 3);
	assert_true(brood_worker_frame_allowed(true, BROOD_WORKER_RUNNING, BROOD_W_RESULT));
	assert_false(brood_worker_frame_allowed(true, BROOD_WORKER_DONE, BROOD_W_RESULT));
	assert_false(brood_worker_frame_allowed(true, BROOD_WORKER_RUNNING, BROOD_W_PARKED));
}

static void test_frame_types(void **state)
{
	enum brood_worker_frame type;

	(void)state;
	assert_int_equal(brood_parked_write(&buffer), 0);
	assert_int_equal(brood_worker_frame_type((const uint8_t *)buffer.data, buffer.size, &type), 0);
	assert_int_equal(type, BROOD_W_PARKED);
	assert_int_equal(brood_worker_frame_type((const uint8_t *)"\x92\x01\x01", 3, &type), BROOD_E_MALFORMED);
	assert_int_equal(brood_worker_frame_type((const uint8_t *)"\x91\x04", 2, &type), BROOD_E_UNKNOWN);
	assert_int_equal(brood_worker_frame_type((const uint8_t *)"\xc0", 1, &type), BROOD_E_TYPE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_full_result, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_least_result_has_nils, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sizes_at_and_over_the_limit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_value_may_nest_so_deep_and_no_deeper, setup, teardown),
		cmocka_unit_test_setup_teardown(test_every_way_to_spoil_it_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_run_round_trip, setup, teardown),
		cmocka_unit_test_setup_teardown(test_who_may_say_what_when, setup, teardown),
		cmocka_unit_test_setup_teardown(test_frame_types, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
