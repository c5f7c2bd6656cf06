/*
 * Messages that are maps: each field absent, twice, misspelt, and of every other type, in turn. And every message cut short at every byte.
 *
 * The spoilt packets are made from a good one: its map is walked, and rebuilt with one field changed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "protocol/messages.h"

enum change { KEEP, OMIT, TWICE, MISSPELL, REPLACE };

/* A value of each type, to stand where another type belongs. */
static const struct {
	enum brood_type type;
	const char *bytes;
	size_t len;
} VALUES[] = {
	{BROOD_T_NIL, "\xc0", 1},	  {BROOD_T_BOOL, "\xc3", 1},	      {BROOD_T_UINT, "\x05", 1},
	{BROOD_T_NEGINT, "\xfb", 1},	  {BROOD_T_FLOAT, "\xca\0\0\0\0", 5}, {BROOD_T_STR, "\xa1s", 2},
	{BROOD_T_BIN, "\xc4\x01z", 3},	  {BROOD_T_ARRAY, "\x91\x01", 2},     {BROOD_T_MAP, "\x81\x01\x02", 3},
	{BROOD_T_EXT, "\xd4\x03\x90", 3},
};

#define VALUE_COUNT (sizeof(VALUES) / sizeof(VALUES[0]))

/* Appends a map: that of `r`, with field `at` changed. `with` is an index of VALUES. */
static void rebuild_map(msgpack_packer *pk, struct brood_reader *r, enum change change, uint32_t at, size_t with)
{
	struct brood_slice key, value;
	uint32_t count;

	assert_int_equal(brood_read_map(r, &count), 0);
	msgpack_pack_map(pk, count + (change == TWICE) - (change == OMIT));
	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(brood_read_any(r, &key), 0);
		assert_int_equal(brood_read_any(r, &value), 0);
		if (i == at && change == OMIT)
			continue;
		for (int times = i == at && change == TWICE ? 2 : 1; times > 0; times--) {
			if (i == at && change == MISSPELL)
				msgpack_pack_str(pk, 3), msgpack_pack_str_body(pk, "odd", 3);
			else
				pk->callback(pk->data, (const char *)key.data, key.len);
			if (i == at && change == REPLACE)
				pk->callback(pk->data, VALUES[with].bytes, VALUES[with].len);
			else
				pk->callback(pk->data, (const char *)value.data, value.len);
		}
	}
}

/* [type, map, rest…] with a field of that map changed. Returns a block of exactly its size, for the caller to free. */
static uint8_t *rebuild(const msgpack_sbuffer *good, enum change change, uint32_t at, size_t with, size_t *len)
{
	struct brood_reader r;
	msgpack_sbuffer made;
	msgpack_packer pk;
	uint32_t elements;
	uint64_t type;
	uint8_t *copy;

	msgpack_sbuffer_init(&made);
	msgpack_packer_init(&pk, &made, msgpack_sbuffer_write);
	brood_reader_init(&r, (const uint8_t *)good->data, good->size);
	assert_int_equal(brood_read_array(&r, &elements), 0);
	assert_int_equal(brood_read_u64(&r, &type), 0);
	msgpack_pack_array(&pk, elements);
	msgpack_pack_uint64(&pk, type);
	rebuild_map(&pk, &r, change, at, with);
	pk.callback(pk.data, (const char *)r.pos, (size_t)(r.end - r.pos));
	*len = made.size;
	copy = malloc(made.size);
	memcpy(copy, made.data, made.size);
	msgpack_sbuffer_destroy(&made);
	return copy;
}

/* What is to be tried with each message: how it is parsed, and which types each of its fields may have. */
typedef int parse_fn(const uint8_t *data, size_t len);

static int parse_start(const uint8_t *data, size_t len)
{
	struct brood_start start;
	int result = brood_start_parse(data, len, &start);

	if (result == 0)
		brood_start_free(&start);
	return result;
}

static int parse_ready(const uint8_t *data, size_t len)
{
	struct brood_ready ready;

	return brood_ready_parse(data, len, &ready);
}

static int parse_run(const uint8_t *data, size_t len)
{
	struct brood_limits limits;
	struct brood_slice params;

	return brood_run_parse(data, len, &limits, &params);
}

static int parse_result(const uint8_t *data, size_t len)
{
	struct brood_limits limits;
	struct brood_result result;

	brood_limits_preset(&limits);
	return brood_result_parse(data, len, &limits, &result);
}

static int parse_spoilt(const msgpack_sbuffer *good, parse_fn *parse, enum change change, uint32_t at, size_t with)
{
	size_t len;
	uint8_t *packet = rebuild(good, change, at, with, &len);
	int result = parse(packet, len);

	free(packet);
	return result;
}

/* `types[i]` is the set of types, as bits, that field i may have. `may_miss` says whether a field may be absent. */
static void try_fields(const msgpack_sbuffer *good, parse_fn *parse, const unsigned *types, uint32_t count,
		       unsigned may_miss)
{
	for (uint32_t at = 0; at < count; at++) {
		assert_int_equal(parse_spoilt(good, parse, KEEP, at, 0), 0);
		assert_int_equal(parse_spoilt(good, parse, OMIT, at, 0), may_miss & (1u << at) ? 0 : BROOD_E_MISSING);
		assert_int_equal(parse_spoilt(good, parse, TWICE, at, 0), BROOD_E_MALFORMED);
		assert_int_equal(parse_spoilt(good, parse, MISSPELL, at, 0), BROOD_E_UNKNOWN);
		for (size_t with = 0; with < VALUE_COUNT; with++) {
			int result;

			if (types[at] & (1u << VALUES[with].type))
				continue;
			result = parse_spoilt(good, parse, REPLACE, at, with);
			/* A negative number is a number all the same. */
			assert_true(result == BROOD_E_TYPE ||
				    (result == BROOD_E_RANGE && VALUES[with].type == BROOD_T_NEGINT));
		}
	}
}

static void try_truncations(const msgpack_sbuffer *good, parse_fn *parse)
{
	assert_int_equal(parse((const uint8_t *)good->data, good->size), 0);
	for (size_t len = 0; len < good->size; len++) {
		uint8_t *copy = malloc(len ? len : 1);

		memcpy(copy, good->data, len);
		assert_true(parse(copy, len) < 0);
		free(copy);
	}
}

#define UINT (1u << BROOD_T_UINT)
#define STR (1u << BROOD_T_STR)
#define BOOL (1u << BROOD_T_BOOL)
#define ARRAY (1u << BROOD_T_ARRAY)
#define MAP (1u << BROOD_T_MAP)
#define NIL (1u << BROOD_T_NIL)
#define NEGINT (1u << BROOD_T_NEGINT)
#define ANY (~0u)

static void test_start(void **state)
{
	/* In the order in which START is written. */
	static const unsigned TYPES[] = {STR, STR, ARRAY, ARRAY, MAP, BOOL, BOOL, UINT, UINT, UINT, UINT, MAP};
	static char *preload[] = {"json"}, *paths[] = {"/srv/lib"};
	static struct brood_env env[] = {{"TZ", "UTC"}};
	struct brood_start start = {.profile = "p",
				    .python = "/venv",
				    .preload = preload,
				    .preload_count = 1,
				    .paths = paths,
				    .paths_count = 1,
				    .env = env,
				    .env_count = 1,
				    .workers_max = 9};
	msgpack_sbuffer good;

	(void)state;
	brood_limits_preset(&start.limits);
	msgpack_sbuffer_init(&good);
	assert_int_equal(brood_start_write(&good, &start), 0);
	try_fields(&good, parse_start, TYPES, sizeof(TYPES) / sizeof(TYPES[0]), 0);
	try_truncations(&good, parse_start);
	msgpack_sbuffer_destroy(&good);
}

static void test_ready(void **state)
{
	static const unsigned TYPES[] = {UINT, STR, UINT, UINT, UINT};
	struct brood_ready ready = {
		.layers = 3, .python = "3.11", .base_data_bytes = 1, .base_as_bytes = 2, .start_us = 3};
	msgpack_sbuffer good;

	(void)state;
	msgpack_sbuffer_init(&good);
	assert_int_equal(brood_ready_write(&good, &ready), 0);
	try_fields(&good, parse_ready, TYPES, sizeof(TYPES) / sizeof(TYPES[0]), 0);
	try_truncations(&good, parse_ready);
	msgpack_sbuffer_destroy(&good);
}

static void test_limits_of_run(void **state)
{
	static const unsigned TYPES[BROOD_LIMIT_COUNT] = {UINT, UINT, UINT, UINT, UINT};
	struct brood_limits limits;
	msgpack_sbuffer good;

	(void)state;
	brood_limits_preset(&limits);
	msgpack_sbuffer_init(&good);
	assert_int_equal(brood_run_write_head(&good, &limits), 0);
	assert_int_equal(msgpack_sbuffer_write(&good,
					       "\x81\xa4"
					       "code\xa1"
					       "1",
					       8),
			 0);
	try_fields(&good, parse_run, TYPES, BROOD_LIMIT_COUNT, 0);
	try_truncations(&good, parse_run);
	msgpack_sbuffer_destroy(&good);
}

static void test_result(void **state)
{
	static const unsigned TYPES[] = {ANY, STR | NIL, NIL, UINT | NEGINT | NIL, STR, ARRAY};
	static const char packet[] = "\x92\x03\x86\xa5value\x93\x01\xd4\x03\x90\xc0\xa4repr\xa1r\xa5"
				     "error\x84\xa4type\xa1T\xa7message\xa0"
				     "\xa9traceback\xa0\xa4line\x01\xa9"
				     "exit_code\x03\xa7outcome\xa5"
				     "error\xa9truncated\x91\x84\xa4what\xa4"
				     "repr\xaakept_bytes\x01\xa9"
				     "cut_bytes\x02\xa6reason\xa0";
	msgpack_sbuffer good;

	(void)state;
	msgpack_sbuffer_init(&good);
	assert_int_equal(msgpack_sbuffer_write(&good, packet, sizeof(packet) - 1), 0);
	try_fields(&good, parse_result, TYPES, sizeof(TYPES) / sizeof(TYPES[0]), 0x2f);
	try_truncations(&good, parse_result);
	msgpack_sbuffer_destroy(&good);
}

/* A writer that fails appends nothing, and says whose fault it was. */
static void test_a_failed_write_leaves_no_trace(void **state)
{
	struct brood_failed failed = {.step = "import \xff", .message = "no"};
	struct brood_start start = {.profile = "p", .python = "", .workers_max = 1};
	char *paths[BROOD_PATHS_MAX];
	msgpack_sbuffer buffer;
	char *path = calloc(1, BROOD_TEXT_MAX + 1);

	(void)state;
	memset(path, 'x', BROOD_TEXT_MAX);
	for (int i = 0; i < BROOD_PATHS_MAX; i++)
		paths[i] = path;
	brood_limits_preset(&start.limits);
	start.paths = paths;
	msgpack_sbuffer_init(&buffer);
	assert_int_equal(brood_fork_write(&buffer, 7, true), 0);
	assert_int_equal(buffer.size, 4);
	assert_int_equal(brood_failed_write(&buffer, &failed), BROOD_E_UTF8);
	assert_int_equal(buffer.size, 4);
	start.paths_count = BROOD_PATHS_MAX;
	assert_int_equal(brood_start_write(&buffer, &start), BROOD_E_TOO_LARGE);
	assert_int_equal(buffer.size, 4);
	start.paths_count = 1;
	path[0] = '\xc3';
	assert_int_equal(brood_start_write(&buffer, &start), BROOD_E_UTF8);
	assert_int_equal(buffer.size, 4);
	msgpack_sbuffer_destroy(&buffer);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_start),
		cmocka_unit_test(test_ready),
		cmocka_unit_test(test_limits_of_run),
		cmocka_unit_test(test_result),
		cmocka_unit_test(test_a_failed_write_leaves_no_trace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
