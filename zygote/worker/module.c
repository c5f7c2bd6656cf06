/*
 * Runs in:   brood-zygote before the fork, workers after it
 * Trusts:    its own Python source; calls from user code may come with any arguments
 * Blocks on: nothing
 *
 * `_brood`, the built-in module that the Python side is made of, and that Python side itself. Both are taken out of sys.modules once they are
 * loaded, to keep user code's view tidy; that is no protection, and nothing depends on it.
 */
#include "zygote/worker/parts.h"

#include "zygote/worker/brood_worker_source.h"

static PyObject *python_side; /* the globals of brood_worker.py */
static PyObject *pending[2];  /* streams to be flushed; borrowed from nobody, owned */

PyObject *wrk_python_global(const char *name)
{
	PyObject *value = python_side ? PyDict_GetItemString(python_side, name) : NULL;

	if (!value)
		PyErr_Format(PyExc_RuntimeError, "the worker has no %s", name);
	return value;
}

static PyObject *brood_encode(PyObject *self, PyObject *args)
{
	PyObject *value, *rare = wrk_python_global("encode_rare");
	Py_ssize_t most;

	(void)self;
	if (!rare || !PyArg_ParseTuple(args, "On", &value, &most))
		return NULL;
	if (most < 0) {
		PyErr_SetString(PyExc_ValueError, "a negative limit");
		return NULL;
	}
	return wrk_encode(value, (size_t)most, rare);
}

static PyObject *brood_decode(PyObject *self, PyObject *data)
{
	PyObject *rare = wrk_python_global("decode_rare");

	(void)self;
	if (!rare)
		return NULL;
	if (!PyBytes_Check(data)) {
		PyErr_SetString(PyExc_TypeError, "bytes are wanted");
		return NULL;
	}
	return wrk_decode((const uint8_t *)PyBytes_AS_STRING(data), (size_t)PyBytes_GET_SIZE(data), rare);
}

static int flush(PyObject *stream)
{
	PyObject *type, *value, *trace, *result;

	PyErr_Fetch(&type, &value, &trace);
	result = PyObject_CallMethod(stream, "flush", NULL);
	Py_XDECREF(result);
	if (!result)
		PyErr_Clear(); /* closed by the code */
	PyErr_Restore(type, value, trace);
	return 0;
}

/* Called by the interpreter between two instructions of the main thread. */
static int flush_pending(void *ignored)
{
	(void)ignored;
	for (size_t i = 0; i < 2; i++) {
		PyObject *stream = pending[i];

		pending[i] = NULL;
		if (stream)
			flush(stream);
		Py_XDECREF(stream);
	}
	return 0;
}

/* True if it is or was put among the pending ones. */
static int note_pending(PyObject *stream)
{
	int first = !pending[0] && !pending[1];

	for (size_t i = 0; i < 2; i++) {
		if (pending[i] == stream)
			return 1;
	}
	for (size_t i = 0; i < 2; i++) {
		if (pending[i])
			continue;
		if (first && Py_AddPendingCall(flush_pending, NULL) < 0)
			return 0;
		pending[i] = Py_NewRef(stream);
		return 1;
	}
	return 0;
}

/*
 * print() writes text and line end apart. In the main thread the flush is left to a pending call, which the interpreter makes as
 * soon as print() has returned: one system call, and nothing is ever held back beyond the statement that wrote it.
 */
static PyObject *brood_flush_soon(PyObject *self, PyObject *stream)
{
	(void)self;
	if (PyThreadState_Get() != PyInterpreterState_ThreadHead(PyInterpreterState_Get()) ||
	    PyThreadState_Next(PyThreadState_Get()) || !note_pending(stream))
		flush(stream);
	Py_RETURN_NONE;
}

static PyMethodDef METHODS[] = {
	{"encode", brood_encode, METH_VARARGS,
	 "encode(value, most) -> bytes, or None if that takes more than `most` bytes."},
	{"decode", brood_decode, METH_O, "decode(bytes) -> the one value in them."},
	{"flush_soon", brood_flush_soon, METH_O, "Flushes the stream before the next statement."},
	{NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {.m_base = PyModuleDef_HEAD_INIT,
				    .m_name = "_brood",
				    .m_doc = "Inside of a Brood worker.",
				    .m_size = -1,
				    .m_methods = METHODS};

static PyObject *init_module(void)
{
	return PyModule_Create(&MODULE);
}

int wrk_register_builtin(void)
{
	return PyImport_AppendInittab("_brood", init_module);
}

/* Globals whose builtins are a copy: what user code does to the builtins module does not reach them. */
static PyObject *private_globals(void)
{
	PyObject *globals = PyDict_New(), *builtins = PyDict_Copy(PyEval_GetBuiltins()),
		 *name = PyUnicode_FromString("brood_worker");

	if (globals && builtins && name && PyDict_SetItemString(globals, "__builtins__", builtins) == 0 &&
	    PyDict_SetItemString(globals, "__name__", name) == 0) {
		Py_DECREF(builtins);
		Py_DECREF(name);
		return globals;
	}
	Py_XDECREF(globals);
	Py_XDECREF(builtins);
	Py_XDECREF(name);
	return NULL;
}

int wrk_prepare(void)
{
	PyObject *code, *globals, *result = NULL, *modules = PyImport_GetModuleDict(), *warm_up, *settle;
	const char *warm_up_source;

	if (wrk_encode_prepare() < 0)
		return -1;
	code = Py_CompileString((const char *)BROOD_WORKER_SOURCE, "<brood-worker>", Py_file_input);
	globals = private_globals();
	if (code && globals)
		result = PyEval_EvalCode(code, globals, globals);
	Py_XDECREF(code);
	if (!result) {
		Py_XDECREF(globals);
		return -1;
	}
	Py_DECREF(result);
	python_side = globals;
	warm_up = wrk_python_global("WARM_UP");
	warm_up_source = warm_up ? PyUnicode_AsUTF8(warm_up) : NULL;
	if (!warm_up_source)
		return -1;
	settle = wrk_python_global("settle");
	result = settle ? PyObject_CallNoArgs(settle) : NULL;
	if (!result)
		return -1;
	Py_DECREF(result);
	if (wrk_prepare_warm_up(warm_up_source) < 0) {
		PyErr_NoMemory();
		return -1;
	}
	if (PyMapping_HasKeyString(modules, "_brood"))
		return PyMapping_DelItemString(modules, "_brood");
	return 0;
}
