/*
 * Runs in:   brood
 * Trusts:    nothing: the value comes from code that is not trusted. It is well formed by the scanner's word
 * Blocks on: the stream that is written to
 *
 * The text is written straight from the bytes; no tree is built, so a large value costs no second copy of it. Recursion is bounded by the depth that the
 * scanner allows. An extension whose payload has not the shape that its type asks for is written as one of unknown type.
 */
#include "client/json_write.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "client/base64.h"
#include "client/bigint.h"
#include "protocol/error.h"
#include "protocol/ext.h"
#include "protocol/limits.h"
#include "protocol/scan.h"

#define SAFE_INT (INT64_C(1) << 53) /* beyond it, readers that keep numbers as doubles lose digits */

static int write_value(FILE *to, struct brood_reader *r, unsigned depth);

static void write_text(FILE *to, const char *text)
{
	fputs_unlocked(text, to);
}

/* --- strings --- */

static void write_char(FILE *to, uint8_t c)
{
	static const char ESCAPES[] = "\"\"\\\\\bb\ff\nn\rr\tt";

	for (const char *escape = ESCAPES; *escape; escape += 2) {
		if ((uint8_t)escape[0] == c) {
			putc_unlocked('\\', to);
			putc_unlocked(escape[1], to);
			return;
		}
	}
	if (c < 0x20 || c == 0x7f)
		fprintf(to, "\\u%04x", c);
	else
		putc_unlocked(c, to);
}

static void write_chars(FILE *to, const uint8_t *data, size_t len)
{
	size_t plain = 0;

	for (size_t i = 0; i < len; i++) {
		if (data[i] >= 0x20 && data[i] != '"' && data[i] != '\\' && data[i] != 0x7f)
			continue;
		fwrite_unlocked(data + plain, 1, i - plain, to);
		write_char(to, data[i]);
		plain = i + 1;
	}
	fwrite_unlocked(data + plain, 1, len - plain, to);
}

void cli_json_write_str(FILE *to, struct brood_slice text)
{
	putc_unlocked('"', to);
	write_chars(to, text.data, text.len);
	putc_unlocked('"', to);
}

/* Bytes of the UTF-8 character at the start, or 0. */
static size_t utf8_char(const uint8_t *data, size_t len)
{
	size_t n = data[0] < 0x80 ? 1 : data[0] < 0xe0 ? 2 : data[0] < 0xf0 ? 3 : 4;

	return n <= len && brood_utf8_valid(data, n) ? n : 0;
}

/* A surrogate in the three bytes that Python's surrogatepass writes. */
static bool is_surrogate(const uint8_t *data, size_t len)
{
	return len >= 3 && data[0] == 0xed && data[1] >= 0xa0 && data[1] <= 0xbf && data[2] >= 0x80 && data[2] <= 0xbf;
}

static bool surrogate_str_ok(struct brood_slice text)
{
	size_t n;

	for (size_t i = 0; i < text.len; i += n) {
		n = is_surrogate(text.data + i, text.len - i) ? 3 : utf8_char(text.data + i, text.len - i);
		if (n == 0)
			return false;
	}
	return true;
}

/* The escapes of this notation stand inside a JSON string, so each of their backslashes is doubled once more. */
static void write_surrogate_str(FILE *to, struct brood_slice text)
{
	size_t n;

	write_text(to, "{\"$str\": \"");
	for (size_t i = 0; i < text.len; i += n) {
		const uint8_t *c = text.data + i;

		n = is_surrogate(c, text.len - i) ? 3 : utf8_char(c, text.len - i);
		if (is_surrogate(c, text.len - i))
			fprintf(to, "\\\\u%04x", 0xd000u | (c[1] & 0x3fu) << 6 | (c[2] & 0x3fu));
		else if (*c == '\\')
			write_text(to, "\\\\\\\\");
		else
			write_chars(to, c, n);
	}
	write_text(to, "\"}");
}

/* Output as it came from the code: bytes that are no UTF-8 are written \xNN. */
static void write_output(FILE *to, struct brood_slice bytes)
{
	size_t n;

	putc_unlocked('"', to);
	for (size_t i = 0; i < bytes.len; i += n) {
		n = utf8_char(bytes.data + i, bytes.len - i);
		if (n > 0) {
			write_chars(to, bytes.data + i, n);
		} else {
			fprintf(to, "\\\\x%02x", bytes.data[i]);
			n = 1;
		}
	}
	putc_unlocked('"', to);
}

/* --- numbers --- */

static int write_int(FILE *to, struct brood_reader *r)
{
	int64_t number;
	uint64_t large;

	if (brood_read_i64(r, &number) == 0) {
		if (number >= -SAFE_INT && number <= SAFE_INT)
			fprintf(to, "%" PRId64, number);
		else
			fprintf(to, "{\"$int\": \"%" PRId64 "\"}", number);
		return 0;
	}
	if (brood_read_u64(r, &large) < 0)
		return BROOD_E_MALFORMED;
	fprintf(to, "{\"$int\": \"%" PRIu64 "\"}", large);
	return 0;
}

static int write_float(FILE *to, struct brood_reader *r)
{
	char text[40];
	double number;

	if (brood_read_double(r, &number) < 0)
		return BROOD_E_MALFORMED;
	if (isnan(number) || isinf(number)) {
		fprintf(to, "{\"$float\": \"%s\"}", isnan(number) ? "nan" : number > 0 ? "inf" : "-inf");
		return 0;
	}
	/* The shortest of the precisions that come back as the same double; 17 digits always do. */
	for (int precision = 15; precision <= 17; precision++) {
		snprintf(text, sizeof(text), "%.*g", precision, number);
		if (strtod(text, NULL) == number)
			break;
	}
	write_text(to, text);
	if (!strpbrk(text, ".e"))
		write_text(to, ".0");
	return 0;
}

/* --- containers --- */

static int write_array(FILE *to, struct brood_reader *r, unsigned depth)
{
	uint32_t count;

	if (brood_read_array(r, &count) < 0)
		return BROOD_E_MALFORMED;
	putc_unlocked('[', to);
	for (uint32_t i = 0; i < count; i++) {
		int result;

		if (i > 0)
			write_text(to, ", ");
		result = write_value(to, r, depth);
		if (result < 0)
			return result;
	}
	putc_unlocked(']', to);
	return 0;
}

/* Whether an object can hold the map: PROTOCOL.md says which cannot. */
static bool fits_object(struct brood_reader r)
{
	struct brood_slice key;
	uint32_t count;

	if (brood_read_map(&r, &count) < 0)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		if (brood_read_str(&r, &key) < 0 || memchr(key.data, '\0', key.len) || brood_read_any(&r, NULL) < 0)
			return false;
		if (count == 1 && key.len > 0 && key.data[0] == '$')
			return false;
	}
	return true;
}

static int write_pair(FILE *to, struct brood_reader *r, bool object, unsigned depth)
{
	int result;

	if (!object)
		putc_unlocked('[', to);
	result = write_value(to, r, depth);
	write_text(to, object ? ": " : ", ");
	if (result == 0)
		result = write_value(to, r, depth);
	if (!object)
		putc_unlocked(']', to);
	return result;
}

static int write_map(FILE *to, struct brood_reader *r, unsigned depth)
{
	bool object = fits_object(*r);
	uint32_t count;

	if (brood_read_map(r, &count) < 0)
		return BROOD_E_MALFORMED;
	write_text(to, object ? "{" : "{\"$map\": [");
	for (uint32_t i = 0; i < count; i++) {
		int result;

		if (i > 0)
			write_text(to, ", ");
		result = write_pair(to, r, object, depth);
		if (result < 0)
			return result;
	}
	write_text(to, object ? "}" : "]}");
	return 0;
}

/* --- extensions --- */

/* What the payload of a nested extension must be. */
struct shape {
	const char *name;
	enum brood_type outer;
	uint32_t count;		  /* of an array; 0: any */
	enum brood_type items[2]; /* either; END: any */
};

static const struct shape SHAPES[] = {
	[BROOD_EXT_TUPLE] = {"$tuple", BROOD_T_ARRAY, 0, {BROOD_T_END, BROOD_T_END}},
	[BROOD_EXT_SET] = {"$set", BROOD_T_ARRAY, 0, {BROOD_T_END, BROOD_T_END}},
	[BROOD_EXT_FROZENSET] = {"$frozenset", BROOD_T_ARRAY, 0, {BROOD_T_END, BROOD_T_END}},
	[BROOD_EXT_DATE] = {"$date", BROOD_T_STR, 0, {BROOD_T_END, BROOD_T_END}},
	[BROOD_EXT_TIME] = {"$time", BROOD_T_STR, 0, {BROOD_T_END, BROOD_T_END}},
	[BROOD_EXT_DATETIME] = {"$datetime", BROOD_T_STR, 0, {BROOD_T_END, BROOD_T_END}},
	[BROOD_EXT_TIMEDELTA] = {"$timedelta", BROOD_T_ARRAY, 3, {BROOD_T_UINT, BROOD_T_NEGINT}},
	[BROOD_EXT_COMPLEX] = {"$complex", BROOD_T_ARRAY, 2, {BROOD_T_FLOAT, BROOD_T_FLOAT}},
	[BROOD_EXT_TYPED] = {"$typed", BROOD_T_ARRAY, 2, {BROOD_T_STR, BROOD_T_STR}},
	[BROOD_EXT_OPAQUE] = {"$opaque", BROOD_T_ARRAY, 2, {BROOD_T_STR, BROOD_T_STR}},
	[BROOD_EXT_CUT] = {"$cut", BROOD_T_ARRAY, 2, {BROOD_T_STR, BROOD_T_STR}},
};

static bool has_shape(struct brood_reader r, const struct shape *shape)
{
	uint32_t count;

	if (brood_peek(&r) != shape->outer)
		return false;
	if (shape->count == 0)
		return true;
	if (brood_read_array(&r, &count) < 0 || count != shape->count)
		return false;
	for (; count > 0; count--) {
		enum brood_type type = brood_peek(&r);

		if ((type != shape->items[0] && type != shape->items[1]) || brood_read_any(&r, NULL) < 0)
			return false;
	}
	return true;
}

static void write_unknown_ext(FILE *to, int type, struct brood_slice payload)
{
	fprintf(to, "{\"$ext\": [%d, \"", type);
	cli_base64_write(to, payload.data, payload.len);
	write_text(to, "\"]}");
}

static int write_ext(FILE *to, struct brood_reader *r, unsigned depth)
{
	struct brood_slice payload;
	struct brood_reader inside;
	int type, result;

	if (brood_read_ext(r, &type, &payload) < 0)
		return BROOD_E_MALFORMED;
	brood_reader_init(&inside, payload.data, payload.len);
	if (type == BROOD_EXT_BIGINT && payload.len > 0) {
		write_text(to, "{\"$int\": \"");
		result = cli_bigint_write(to, payload.data, payload.len);
		write_text(to, "\"}");
		return result;
	}
	if (type == BROOD_EXT_SURROGATE_STR && surrogate_str_ok(payload)) {
		write_surrogate_str(to, payload);
		return 0;
	}
	if (!brood_ext_is_nested(type) || !has_shape(inside, &SHAPES[type])) {
		write_unknown_ext(to, type, payload);
		return 0;
	}
	fprintf(to, "{\"%s\": ", SHAPES[type].name);
	result = write_value(to, &inside, depth);
	putc_unlocked('}', to);
	return result;
}

/* --- values --- */

static int write_nil(FILE *to, struct brood_reader *r)
{
	write_text(to, "null");
	return brood_read_nil(r);
}

static int write_bool(FILE *to, struct brood_reader *r)
{
	bool truth = false;
	int result = brood_read_bool(r, &truth);

	write_text(to, truth ? "true" : "false");
	return result;
}

static int write_str(FILE *to, struct brood_reader *r)
{
	struct brood_slice text;

	if (brood_read_str(r, &text) < 0)
		return BROOD_E_MALFORMED;
	cli_json_write_str(to, text);
	return 0;
}

static int write_bin(FILE *to, struct brood_reader *r)
{
	struct brood_slice bytes;

	if (brood_read_bin(r, &bytes) < 0)
		return BROOD_E_MALFORMED;
	write_text(to, "{\"$bytes\": \"");
	cli_base64_write(to, bytes.data, bytes.len);
	write_text(to, "\"}");
	return 0;
}

/* `depth` counts the calls of this function inside each other: containers, and the extensions around them. */
static int write_value(FILE *to, struct brood_reader *r, unsigned depth)
{
	if (++depth > 2 * BROOD_SCAN_DEPTH + 2)
		return BROOD_E_TOO_DEEP;
	switch (brood_peek(r)) {
	case BROOD_T_NIL:
		return write_nil(to, r);
	case BROOD_T_BOOL:
		return write_bool(to, r);
	case BROOD_T_UINT:
	case BROOD_T_NEGINT:
		return write_int(to, r);
	case BROOD_T_FLOAT:
		return write_float(to, r);
	case BROOD_T_STR:
		return write_str(to, r);
	case BROOD_T_BIN:
		return write_bin(to, r);
	case BROOD_T_ARRAY:
		return write_array(to, r, depth);
	case BROOD_T_MAP:
		return write_map(to, r, depth);
	case BROOD_T_EXT:
		return write_ext(to, r, depth);
	case BROOD_T_END:
	case BROOD_T_RESERVED:
		break;
	}
	return BROOD_E_MALFORMED;
}

int cli_json_write(FILE *to, struct brood_slice value)
{
	struct brood_reader r;

	brood_reader_init(&r, value.data, value.len);
	return write_value(to, &r, 0);
}

static int write_field(FILE *to, struct brood_reader *r)
{
	struct brood_slice key, bytes;

	if (brood_read_str(r, &key) < 0)
		return BROOD_E_MALFORMED;
	cli_json_write_str(to, key);
	write_text(to, ": ");
	if ((brood_slice_is(key, "stdout") || brood_slice_is(key, "stderr")) && brood_read_bin(r, &bytes) == 0) {
		write_output(to, bytes);
		return 0;
	}
	return write_value(to, r, 0);
}

int cli_json_write_record(FILE *to, struct brood_slice record)
{
	struct brood_reader r;
	uint32_t count;

	brood_reader_init(&r, record.data, record.len);
	if (brood_read_map(&r, &count) < 0)
		return BROOD_E_MALFORMED;
	putc_unlocked('{', to);
	for (uint32_t i = 0; i < count; i++) {
		int result;

		if (i > 0)
			write_text(to, ", ");
		result = write_field(to, &r);
		if (result < 0)
			return result;
	}
	putc_unlocked('}', to);
	return 0;
}
