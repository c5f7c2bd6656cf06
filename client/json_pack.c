/*
 * Runs in:   brood
 * Trusts:    nothing about the text, which is an argument of the command
 * Blocks on: nothing
 */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/bigint.h"
#include "client/json.h"
#include "protocol/error.h"
#include "protocol/ext.h"
#include "protocol/limits.h"

struct packer {
	msgpack_packer *pk;
	char *error;
	unsigned depth;
};

static int pack(struct packer *p, const json_t *value);

static int fail(struct packer *p, const char *what, const char *detail)
{
	snprintf(p->error, CLI_JSON_ERROR_MAX, "%s%s", what, detail);
	return -1;
}

static void pack_str(msgpack_packer *pk, const char *text, size_t len)
{
	msgpack_pack_str(pk, len);
	msgpack_pack_str_body(pk, text, len);
}

static int pack_array(struct packer *p, const json_t *array)
{
	int result = 0;

	if (++p->depth > BROOD_NESTING_MAX)
		return fail(p, "nested deeper than 64", "");
	msgpack_pack_array(p->pk, json_array_size(array));
	for (size_t i = 0; result == 0 && i < json_array_size(array); i++)
		result = pack(p, json_array_get(array, i));
	p->depth--;
	return result;
}

/* --- marks: {"$name": …} --- */

static int pack_int_mark(struct packer *p, const json_t *value)
{
	const char *text = json_string_value(value);
	uint8_t *data;
	size_t len;
	int error = text ? cli_bigint_parse(text, &data, &len) : BROOD_E_TYPE;

	if (error < 0)
		return fail(p, "$int wants a string of at most 20000 digits: ", brood_strerror(error));
	msgpack_pack_ext(p->pk, len, BROOD_EXT_BIGINT);
	msgpack_pack_ext_body(p->pk, data, len);
	free(data);
	return 0;
}

static int pack_float_mark(struct packer *p, const json_t *value)
{
	const char *text = json_string_value(value);

	if (text && strcmp(text, "nan") == 0)
		msgpack_pack_double(p->pk, NAN);
	else if (text && strcmp(text, "inf") == 0)
		msgpack_pack_double(p->pk, INFINITY);
	else if (text && strcmp(text, "-inf") == 0)
		msgpack_pack_double(p->pk, -INFINITY);
	else
		return fail(p, "$float wants \"nan\", \"inf\" or \"-inf\"", "");
	return 0;
}

static int base64_digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

static int pack_bytes_mark(struct packer *p, const json_t *value)
{
	const char *text = json_string_value(value);
	size_t len = text ? json_string_length(value) : 1, out = 0;
	uint8_t *bytes = malloc(len + 1);
	int result = -1;

	while (len > 0 && len % 4 != 1 && text && text[len - 1] == '=')
		len--;
	if (bytes && text && len % 4 != 1) {
		uint32_t group = 0;

		result = 0;
		for (size_t i = 0; i < len; i++) {
			int digit = base64_digit(text[i]);

			result |= digit < 0 ? -1 : 0;
			group = group << 6 | ((uint32_t)digit & 63);
			if (i % 4 != 0)
				bytes[out++] = (uint8_t)(group >> (6 - 2 * (i % 4)));
		}
	}
	if (result == 0) {
		msgpack_pack_bin(p->pk, out);
		msgpack_pack_bin_body(p->pk, bytes, out);
	}
	free(bytes);
	return result < 0 ? fail(p, "$bytes wants a string in base64", "") : 0;
}

/* "a\\udc80b" back to UTF-8 with surrogates of three bytes. */
static int pack_str_mark(struct packer *p, const json_t *value)
{
	const char *text = json_string_value(value);
	size_t len = text ? json_string_length(value) : 0, out = 0;
	char *bytes = malloc(len + 1);
	int result = text && bytes ? 0 : -1;

	for (size_t i = 0; result == 0 && i < len; i++) {
		unsigned code;

		if (text[i] != '\\') {
			bytes[out++] = text[i];
		} else if (i + 1 < len && text[i + 1] == '\\') {
			bytes[out++] = text[++i];
		} else if (len - i >= 6 && text[i + 1] == 'u' && sscanf(text + i + 2, "%4x", &code) == 1 && code >= 0xd800 &&
			   code <= 0xdfff) {
			bytes[out++] = (char)0xed;
			bytes[out++] = (char)(0x80 | (code >> 6 & 0x3f));
			bytes[out++] = (char)(0x80 | (code & 0x3f));
			i += 5;
		} else {
			result = -1;
		}
	}
	if (result == 0) {
		msgpack_pack_ext(p->pk, out, BROOD_EXT_SURROGATE_STR);
		msgpack_pack_ext_body(p->pk, bytes, out);
	}
	free(bytes);
	return result < 0 ? fail(p, "$str wants a string in which a backslash begins \\\\ or \\udXXX", "") : 0;
}

static int pack_map_mark(struct packer *p, const json_t *pairs)
{
	int result = 0;

	if (!json_is_array(pairs))
		return fail(p, "$map wants an array of pairs", "");
	if (++p->depth > BROOD_NESTING_MAX)
		return fail(p, "nested deeper than 64", "");
	msgpack_pack_map(p->pk, json_array_size(pairs));
	for (size_t i = 0; result == 0 && i < json_array_size(pairs); i++) {
		const json_t *pair = json_array_get(pairs, i);

		if (!json_is_array(pair) || json_array_size(pair) != 2)
			return fail(p, "$map wants an array of pairs", "");
		result = pack(p, json_array_get(pair, 0));
		if (result == 0)
			result = pack(p, json_array_get(pair, 1));
	}
	p->depth--;
	return result;
}

/* An extension whose payload is a value: packed apart first, as its length stands before it. */
static int pack_nested(struct packer *p, int type, const json_t *value)
{
	msgpack_packer *outer = p->pk, inner;
	msgpack_sbuffer payload;
	int result;

	msgpack_sbuffer_init(&payload);
	msgpack_packer_init(&inner, &payload, msgpack_sbuffer_write);
	p->pk = &inner;
	result = pack(p, value);
	p->pk = outer;
	if (result == 0) {
		msgpack_pack_ext(outer, payload.size, (int8_t)type);
		msgpack_pack_ext_body(outer, payload.data, payload.size);
	}
	msgpack_sbuffer_destroy(&payload);
	return result;
}

static int pack_complex_mark(struct packer *p, const json_t *value)
{
	json_t *parts = json_array();
	int result = -1;

	if (json_array_size(value) == 2 && json_is_number(json_array_get(value, 0)) && json_is_number(json_array_get(value, 1)) &&
	    json_array_append_new(parts, json_real(json_number_value(json_array_get(value, 0)))) == 0 &&
	    json_array_append_new(parts, json_real(json_number_value(json_array_get(value, 1)))) == 0)
		result = pack_nested(p, BROOD_EXT_COMPLEX, parts);
	else
		fail(p, "$complex wants an array of two numbers", "");
	json_decref(parts);
	return result;
}

static const struct {
	const char *name;
	int (*special)(struct packer *p, const json_t *value);
	int type; /* of an extension with a nested value */
	json_type takes;
} MARKS[] = {
	{"$int", pack_int_mark, 0, JSON_NULL},
	{"$float", pack_float_mark, 0, JSON_NULL},
	{"$bytes", pack_bytes_mark, 0, JSON_NULL},
	{"$str", pack_str_mark, 0, JSON_NULL},
	{"$map", pack_map_mark, 0, JSON_NULL},
	{"$complex", pack_complex_mark, 0, JSON_NULL},
	{"$tuple", NULL, BROOD_EXT_TUPLE, JSON_ARRAY},
	{"$set", NULL, BROOD_EXT_SET, JSON_ARRAY},
	{"$frozenset", NULL, BROOD_EXT_FROZENSET, JSON_ARRAY},
	{"$date", NULL, BROOD_EXT_DATE, JSON_STRING},
	{"$time", NULL, BROOD_EXT_TIME, JSON_STRING},
	{"$datetime", NULL, BROOD_EXT_DATETIME, JSON_STRING},
	{"$timedelta", NULL, BROOD_EXT_TIMEDELTA, JSON_ARRAY},
};

static int pack_mark(struct packer *p, const char *name, const json_t *value)
{
	for (size_t i = 0; i < sizeof(MARKS) / sizeof(MARKS[0]); i++) {
		if (strcmp(name, MARKS[i].name) != 0)
			continue;
		if (MARKS[i].special)
			return MARKS[i].special(p, value);
		if (json_typeof(value) != MARKS[i].takes)
			return fail(p, name, MARKS[i].takes == JSON_ARRAY ? " wants an array" : " wants a string");
		return pack_nested(p, MARKS[i].type, value);
	}
	return fail(p, name, " is not a mark that an input may have");
}

static int pack_object(struct packer *p, json_t *object)
{
	const char *key;
	json_t *value;
	int result = 0;

	if (json_object_size(object) == 1) {
		key = json_object_iter_key(json_object_iter(object));
		if (key[0] == '$')
			return pack_mark(p, key, json_object_get(object, key));
	}
	if (++p->depth > BROOD_NESTING_MAX)
		return fail(p, "nested deeper than 64", "");
	msgpack_pack_map(p->pk, json_object_size(object));
	json_object_foreach (object, key, value) {
		if (result == 0) {
			pack_str(p->pk, key, strlen(key));
			result = pack(p, value);
		}
	}
	p->depth--;
	return result;
}

static int pack(struct packer *p, const json_t *value)
{
	switch (json_typeof(value)) {
	case JSON_NULL:
		return msgpack_pack_nil(p->pk);
	case JSON_TRUE:
		return msgpack_pack_true(p->pk);
	case JSON_FALSE:
		return msgpack_pack_false(p->pk);
	case JSON_INTEGER:
		return msgpack_pack_int64(p->pk, json_integer_value(value));
	case JSON_REAL:
		return msgpack_pack_double(p->pk, json_real_value(value));
	case JSON_STRING:
		pack_str(p->pk, json_string_value(value), json_string_length(value));
		return 0;
	case JSON_ARRAY:
		return pack_array(p, value);
	case JSON_OBJECT:
		return pack_object(p, (json_t *)(uintptr_t)value);
	}
	return -1;
}

int cli_json_pack(msgpack_packer *pk, const char *text, char error[CLI_JSON_ERROR_MAX])
{
	struct packer p = {.pk = pk, .error = error};
	json_error_t problem;
	json_t *value = json_loads(text, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &problem);
	int result;

	if (!value) {
		snprintf(error, CLI_JSON_ERROR_MAX, "not JSON: %s (at column %d)", problem.text, problem.column);
		return -1;
	}
	result = pack(&p, value);
	json_decref(value);
	return result;
}
