/* What clients say and are told: messages taken apart, records put together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "protocol/error.h"
#include "protocol/ext.h"
#include "protocol/scan.h"
#include "supervisor/record.h"
#include "supervisor/rpc.h"

static char error[SUP_RPC_ERROR_MAX];
static msgpack_sbuffer buffer;
static msgpack_packer pk;

static int setup(void **state)
{
	(void)state;
	msgpack_sbuffer_init(&buffer);
	msgpack_packer_init(&pk, &buffer, msgpack_sbuffer_write);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	msgpack_sbuffer_destroy(&buffer);
	return 0;
}

static void text(const char *s)
{
	msgpack_pack_str(&pk, strlen(s));
	msgpack_pack_str_body(&pk, s, strlen(s));
}

static const uint8_t *bytes(void)
{
	return (const uint8_t *)buffer.data;
}

static struct brood_slice whole(void)
{
	return (struct brood_slice){bytes(), buffer.size};
}

static int parse_rpc(struct sup_rpc *rpc)
{
	assert_int_equal(brood_scan_whole(bytes(), buffer.size, BROOD_SCAN_DEPTH), 0);
	return sup_rpc_parse(bytes(), buffer.size, rpc, error);
}

static void test_a_request(void **state)
{
	struct sup_rpc rpc;

	(void)state;
	msgpack_pack_array(&pk, 4);
	msgpack_pack_int(&pk, 0);
	msgpack_pack_uint32(&pk, UINT32_MAX);
	text("status");
	msgpack_pack_array(&pk, 0);
	assert_int_equal(parse_rpc(&rpc), 0);
	assert_false(rpc.notification);
	assert_int_equal(rpc.id, UINT32_MAX);
	assert_true(brood_slice_is(rpc.method, "status"));
	assert_int_equal(sup_status_parse(rpc.params, error), 0);
}

static void test_a_notification(void **state)
{
	struct sup_rpc rpc;
	uint32_t id;

	(void)state;
	msgpack_pack_array(&pk, 3);
	msgpack_pack_int(&pk, 2);
	text("cancel");
	msgpack_pack_array(&pk, 1);
	msgpack_pack_int(&pk, 9);
	assert_int_equal(parse_rpc(&rpc), 0);
	assert_true(rpc.notification);
	assert_int_equal(sup_cancel_parse(rpc.params, &id, error), 0);
	assert_int_equal(id, 9);
}

/* One place of [0, 7, "run", []] spoilt in turn. */
static void pack_spoilt(int what)
{
	msgpack_pack_array(&pk, what == 0 ? 5 : 4);
	if (what == 1)
		text("0");
	else
		msgpack_pack_int(&pk, what == 2 ? 1 : what == 3 ? 3 : 0);
	if (what == 4)
		msgpack_pack_int(&pk, -1);
	else if (what == 5)
		msgpack_pack_uint64(&pk, (uint64_t)UINT32_MAX + 1);
	else if (what == 6)
		text("7");
	else
		msgpack_pack_int(&pk, 7);
	if (what == 7)
		msgpack_pack_nil(&pk);
	else
		text(what == 8 ? "a_method_with_a_name_that_is_far_too_long_to_be_one_of_this_protocol_at_all" : "run");
	if (what == 9)
		msgpack_pack_map(&pk, 0);
	else
		msgpack_pack_array(&pk, 0);
	if (what == 0)
		msgpack_pack_nil(&pk);
}

static void test_every_spoilt_message_is_malformed(void **state)
{
	struct sup_rpc rpc;

	for (int what = 0; what <= 9; what++) {
		teardown(state);
		setup(state);
		pack_spoilt(what);
		assert_int_equal(parse_rpc(&rpc), BROOD_E_MALFORMED);
		assert_true(error[0] != '\0');
	}
	teardown(state);
	setup(state);
	pack_spoilt(10);
	assert_int_equal(parse_rpc(&rpc), 0);
}

static void test_run_with_all_fields(void **state)
{
	struct brood_limits limits;
	struct sup_run run;

	(void)state;
	msgpack_pack_array(&pk, 1);
	msgpack_pack_map(&pk, 6);
	text("code"), text("1+1");
	text("name"), text("x.py");
	text("inputs"), msgpack_pack_map(&pk, 1), text("a"), msgpack_pack_int(&pk, 1);
	text("profile"), text("data");
	text("limits"), msgpack_pack_map(&pk, 2);
	text("wall_ms"), msgpack_pack_int(&pk, 100);
	text("output_bytes"), msgpack_pack_int(&pk, 0);
	text("stream"), msgpack_pack_true(&pk);
	assert_int_equal(sup_run_parse(whole(), &run, error), 0);
	assert_true(run.stream);
	assert_true(brood_slice_is(run.profile, "data"));
	assert_int_equal(run.map.len, buffer.size - 1);
	brood_limits_preset(&limits);
	assert_int_equal(sup_run_limits(&run, "data", &limits, error), 0);
	assert_int_equal(limits.v[BROOD_LIMIT_WALL], 100);
	assert_int_equal(limits.v[BROOD_LIMIT_OUTPUT], 0);
	assert_int_equal(limits.v[BROOD_LIMIT_CPU], 5000);
}

static void test_code_may_be_bytes_and_must_be_there(void **state)
{
	struct sup_run run;

	msgpack_pack_array(&pk, 1);
	msgpack_pack_map(&pk, 1);
	text("code"), msgpack_pack_bin(&pk, 1), msgpack_pack_bin_body(&pk, "\xff", 1);
	assert_int_equal(sup_run_parse(whole(), &run, error), 0);
	teardown(state);
	setup(state);
	msgpack_pack_array(&pk, 1);
	msgpack_pack_map(&pk, 0);
	assert_int_equal(sup_run_parse(whole(), &run, error), BROOD_E_MISSING);
	assert_non_null(strstr(error, "'code' is missing"));
}

static void pack_wrong_run(int what)
{
	static const char *const FIELDS[] = {"code", "name", "inputs", "profile", "limits", "stream", "codee"};

	msgpack_pack_array(&pk, what == 20 ? 2 : 1);
	if (what == 21) {
		msgpack_pack_nil(&pk);
		return;
	}
	msgpack_pack_map(&pk, what == 7 ? 2 : 1);
	if (what <= 6) { /* each field with a value that none of them takes */
		text(FIELDS[what]), msgpack_pack_double(&pk, 1.0);
	} else if (what == 7) {
		text("code"), text("1"), text("code"), text("2");
	} else if (what == 8) {
		text("inputs"), msgpack_pack_map(&pk, 1), msgpack_pack_int(&pk, 1), msgpack_pack_int(&pk, 1);
	} else if (what == 9) {
		text("limits"), msgpack_pack_map(&pk, 1), text("wall"), msgpack_pack_int(&pk, 1);
	} else if (what == 10) {
		text("limits"), msgpack_pack_map(&pk, 1), text("wall_ms"), msgpack_pack_int(&pk, -1);
	} else if (what == 11) {
		msgpack_pack_int(&pk, 1), text("x");
	} else {
		text("code"), text("1");
	}
	if (what == 20)
		msgpack_pack_nil(&pk);
}

static void test_every_wrong_run_is_refused_with_its_field(void **state)
{
	static const char *const SAYS[] = {"'code'",  "'name'", "'inputs'", "'profile'", "'limits'",  "'stream'",
					   "'codee'", "twice",	"inputs",   "'wall'",	 "'wall_ms'", "not a str"};
	struct sup_run run;

	for (int what = 0; what <= 11; what++) {
		teardown(state);
		setup(state);
		pack_wrong_run(what);
		assert_true(sup_run_parse(whole(), &run, error) < 0);
		if (!strstr(error, SAYS[what]))
			fail_msg("case %d said: %s", what, error);
	}
	for (int what = 20; what <= 21; what++) {
		teardown(state);
		setup(state);
		pack_wrong_run(what);
		assert_true(sup_run_parse(whole(), &run, error) < 0);
	}
}

static void test_a_limit_may_only_be_lowered(void **state)
{
	struct brood_limits limits;
	struct sup_run run = {0};

	(void)state;
	for (int i = 0; i < BROOD_LIMIT_COUNT; i++) {
		brood_limits_preset(&limits);
		memset(&run, 0, sizeof(run));
		run.limit_given[i] = true;
		run.limits.v[i] = limits.v[i];
		assert_int_equal(sup_run_limits(&run, "p", &limits, error), 0);
		run.limits.v[i] = limits.v[i] + 1;
		assert_int_equal(sup_run_limits(&run, "p", &limits, error), BROOD_E_RANGE);
		assert_non_null(strstr(error, BROOD_LIMITS[i].field));
		if (BROOD_LIMITS[i].floor > 0) {
			run.limits.v[i] = BROOD_LIMITS[i].floor - 1;
			assert_int_equal(sup_run_limits(&run, "p", &limits, error), BROOD_E_RANGE);
		}
	}
}

static void test_hello(void **state)
{
	uint64_t version;

	msgpack_pack_array(&pk, 1);
	msgpack_pack_map(&pk, 2);
	text("version"), msgpack_pack_int(&pk, 3);
	text("client"), text("test");
	assert_int_equal(sup_hello_parse(whole(), &version, error), 0);
	assert_int_equal(version, 3);
	teardown(state);
	setup(state);
	msgpack_pack_array(&pk, 1);
	msgpack_pack_map(&pk, 1);
	text("versoin"), msgpack_pack_int(&pk, 1);
	assert_int_equal(sup_hello_parse(whole(), &version, error), BROOD_E_UNKNOWN);
}

/* A record is one well-formed message, whatever the output was. */
static void test_records_are_well_formed(void **state)
{
	static const char *const OUTPUTS[] = {"", "plain", "\xff\xfe", "\xe2\x82\xac"};

	for (size_t i = 0; i < sizeof(OUTPUTS) / sizeof(OUTPUTS[0]); i++) {
		struct sup_record record = {
			.status = BROOD_CRASHED, .message = "bad \xff byte", .profile = "default", .signal = 11};
		struct sup_output out;

		teardown(state);
		setup(state);
		sup_output_init(&out, 3);
		assert_int_equal(sup_output_add(&out, (const uint8_t *)OUTPUTS[i], strlen(OUTPUTS[i])), 0);
		record.out = &out;
		record.layers = UINT32_MAX >> (32 - BROOD_LAYER_COUNT);
		sup_pack_record(&pk, 5, &record);
		assert_int_equal(brood_scan_whole(bytes(), buffer.size, BROOD_SCAN_DEPTH), 0);
		sup_output_free(&out);
	}
	teardown(state);
	setup(state);
	sup_pack_error(&pk, false, 0, SUP_RPC_MALFORMED, "why");
	assert_int_equal(brood_scan_whole(bytes(), buffer.size, BROOD_SCAN_DEPTH), 0);
	assert_memory_equal(buffer.data,
			    "\x94\x01\xc0\x82\xa4"
			    "code\xa9malformed\xa7message\xa3why\xc0",
			    buffer.size);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_request, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_notification, setup, teardown),
		cmocka_unit_test_setup_teardown(test_every_spoilt_message_is_malformed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_run_with_all_fields, setup, teardown),
		cmocka_unit_test_setup_teardown(test_code_may_be_bytes_and_must_be_there, setup, teardown),
		cmocka_unit_test_setup_teardown(test_every_wrong_run_is_refused_with_its_field, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_limit_may_only_be_lowered, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hello, setup, teardown),
		cmocka_unit_test_setup_teardown(test_records_are_well_formed, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
