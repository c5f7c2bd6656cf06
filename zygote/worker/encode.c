/*
 * Runs in:   a worker, on values that the untrusted code made
 * Trusts:    nothing: a value may be cyclic, deep, enormous, or change while it is looked at
 * Blocks on: whatever a __repr__ blocks on
 *
 * The table of PROTOCOL.md, part 2. Exact types take the short way. Subclasses are read through their base type's own functions, so that no method
 * of theirs is called. Everything that is rare is asked of the Python side (encode_rare), which may run code of the value: so every container is
 * re-checked at every step, and what was announced in a head is kept to, with nils for what has vanished.
 */
#include "zygote/worker/parts.h"

#include <msgpack.h>

#include "protocol/ext.h"
#include "protocol/limits.h"

struct encoder {
	char *data; /* PyMem_RawMalloc */
	size_t len, room, most;
	bool full; /* the value is longer than `most` */
	PyObject *rare;
	msgpack_packer pk;
	unsigned depth;
	PyObject *open[BROOD_NESTING_MAX]; /* the containers that we are inside of */
};

static PyObject *enum_meta; /* enum.EnumMeta, or NULL */

static int encode(struct encoder *e, PyObject *value);

int wrk_encode_prepare(void)
{
	PyObject *module = PyImport_ImportModule("enum");

	if (!module)
		return -1;
	enum_meta = PyObject_GetAttrString(module, "EnumMeta");
	Py_DECREF(module);
	return enum_meta ? 0 : -1;
}

/* msgpack-c's way to append. */
static int append(void *context, const char *data, size_t len)
{
	struct encoder *e = context;

	if (e->full || len > e->most - e->len) {
		e->full = true;
		return -1;
	}
	if (len > e->room - e->len) {
		size_t room = e->room * 2;
		char *grown;

		while (room < e->len + len)
			room *= 2;
		grown = PyMem_RawRealloc(e->data, room);
		if (!grown) {
			PyErr_NoMemory();
			e->full = true;
			return -1;
		}
		e->data = grown;
		e->room = room;
	}
	memcpy(e->data + e->len, data, len);
	e->len += len;
	return 0;
}

/* Between two values: -1 once there is no room, or memory ran out, or an exception is set. */
static int state(const struct encoder *e)
{
	return e->full || PyErr_Occurred() ? -1 : 0;
}

/* An extension's length is known only after its payload: a head of the widest form is filled in afterwards. */
#define EXT_HEAD 6

static int ext_begin(struct encoder *e, size_t *start)
{
	static const char BLANK[EXT_HEAD];

	*start = e->len;
	return append(e, BLANK, EXT_HEAD);
}

static int ext_end(struct encoder *e, size_t start, enum brood_ext type)
{
	size_t len = e->len - start - EXT_HEAD;

	if (e->full)
		return -1;
	e->data[start] = (char)0xc9;
	for (int i = 0; i < 4; i++)
		e->data[start + 1 + (size_t)i] = (char)(len >> (24 - 8 * i));
	e->data[start + 5] = (char)type;
	return 0;
}

static int pack_text(struct encoder *e, const char *text, size_t len)
{
	msgpack_pack_str(&e->pk, len);
	msgpack_pack_str_body(&e->pk, text, len);
	return state(e);
}

static int encode_cut(struct encoder *e, const char *reason)
{
	size_t start;

	if (ext_begin(e, &start) < 0)
		return -1;
	msgpack_pack_array(&e->pk, 2);
	pack_text(e, reason, strlen(reason));
	pack_text(e, "", 0);
	return ext_end(e, start, BROOD_EXT_CUT);
}

/* 1: entered; 0: it may not be, and a marker stands in its place; -1: no room. */
static int enter(struct encoder *e, PyObject *container)
{
	for (unsigned i = 0; i < e->depth; i++) {
		if (e->open[i] == container)
			return encode_cut(e, "cycle");
	}
	if (e->depth == BROOD_NESTING_MAX)
		return encode_cut(e, "depth");
	e->open[e->depth++] = container;
	return 1;
}

static int encode_list(struct encoder *e, PyObject *list)
{
	Py_ssize_t count = PyList_GET_SIZE(list);
	int result = enter(e, list);

	if (result <= 0)
		return result;
	msgpack_pack_array(&e->pk, (size_t)count);
	for (Py_ssize_t i = 0; result >= 0 && i < count; i++) {
		PyObject *item = i < PyList_GET_SIZE(list) ? PyList_GET_ITEM(list, i) : Py_None;

		Py_INCREF(item);
		result = encode(e, item);
		Py_DECREF(item);
	}
	e->depth--;
	return result < 0 ? -1 : state(e);
}

static int encode_tuple(struct encoder *e, PyObject *tuple)
{
	Py_ssize_t count = PyTuple_GET_SIZE(tuple);
	size_t start;
	int result = enter(e, tuple);

	if (result <= 0)
		return result;
	result = ext_begin(e, &start);
	msgpack_pack_array(&e->pk, (size_t)count);
	for (Py_ssize_t i = 0; result >= 0 && i < count; i++)
		result = encode(e, PyTuple_GET_ITEM(tuple, i));
	e->depth--;
	return result < 0 ? -1 : ext_end(e, start, BROOD_EXT_TUPLE);
}

/* Keys and values in turn. Nothing but reference counts changes between the size and the last item, so none is missed. */
static PyObject *dict_items(PyObject *dict)
{
	PyObject *items = PyList_New(2 * PyDict_GET_SIZE(dict)), *key, *value;
	Py_ssize_t pos = 0, at = 0;

	while (items && at < PyList_GET_SIZE(items) && PyDict_Next(dict, &pos, &key, &value)) {
		PyList_SET_ITEM(items, at++, Py_NewRef(key));
		PyList_SET_ITEM(items, at++, Py_NewRef(value));
	}
	return items;
}

static int encode_dict(struct encoder *e, PyObject *dict)
{
	PyObject *items;
	int result = enter(e, dict);

	if (result <= 0)
		return result;
	/* Taken first: the dict may change while its members are asked for their repr. */
	items = dict_items(dict);
	if (!items)
		return -1;
	msgpack_pack_map(&e->pk, (size_t)PyList_GET_SIZE(items) / 2);
	for (Py_ssize_t i = 0; result >= 0 && i < PyList_GET_SIZE(items); i++)
		result = encode(e, PyList_GET_ITEM(items, i));
	Py_DECREF(items);
	e->depth--;
	return result < 0 ? -1 : state(e);
}

/* The members of a set by the base type's own iterator. */
static PyObject *set_members(PyObject *set)
{
	PyObject *iterator = PySet_Type.tp_iter(set), *members;

	if (!iterator)
		return NULL;
	members = PySequence_List(iterator);
	Py_DECREF(iterator);
	return members;
}

static int encode_set(struct encoder *e, PyObject *set, enum brood_ext type)
{
	PyObject *members;
	size_t start;
	int result = enter(e, set);

	if (result <= 0)
		return result;
	members = set_members(set);
	if (!members)
		return -1;
	result = ext_begin(e, &start);
	msgpack_pack_array(&e->pk, (size_t)PyList_GET_SIZE(members));
	for (Py_ssize_t i = 0; result >= 0 && i < PyList_GET_SIZE(members); i++)
		result = encode(e, PyList_GET_ITEM(members, i));
	Py_DECREF(members);
	e->depth--;
	return result < 0 ? -1 : ext_end(e, start, type);
}

static int encode_str(struct encoder *e, PyObject *str)
{
	PyObject *bytes;
	Py_ssize_t len;
	const char *text = PyUnicode_AsUTF8AndSize(str, &len);
	size_t start;
	int result;

	if (text)
		return pack_text(e, text, (size_t)len);
	if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError))
		return -1;
	PyErr_Clear();
	bytes = PyUnicode_AsEncodedString(str, "utf-8", "surrogatepass");
	if (!bytes)
		return -1;
	result = ext_begin(e, &start);
	if (result == 0)
		result = append(e, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
	Py_DECREF(bytes);
	return result < 0 ? -1 : ext_end(e, start, BROOD_EXT_SURROGATE_STR);
}

static int pack_bytes(struct encoder *e, const char *data, size_t len)
{
	msgpack_pack_bin(&e->pk, len);
	msgpack_pack_bin_body(&e->pk, data, len);
	return state(e);
}

/* What encode_rare answers: (extension type, bytes or str or list of str and int). */
static int encode_rare(struct encoder *e, PyObject *value)
{
	PyObject *answer = PyObject_CallOneArg(e->rare, value), *payload;
	size_t start;
	long type;
	int result;

	if (!answer)
		return -1;
	if (!PyTuple_CheckExact(answer) || PyTuple_GET_SIZE(answer) != 2) {
		Py_DECREF(answer);
		PyErr_SetString(PyExc_TypeError, "encode_rare returned no pair");
		return -1;
	}
	type = PyLong_AsLong(PyTuple_GET_ITEM(answer, 0));
	payload = PyTuple_GET_ITEM(answer, 1);
	result = PyErr_Occurred() ? -1 : ext_begin(e, &start);
	if (result == 0 && PyBytes_CheckExact(payload))
		result = append(e, PyBytes_AS_STRING(payload), (size_t)PyBytes_GET_SIZE(payload));
	else if (result == 0)
		result = encode(e, payload);
	Py_DECREF(answer);
	return result < 0 ? -1 : ext_end(e, start, (enum brood_ext)type);
}

static int encode_int(struct encoder *e, PyObject *value)
{
	int overflow;
	long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
	unsigned long long wide;

	if (overflow == 0) {
		msgpack_pack_int64(&e->pk, number);
		return state(e);
	}
	if (overflow > 0) {
		wide = PyLong_AsUnsignedLongLong(value);
		if (!PyErr_Occurred()) {
			msgpack_pack_uint64(&e->pk, wide);
			return state(e);
		}
		PyErr_Clear();
	}
	return encode_rare(e, value);
}

static int encode_complex(struct encoder *e, PyObject *value)
{
	Py_complex number = ((PyComplexObject *)value)->cval;
	size_t start;

	if (ext_begin(e, &start) < 0)
		return -1;
	msgpack_pack_array(&e->pk, 2);
	msgpack_pack_double(&e->pk, number.real);
	msgpack_pack_double(&e->pk, number.imag);
	return ext_end(e, start, BROOD_EXT_COMPLEX);
}

static int encode_memory(struct encoder *e, PyObject *value)
{
	Py_buffer view;
	int result;

	if (PyObject_GetBuffer(value, &view, PyBUF_SIMPLE) < 0) {
		PyErr_Clear(); /* not contiguous, or released */
		return encode_rare(e, value);
	}
	result = pack_bytes(e, view.buf, (size_t)view.len);
	PyBuffer_Release(&view);
	return result;
}

/* By the type's flags, subclasses included. */
static int encode_by_base(struct encoder *e, PyObject *value)
{
	if (PyObject_TypeCheck((PyObject *)Py_TYPE(value), (PyTypeObject *)enum_meta))
		return encode_rare(e, value);
	if (PyUnicode_Check(value))
		return encode_str(e, value);
	if (PyLong_Check(value))
		return encode_int(e, value);
	if (PyFloat_Check(value)) {
		msgpack_pack_double(&e->pk, PyFloat_AS_DOUBLE(value));
		return state(e);
	}
	if (PyList_Check(value))
		return encode_list(e, value);
	if (PyDict_Check(value))
		return encode_dict(e, value);
	if (PyTuple_Check(value))
		return encode_tuple(e, value);
	if (PyBytes_Check(value))
		return pack_bytes(e, PyBytes_AS_STRING(value), (size_t)PyBytes_GET_SIZE(value));
	if (PySet_Check(value))
		return encode_set(e, value, BROOD_EXT_SET);
	if (PyFrozenSet_Check(value))
		return encode_set(e, value, BROOD_EXT_FROZENSET);
	if (PyByteArray_Check(value) || PyMemoryView_Check(value))
		return encode_memory(e, value);
	if (PyComplex_CheckExact(value))
		return encode_complex(e, value);
	return encode_rare(e, value);
}

static int encode(struct encoder *e, PyObject *value)
{
	if (state(e) < 0)
		return -1;
	if (value == Py_None)
		msgpack_pack_nil(&e->pk);
	else if (value == Py_True)
		msgpack_pack_true(&e->pk);
	else if (value == Py_False)
		msgpack_pack_false(&e->pk);
	else
		return encode_by_base(e, value);
	return state(e);
}

PyObject *wrk_encode(PyObject *value, size_t most, PyObject *rare)
{
	struct encoder e = {.room = 4096, .most = most, .rare = rare};
	PyObject *bytes = NULL;

	e.data = PyMem_RawMalloc(e.room);
	if (!e.data)
		return PyErr_NoMemory();
	msgpack_packer_init(&e.pk, &e, append);
	if (encode(&e, value) == 0)
		bytes = PyBytes_FromStringAndSize(e.data, (Py_ssize_t)e.len);
	PyMem_RawFree(e.data);
	if (!bytes && !PyErr_Occurred()) /* full */
		Py_RETURN_NONE;
	return bytes;
}
