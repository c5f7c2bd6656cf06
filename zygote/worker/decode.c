/*
 * Runs in:   a worker, on the inputs of its request
 * Trusts:    a scan by the supervisor for well-formedness and depth; its own reader for the bounds all the same
 * Blocks on: nothing
 */
#include "zygote/worker/parts.h"

#include "protocol/error.h"
#include "protocol/ext.h"
#include "protocol/limits.h"

/* Each level of nesting is at most an extension and the array inside it. */
#define DEPTH_MAX (2 * BROOD_SCAN_DEPTH)

static PyObject *decode(struct brood_reader *r, unsigned depth, PyObject *rare);

static PyObject *malformed(void)
{
	PyErr_SetString(PyExc_ValueError, "an input is malformed");
	return NULL;
}

static PyObject *decode_number(struct brood_reader *r, enum brood_type type)
{
	uint64_t positive;
	int64_t negative;
	double real;

	if (type == BROOD_T_UINT && brood_read_u64(r, &positive) == 0)
		return PyLong_FromUnsignedLongLong(positive);
	if (type == BROOD_T_NEGINT && brood_read_i64(r, &negative) == 0)
		return PyLong_FromLongLong(negative);
	if (type == BROOD_T_FLOAT && brood_read_double(r, &real) == 0)
		return PyFloat_FromDouble(real);
	return malformed();
}

static PyObject *decode_array(struct brood_reader *r, unsigned depth, PyObject *rare)
{
	PyObject *list;
	uint32_t count;

	/* Each element takes a byte at least, so the list is no larger than eight times the input. */
	if (brood_read_array(r, &count) < 0 || count > (size_t)(r->end - r->pos))
		return malformed();
	list = PyList_New((Py_ssize_t)count);
	for (uint32_t i = 0; list && i < count; i++) {
		PyObject *item = decode(r, depth + 1, rare);

		if (item)
			PyList_SET_ITEM(list, (Py_ssize_t)i, item);
		else
			Py_CLEAR(list);
	}
	return list;
}

static int decode_pair(struct brood_reader *r, unsigned depth, PyObject *rare, PyObject *dict)
{
	PyObject *key = decode(r, depth + 1, rare), *value = NULL;
	int result = -1;

	if (key)
		value = decode(r, depth + 1, rare);
	if (value)
		result = PyDict_SetItem(dict, key, value);
	Py_XDECREF(key);
	Py_XDECREF(value);
	return result;
}

static PyObject *decode_map(struct brood_reader *r, unsigned depth, PyObject *rare)
{
	PyObject *dict;
	uint32_t count;

	if (brood_read_map(r, &count) < 0)
		return malformed();
	dict = PyDict_New();
	for (; dict && count > 0; count--) {
		if (decode_pair(r, depth, rare, dict) < 0)
			Py_CLEAR(dict);
	}
	return dict;
}

/* Takes over the reference to `list`. */
static PyObject *from_list(int type, PyObject *list)
{
	PyObject *value = NULL;

	if (!list)
		return NULL;
	if (!PyList_CheckExact(list))
		malformed();
	else if (type == BROOD_EXT_TUPLE)
		value = PyList_AsTuple(list);
	else if (type == BROOD_EXT_SET)
		value = PySet_New(list);
	else if (type == BROOD_EXT_FROZENSET)
		value = PyFrozenSet_New(list);
	else if (PyList_GET_SIZE(list) == 2 && PyFloat_CheckExact(PyList_GET_ITEM(list, 0)) &&
		 PyFloat_CheckExact(PyList_GET_ITEM(list, 1)))
		value = PyComplex_FromDoubles(PyFloat_AS_DOUBLE(PyList_GET_ITEM(list, 0)),
					      PyFloat_AS_DOUBLE(PyList_GET_ITEM(list, 1)));
	else
		malformed();
	Py_DECREF(list);
	return value;
}

static PyObject *decode_bigint(struct brood_slice payload)
{
	PyObject *from_bytes = PyObject_GetAttrString((PyObject *)&PyLong_Type, "from_bytes"), *args, *options,
		 *value = NULL;

	args = Py_BuildValue("(y#s)", (const char *)payload.data, (Py_ssize_t)payload.len, "big");
	options = Py_BuildValue("{s:O}", "signed", Py_True);
	if (from_bytes && args && options)
		value = PyObject_Call(from_bytes, args, options);
	Py_XDECREF(from_bytes);
	Py_XDECREF(args);
	Py_XDECREF(options);
	return value;
}

static uint64_t big_endian(const uint8_t *data, size_t len)
{
	uint64_t value = 0;

	for (size_t i = 0; i < len; i++)
		value = value << 8 | data[i];
	return value;
}

/* MessagePack's own timestamp, in its three forms, as (seconds, nanoseconds). */
static PyObject *decode_timestamp(struct brood_slice p)
{
	uint64_t number;

	if (p.len == 4)
		return Py_BuildValue("(Ki)", (unsigned long long)big_endian(p.data, 4), 0);
	if (p.len == 8) {
		number = big_endian(p.data, 8);
		return Py_BuildValue("(KK)", (unsigned long long)(number & ((UINT64_C(1) << 34) - 1)),
				     (unsigned long long)(number >> 34));
	}
	if (p.len == 12)
		return Py_BuildValue("(LK)", (long long)(int64_t)big_endian(p.data + 4, 8),
				     (unsigned long long)big_endian(p.data, 4));
	return malformed();
}

static PyObject *decode_ext(struct brood_reader *r, unsigned depth, PyObject *rare)
{
	struct brood_slice payload;
	struct brood_reader inner;
	PyObject *value, *revived;
	int type;

	if (brood_read_ext(r, &type, &payload) < 0)
		return malformed();
	if (type == BROOD_EXT_BIGINT)
		return decode_bigint(payload);
	if (type == BROOD_EXT_SURROGATE_STR)
		return PyUnicode_Decode((const char *)payload.data, (Py_ssize_t)payload.len, "utf-8", "surrogatepass");
	brood_reader_init(&inner, payload.data, payload.len);
	if (type == BROOD_EXT_TIMESTAMP)
		value = decode_timestamp(payload);
	else if (brood_ext_is_nested(type))
		value = decode(&inner, depth + 1, rare);
	else
		value = PyBytes_FromStringAndSize((const char *)payload.data, (Py_ssize_t)payload.len);
	if (type == BROOD_EXT_TUPLE || type == BROOD_EXT_SET || type == BROOD_EXT_FROZENSET ||
	    type == BROOD_EXT_COMPLEX)
		return from_list(type, value);
	revived = value ? PyObject_CallFunction(rare, "iO", type, value) : NULL;
	Py_XDECREF(value);
	return revived;
}

static PyObject *decode(struct brood_reader *r, unsigned depth, PyObject *rare)
{
	enum brood_type type = brood_peek(r);
	struct brood_slice bytes;
	bool truth;

	if (depth > DEPTH_MAX)
		return malformed();
	switch (type) {
	case BROOD_T_NIL:
		if (brood_read_nil(r) < 0)
			break;
		Py_RETURN_NONE;
	case BROOD_T_BOOL:
		if (brood_read_bool(r, &truth) < 0)
			break;
		return PyBool_FromLong(truth);
	case BROOD_T_UINT:
	case BROOD_T_NEGINT:
	case BROOD_T_FLOAT:
		return decode_number(r, type);
	case BROOD_T_STR:
		if (brood_read_str(r, &bytes) < 0)
			break;
		return PyUnicode_DecodeUTF8((const char *)bytes.data, (Py_ssize_t)bytes.len, NULL);
	case BROOD_T_BIN:
		if (brood_read_bin(r, &bytes) < 0)
			break;
		return PyBytes_FromStringAndSize((const char *)bytes.data, (Py_ssize_t)bytes.len);
	case BROOD_T_ARRAY:
		return decode_array(r, depth, rare);
	case BROOD_T_MAP:
		return decode_map(r, depth, rare);
	case BROOD_T_EXT:
		return decode_ext(r, depth, rare);
	case BROOD_T_END:
	case BROOD_T_RESERVED:
		break;
	}
	return malformed();
}

PyObject *wrk_decode(const uint8_t *data, size_t len, PyObject *rare)
{
	struct brood_reader r;

	brood_reader_init(&r, data, len);
	return decode(&r, 0, rare);
}
