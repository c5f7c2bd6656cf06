/*
 * Runs in:   brood
 * Trusts:    the user's intentions, not the user's spelling
 * Blocks on: nothing
 *
 * Jansson parses; the tree is then packed. An object whose only key begins with `$` is a notation, looked up in the table below.
 * Recursion is bounded by the depth that a value may have on the wire (Jansson bounds its own).
 *
 * Packing fails only for want of memory, which leaves the bytes short somewhere; so results of the packers are not looked at one by one, but
 * the whole is scanned at the end.
 */
#include "client/json_read.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base64.h"
#include "client/bigint.h"
#include "protocol/error.h"
#include "protocol/ext.h"
#include "protocol/limits.h"
#include "protocol/scan.h"

struct notation;
/* `depth` is the number of containers around the value. */
typedef int (*notation_reader)(msgpack_packer *pk, const struct notation *notation, const json_t *value, unsigned depth,
			       char *error);

struct notation {
	const char *name;
	notation_reader read;
	enum brood_ext ext;
};

static int pack_value(msgpack_packer *pk, const json_t *value, unsigned depth, char *error);

static int fail(char *error, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

static int fail(char *error, int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error, CLI_JSON_ERROR_MAX, format, args);
	va_end(args);
	return code;
}

static int fail_notation(char *error, const struct notation *notation, const char *allowed)
{
	return fail(error, BROOD_E_SYNTAX, "%s takes %s", notation->name, allowed);
}

static void pack_str(msgpack_packer *pk, const char *text, size_t len)
{
	msgpack_pack_str(pk, len);
	msgpack_pack_str_body(pk, text, len);
}

/* --- extensions that hold a value --- */

/* An extension's length stands before its payload, so that is packed apart first. */
static int pack_nested(msgpack_packer *pk, enum brood_ext ext,
		       int (*pack)(msgpack_packer *, const json_t *, unsigned, char *), const json_t *value,
		       unsigned depth, char *error)
{
	msgpack_sbuffer payload;
	msgpack_packer inner;
	int result;

	msgpack_sbuffer_init(&payload);
	msgpack_packer_init(&inner, &payload, msgpack_sbuffer_write);
	result = pack(&inner, value, depth, error);
	if (result == 0) {
		msgpack_pack_ext(pk, payload.size, (int8_t)ext);
		msgpack_pack_ext_body(pk, payload.data, payload.size);
	}
	msgpack_sbuffer_destroy(&payload);
	return result;
}

static int read_sequence(msgpack_packer *pk, const struct notation *notation, const json_t *value, unsigned depth,
			 char *error)
{
	if (!json_is_array(value))
		return fail_notation(error, notation, "an array");
	return pack_nested(pk, notation->ext, pack_value, value, depth, error);
}

static int read_moment(msgpack_packer *pk, const struct notation *notation, const json_t *value, unsigned depth,
		       char *error)
{
	if (!json_is_string(value))
		return fail_notation(error, notation, "a string in ISO format");
	return pack_nested(pk, notation->ext, pack_value, value, depth, error);
}

static int read_timedelta(msgpack_packer *pk, const struct notation *notation, const json_t *value, unsigned depth,
			  char *error)
{
	bool good = json_array_size(value) == 3;

	for (size_t i = 0; good && i < 3; i++)
		good = json_is_integer(json_array_get(value, i));
	if (!good)
		return fail_notation(error, notation, "[days, seconds, microseconds], three ints");
	return pack_nested(pk, notation->ext, pack_value, value, depth, error);
}

/* "nan", "inf" or "-inf". */
static bool special_float(const json_t *text, double *out)
{
	static const char *const NAMES[] = {"nan", "inf", "-inf"};
	static const double VALUES[] = {__builtin_nan(""), __builtin_inf(), -__builtin_inf()};

	for (size_t i = 0; json_is_string(text) && i < 3; i++) {
		if (strcmp(json_string_value(text), NAMES[i]) == 0 && json_string_length(text) == strlen(NAMES[i])) {
			*out = VALUES[i];
			return true;
		}
	}
	return false;
}

/* A part of a complex number: a number, or a `$float`. */
static bool part_of_complex(const json_t *part, double *out)
{
	if (json_object_size(part) == 1)
		return special_float(json_object_get(part, "$float"), out);
	if (!json_is_number(part))
		return false;
	*out = json_number_value(part);
	return true;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the type is that of the callbacks of pack_nested */
static int pack_complex(msgpack_packer *pk, const json_t *value, unsigned depth, char *error)
{
	double parts[2] = {0, 0};

	(void)depth;
	(void)error;
	msgpack_pack_array(pk, 2);
	for (size_t i = 0; i < 2; i++) {
		part_of_complex(json_array_get(value, i), &parts[i]);
		msgpack_pack_double(pk, parts[i]);
	}
	return 0;
}

static int read_complex(msgpack_packer *pk, const struct notation *notation, const json_t *value, unsigned depth,
			char *error)
{
	double ignored;

	if (json_array_size(value) != 2 || !part_of_complex(json_array_get(value, 0), &ignored) ||
	    !part_of_complex(json_array_get(value, 1), &ignored))
		return fail_notation(error, notation, "[real, imaginary], two numbers");
	return pack_nested(pk, notation->ext, pack_complex, value, depth, error);
}

/* --- scalars --- */

static int read_int(msgpack_packer *pk, const struct notation *notation, const json_t *value, unsigned depth,
		    char *error)
{
	int result = BROOD_E_SYNTAX;

	(void)depth;
	if (json_is_string(value))
		result = cli_bigint_pack(pk, json_string_value(value), json_string_length(value));
	if (result == BROOD_E_TOO_LARGE)
		return fail(error, BROOD_E_RANGE,
			    "$int has more than %d decimal digits; write it in hexadecimal, \"0x…\"",
			    CLI_INT_DIGITS_MAX);
	if (result == BROOD_E_MEMORY)
		return fail(error, result, "out of memory");
	return result < 0 ? fail_notation(error, notation, "a string of digits, \"-12\" or \"0x1f\"") : 0;
}

static int read_float(msgpack_packer *pk, const struct notation *notation, const json_t *value, unsigned depth,
		      char *error)
{
	double number;

	(void)depth;
	if (!special_float(value, &number))
		return fail_notation(error, notation, "\"nan\", \"inf\" or \"-inf\"");
	msgpack_pack_double(pk, number);
	return 0;
}

static int read_bytes(msgpack_packer *pk, const struct notation *notation, const json_t *value, unsigned depth,
		      char *error)
{
	size_t len = json_string_length(value);
	uint8_t *bytes;
	int result;

	(void)depth;
	if (!json_is_string(value))
		return fail_notation(error, notation, "a string in base64");
	bytes = malloc(CLI_BASE64_DECODED_MAX(len) + 1);
	if (!bytes)
		return fail(error, BROOD_E_MEMORY, "out of memory");
	result = cli_base64_decode(json_string_value(value), len, bytes, &len);
	if (result == 0) {
		msgpack_pack_bin(pk, len);
		msgpack_pack_bin_body(pk, bytes, len);
	} else {
		fail_notation(error, notation, "a string in base64, with its padding");
	}
	free(bytes);
	return result;
}

/* The UTF-16 surrogate that \uDXXX at `text` names, or -1. */
static int surrogate_at(const char *text, size_t len)
{
	char digits[5] = "", *end;
	long number;

	if (len < 6 || text[1] != 'u')
		return -1;
	memcpy(digits, text + 2, 4);
	if (strspn(digits, "0123456789abcdefABCDEF") != 4)
		return -1;
	number = strtol(digits, &end, 16);
	return number >= 0xd800 && number <= 0xdfff ? (int)number : -1;
}

/* Undoes the escapes of `$str`, in place of `out` (as long as the text). BROOD_E_SYNTAX for another escape than the two. */
static int unescape(const char *text, size_t len, char *out, size_t *out_len, bool *surrogates)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		int surrogate;

		if (text[i] != '\\') {
			out[n++] = text[i];
			continue;
		}
		if (i + 1 < len && text[i + 1] == '\\') {
			out[n++] = text[++i];
			continue;
		}
		surrogate = surrogate_at(text + i, len - i);
		if (surrogate < 0)
			return BROOD_E_SYNTAX;
		out[n++] = (char)0xed;
		out[n++] = (char)(0x80 | (surrogate >> 6 & 0x3f));
		out[n++] = (char)(0x80 | (surrogate & 0x3f));
		*surrogates = true;
		i += 5;
	}
	*out_len = n;
	return 0;
}

static int read_str(msgpack_packer *pk, const struct notation *notation, const json_t *value, unsigned depth,
		    char *error)
{
	size_t len = json_string_length(value);
	bool surrogates = false;
	char *text;
	int result;

	(void)depth;
	if (!json_is_string(value))
		return fail_notation(error, notation, "a string");
	text = malloc(len + 1);
	if (!text)
		return fail(error, BROOD_E_MEMORY, "out of memory");
	result = unescape(json_string_value(value), len, text, &len, &surrogates);
	if (result < 0) {
		fail_notation(error, notation, "a string with the escapes \\udXXX (a surrogate) and \\\\");
	} else if (surrogates) {
		msgpack_pack_ext(pk, len, BROOD_EXT_SURROGATE_STR);
		msgpack_pack_ext_body(pk, text, len);
	} else {
		pack_str(pk, text, len);
	}
	free(text);
	return result;
}

/* --- maps --- */

static int read_map(msgpack_packer *pk, const struct notation *notation, const json_t *value, unsigned depth,
		    char *error)
{
	size_t count = json_array_size(value);
	int result = 0;

	if (!json_is_array(value))
		return fail_notation(error, notation, "an array of pairs, [[key, value], …]");
	if (depth >= BROOD_NESTING_MAX)
		return fail(error, BROOD_E_TOO_DEEP, "nested deeper than %d", BROOD_NESTING_MAX);
	msgpack_pack_map(pk, count);
	for (size_t i = 0; result == 0 && i < count; i++) {
		const json_t *pair = json_array_get(value, i);

		if (json_array_size(pair) != 2)
			return fail_notation(error, notation, "an array of pairs, [[key, value], …]");
		result = pack_value(pk, json_array_get(pair, 0), depth + 1, error);
		if (result == 0)
			result = pack_value(pk, json_array_get(pair, 1), depth + 1, error);
	}
	return result;
}

static int read_refused(msgpack_packer *pk, const struct notation *notation, const json_t *value, unsigned depth,
			char *error)
{
	(void)pk;
	(void)value;
	(void)depth;
	return fail(error, BROOD_E_SYNTAX, "%s is for answers only and cannot be an input", notation->name);
}

static const struct notation NOTATIONS[] = {
	{"$int", read_int, BROOD_EXT_BIGINT},
	{"$float", read_float, 0},
	{"$bytes", read_bytes, 0},
	{"$str", read_str, BROOD_EXT_SURROGATE_STR},
	{"$tuple", read_sequence, BROOD_EXT_TUPLE},
	{"$set", read_sequence, BROOD_EXT_SET},
	{"$frozenset", read_sequence, BROOD_EXT_FROZENSET},
	{"$map", read_map, 0},
	{"$date", read_moment, BROOD_EXT_DATE},
	{"$time", read_moment, BROOD_EXT_TIME},
	{"$datetime", read_moment, BROOD_EXT_DATETIME},
	{"$timedelta", read_timedelta, BROOD_EXT_TIMEDELTA},
	{"$complex", read_complex, BROOD_EXT_COMPLEX},
	{"$typed", read_refused, BROOD_EXT_TYPED},
	{"$opaque", read_refused, BROOD_EXT_OPAQUE},
	{"$cut", read_refused, BROOD_EXT_CUT},
	{"$ext", read_refused, 0},
};

static int pack_notation(msgpack_packer *pk, const char *name, const json_t *value, unsigned depth, char *error)
{
	for (size_t i = 0; i < sizeof(NOTATIONS) / sizeof(NOTATIONS[0]); i++) {
		if (strcmp(NOTATIONS[i].name, name) == 0)
			return NOTATIONS[i].read(pk, &NOTATIONS[i], value, depth, error);
	}
	return fail(error, BROOD_E_SYNTAX,
		    "there is no notation '%.40s'; a map with such a key is written {\"$map\": [[key, value]]}", name);
}

static int pack_object(msgpack_packer *pk, const json_t *value, unsigned depth, char *error)
{
	/* The iterator's type is not const although nothing is changed through it. */
	json_t *object = (json_t *)(uintptr_t)value;
	void *at = json_object_iter(object);
	int result = 0;

	if (json_object_size(value) == 1 && json_object_iter_key(at)[0] == '$')
		return pack_notation(pk, json_object_iter_key(at), json_object_iter_value(at), depth, error);
	if (depth >= BROOD_NESTING_MAX)
		return fail(error, BROOD_E_TOO_DEEP, "nested deeper than %d", BROOD_NESTING_MAX);
	msgpack_pack_map(pk, json_object_size(value));
	for (; result == 0 && at; at = json_object_iter_next(object, at)) {
		/* Jansson refuses keys with a NUL inside, so their length is strlen's. */
		pack_str(pk, json_object_iter_key(at), strlen(json_object_iter_key(at)));
		result = pack_value(pk, json_object_iter_value(at), depth + 1, error);
	}
	return result;
}

static int pack_array(msgpack_packer *pk, const json_t *value, unsigned depth, char *error)
{
	size_t count = json_array_size(value);
	int result = 0;

	if (depth >= BROOD_NESTING_MAX)
		return fail(error, BROOD_E_TOO_DEEP, "nested deeper than %d", BROOD_NESTING_MAX);
	msgpack_pack_array(pk, count);
	for (size_t i = 0; result == 0 && i < count; i++)
		result = pack_value(pk, json_array_get(value, i), depth + 1, error);
	return result;
}

static int pack_value(msgpack_packer *pk, const json_t *value, unsigned depth, char *error)
{
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		return pack_object(pk, value, depth, error);
	case JSON_ARRAY:
		return pack_array(pk, value, depth, error);
	case JSON_STRING:
		pack_str(pk, json_string_value(value), json_string_length(value));
		break;
	case JSON_INTEGER:
		msgpack_pack_int64(pk, json_integer_value(value));
		break;
	case JSON_REAL:
		msgpack_pack_double(pk, json_real_value(value));
		break;
	case JSON_TRUE:
		msgpack_pack_true(pk);
		break;
	case JSON_FALSE:
		msgpack_pack_false(pk);
		break;
	case JSON_NULL:
		msgpack_pack_nil(pk);
		break;
	}
	return 0;
}

/* Jansson's own words, and what to do where they do not say it. */
static int fail_parse(char *error, const json_error_t *why)
{
	switch (json_error_code(why)) {
	case json_error_numeric_overflow:
		return fail(error, BROOD_E_RANGE, "%s; write a large int as {\"$int\": \"123…\"}", why->text);
	case json_error_null_byte_in_key:
		return fail(error, BROOD_E_SYNTAX,
			    "a key with a NUL in it; write the map as {\"$map\": [[key, value]]}");
	case json_error_stack_overflow:
		return fail(error, BROOD_E_TOO_DEEP, "nested deeper than %d", BROOD_NESTING_MAX);
	case json_error_out_of_memory:
		return fail(error, BROOD_E_MEMORY, "out of memory");
	case json_error_unknown:
	case json_error_cannot_open_file:
	case json_error_invalid_argument:
	case json_error_invalid_utf8:
	case json_error_premature_end_of_input:
	case json_error_end_of_input_expected:
	case json_error_invalid_syntax:
	case json_error_invalid_format:
	case json_error_wrong_type:
	case json_error_null_character:
	case json_error_null_value:
	case json_error_duplicate_key:
	case json_error_item_not_found:
	case json_error_index_out_of_range:
		break;
	}
	return fail(error, BROOD_E_SYNTAX, "not JSON: %s at position %d", why->text, why->position);
}

int cli_json_read(msgpack_sbuffer *to, const char *text, size_t len, char error[CLI_JSON_ERROR_MAX])
{
	size_t before = to->size;
	msgpack_packer pk;
	json_error_t why;
	json_t *root = json_loadb(text, len, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
	int result;

	if (!root)
		return fail_parse(error, &why);
	msgpack_packer_init(&pk, to, msgpack_sbuffer_write);
	result = pack_value(&pk, root, 0, error);
	json_decref(root);
	if (result == 0 &&
	    brood_scan_whole((const uint8_t *)to->data + before, to->size - before, BROOD_NESTING_MAX) < 0)
		result = fail(error, BROOD_E_MEMORY, "out of memory");
	if (result < 0)
		to->size = before;
	return result;
}
