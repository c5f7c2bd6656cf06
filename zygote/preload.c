/*
 * Runs in:   brood-zygote, without rights, without the filter yet.
 * Trusts:    the profile's modules, as far as their author does: they run here, in the image of every later worker.
 * Blocks on: what those modules block on; the supervisor's deadline for READY ends it.
 *
 * Imports the modules, lets the worker's side build what all workers can share and rehearse a call, then collects and freezes the garbage
 * collector, so that no collection in a worker touches, and thereby copies, the pages of the image.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "zygote/proc.h"
#include "zygote/python.h"
#include "zygote/zygote.h"

static int import_one(struct zyg *z, const char *name)
{
	PyObject *module = PyImport_ImportModule(name);
	char error[1024];
	int tasks;

	snprintf(z->failed.step, sizeof(z->failed.step), "import %s", name);
	if (!module) {
		zyg_python_error(error, sizeof(error));
		return zyg_fail(z, 0,
				"profile '%s': module '%s' cannot be imported: %s; install it for %s or remove it from "
				"`preload`",
				z->start.profile, name, error, z->python.executable);
	}
	Py_DECREF(module);
	/* The lock counts again; here we still know whose thread it is. */
	tasks = zyg_proc_tasks(z->proc);
	if (tasks != 1)
		return zyg_fail(z, tasks < 0 ? -tasks : 0,
				"profile '%s': module '%s' started a thread when it was imported, and threads do "
				"not survive a fork; remove it from `preload` (code can still import it)",
				z->start.profile, name);
	z->failed.step[0] = '\0';
	return 0;
}

/* Whatever the modules printed goes to the log now; left in a buffer, each worker would print it again. */
static int flush_output(struct zyg *z)
{
	static const char *const STREAMS[] = {"stdout", "stderr"};

	for (size_t i = 0; i < 2; i++) {
		PyObject *stream = PySys_GetObject(STREAMS[i]); /* borrowed */
		PyObject *none = stream && stream != Py_None ? PyObject_CallMethod(stream, "flush", NULL) : NULL;
		char error[512];

		if (none || !PyErr_Occurred()) {
			Py_XDECREF(none);
			continue;
		}
		zyg_python_error(error, sizeof(error));
		return zyg_fail(z, 0,
				"profile '%s': sys.%s cannot be flushed after the preload: %s; a preloaded module has "
				"replaced it",
				z->start.profile, STREAMS[i], error);
	}
	fflush(NULL);
	return 0;
}

static int call(PyObject *module, const char *method)
{
	PyObject *result = PyObject_CallMethod(module, method, NULL);

	Py_XDECREF(result);
	return result ? 0 : -1;
}

/* Twice, as finalizers of the first round may leave garbage for the second. */
static int freeze(void)
{
	PyObject *gc = PyImport_ImportModule("gc");
	int result = -1;

	if (gc && call(gc, "collect") == 0 && call(gc, "collect") == 0 && call(gc, "freeze") == 0)
		result = 0;
	Py_XDECREF(gc);
	return result;
}

int zyg_step_preload(struct zyg *z)
{
	char error[1024];

	for (size_t i = 0; i < z->start.preload_count; i++)
		if (import_one(z, z->start.preload[i]) < 0)
			return -1;
	if (wrk_prepare() < 0) {
		zyg_python_error(error, sizeof(error));
		return zyg_fail(z, 0, "profile '%s': the worker's side cannot be prepared: %s", z->start.profile,
				error);
	}
	if (wrk_rehearse() < 0) {
		zyg_python_error(error, sizeof(error));
		return zyg_fail(z, 0, "profile '%s': a call rehearsed in the zygote failed: %s", z->start.profile,
				error);
	}
	if (freeze() < 0) {
		zyg_python_error(error, sizeof(error));
		return zyg_fail(z, 0, "profile '%s': the garbage collector cannot be frozen: %s", z->start.profile,
				error);
	}
	return flush_output(z);
}
