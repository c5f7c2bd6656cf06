/*
 * Runs in:   brood-zygote, after it has given up its rights.
 * Trusts:    the profile.
 * Blocks on: the file system.
 *
 * Starts the embedded CPython in its isolated configuration. Nothing outside the profile has a say: no PYTHON* variable, no user
 * site, no .pth file, no sitecustomize, no directory of the caller. Every path is given, none is searched for. `site` is
 * not run, but the names that it adds to the builtins (exit, quit, help, copyright, credits, license) are there.
 *
 * The environment of the code is the profile's, plus one setting each for the libraries that would otherwise start a
 * thread for every core as soon as they are imported: threads do not survive the fork, and the lock refuses them.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "zygote/python.h"
#include "zygote/text.h"
#include "zygote/zygote.h"

#define STRING_(x) #x
#define STRING(x) STRING_(x)
#define STDLIB_ZIP BROOD_PYTHON_PREFIX "/lib/python" STRING(PY_MAJOR_VERSION) STRING(PY_MINOR_VERSION) ".zip"

static const char *const ONE_THREAD[] = {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"};

static int set_environment(struct zyg *z)
{
	if (clearenv() != 0)
		return zyg_fail(z, ENOMEM, "cannot clear the environment");
	for (size_t i = 0; i < z->start.env_count; i++)
		if (setenv(z->start.env[i].name, z->start.env[i].value, 1) < 0)
			return zyg_fail(z, errno, "profile '%s': cannot set the variable '%s': %s", z->start.profile,
					z->start.env[i].name, strerror(errno));
	for (size_t i = 0; i < sizeof(ONE_THREAD) / sizeof(ONE_THREAD[0]); i++)
		if (setenv(ONE_THREAD[i], "1", 0) < 0)
			return zyg_fail(z, errno, "cannot set the variable %s: %s", ONE_THREAD[i], strerror(errno));
	return 0;
}

static int python_failed(struct zyg *z, PyStatus status)
{
	return zyg_fail(z, 0, "Python %s could not start: %s%s%s; is %s complete?", PY_VERSION,
			status.func ? status.func : "", status.func ? ": " : "",
			status.err_msg ? status.err_msg : "it asked to exit", BROOD_PYTHON_STDLIB);
}

/* UTF-8 whatever the locale. The C library's own idea of characters is set too, for strftime and extension modules. */
static PyStatus preinitialize(void)
{
	PyPreConfig pre;

	setlocale(LC_CTYPE, "C.UTF-8");
	PyPreConfig_InitIsolatedConfig(&pre);
	pre.utf8_mode = 1;
	pre.coerce_c_locale = 0;
	pre.configure_locale = 0;
	return Py_PreInitialize(&pre);
}

static PyStatus add_path(PyConfig *config, const char *path)
{
	wchar_t *wide = Py_DecodeLocale(path, NULL);
	PyStatus status;

	if (!wide)
		return PyStatus_NoMemory();
	status = PyWideStringList_Append(&config->module_search_paths, wide);
	PyMem_RawFree(wide);
	return status;
}

static PyStatus set_search_path(const struct zyg *z, PyConfig *config)
{
	PyStatus status = PyStatus_Ok();

	config->module_search_paths_set = 1;
	if (access(STDLIB_ZIP, F_OK) == 0)
		status = add_path(config, STDLIB_ZIP);
	if (!PyStatus_Exception(status))
		status = add_path(config, BROOD_PYTHON_STDLIB);
	if (!PyStatus_Exception(status))
		status = add_path(config, BROOD_PYTHON_PLATSTDLIB);
	for (size_t i = 0; i < z->python.site_count && !PyStatus_Exception(status); i++)
		status = add_path(config, z->python.site[i]);
	for (size_t i = 0; i < z->start.paths_count && !PyStatus_Exception(status); i++)
		status = add_path(config, z->start.paths[i]);
	return status;
}

static PyStatus set_places(const struct zyg *z, PyConfig *config)
{
	const struct {
		wchar_t **field;
		const char *value;
	} places[] = {
		/* Not `home`: the prefix of a virtual environment would give way to it. */
		{&config->program_name, z->python.executable},
		{&config->executable, z->python.executable},
		{&config->base_executable, BROOD_PYTHON_EXECUTABLE},
		{&config->prefix, z->python.prefix},
		{&config->exec_prefix, z->python.prefix},
		{&config->base_prefix, BROOD_PYTHON_PREFIX},
		{&config->base_exec_prefix, BROOD_PYTHON_PREFIX},
		{&config->stdlib_dir, BROOD_PYTHON_STDLIB},
	};
	PyStatus status = PyStatus_Ok();

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && !PyStatus_Exception(status); i++)
		status = PyConfig_SetBytesString(config, places[i].field, places[i].value);
	return status;
}

static PyStatus start_python(const struct zyg *z)
{
	PyStatus status = preinitialize();
	PyConfig config;

	if (PyStatus_Exception(status))
		return status;
	PyConfig_InitIsolatedConfig(&config);
	config.site_import = 0;
	config.write_bytecode = 0;
	config.install_signal_handlers = 0;
	config.parse_argv = 0;
	/* The isolated configuration would take over a fixed seed if there were one; there is none, so it is random. */
	config.use_hash_seed = 0;
	status = set_places(z, &config);
	if (!PyStatus_Exception(status))
		status = set_search_path(z, &config);
	if (!PyStatus_Exception(status))
		status = Py_InitializeFromConfig(&config);
	PyConfig_Clear(&config);
	return status;
}

/* What site.main() would have added to the builtins, without what it would have done to sys.path. */
static int add_site_builtins(void)
{
	static const char *const SETTERS[] = {"setquit", "setcopyright", "sethelper"};
	PyObject *site = PyImport_ImportModule("site");

	if (!site)
		return -1;
	for (size_t i = 0; i < sizeof(SETTERS) / sizeof(SETTERS[0]); i++) {
		PyObject *none = PyObject_CallMethod(site, SETTERS[i], NULL);

		if (!none) {
			Py_DECREF(site);
			return -1;
		}
		Py_DECREF(none);
	}
	Py_DECREF(site);
	return 0;
}

/*
 * An explicit module path leaves sys._stdlib_dir unset, and with it the modules that are frozen into the library (os, codecs, io) know no
 * source: no __file__, no source lines in tracebacks. This gives them what importlib would have.
 */
static const char NAME_SOURCES[] =
	"import sys, _frozen_importlib\n"
	"sys._stdlib_dir = stdlib\n"
	"frozen = _frozen_importlib.FrozenImporter\n"
	"for module in list(sys.modules.values()):\n"
	"    spec = getattr(module, '__spec__', None)\n"
	"    state = getattr(spec, 'loader_state', None)\n"
	"    if spec is None or spec.loader is not frozen or getattr(state, 'filename', 0) is not None:\n"
	"        continue\n"
	"    is_package = spec.submodule_search_locations is not None\n"
	"    filename, package = frozen._resolve_filename(state.origname, spec.name, is_package)\n"
	"    if filename is not None:\n"
	"        module.__file__ = state.filename = filename\n"
	"        if package is not None:\n"
	"            module.__path__.insert(0, package)\n";

/*
 * What `random` and `threading` register to be run after every fork costs each worker some 150 page faults. They are imported with that switched off:
 * the worker's side renews random's state itself, and threading has nothing to renew where a zygote has one thread, which is checked.
 */
static const char IMPORT_WITHOUT_HOOKS[] = "import os\n"
					   "register, os.register_at_fork = os.register_at_fork, lambda **hooks: None\n"
					   "import random, threading\n"
					   "os.register_at_fork = register\n";

static int run_snippet(const char *snippet)
{
	PyObject *globals =
		Py_BuildValue("{s:s,s:O}", "stdlib", BROOD_PYTHON_STDLIB, "__builtins__", PyEval_GetBuiltins());
	PyObject *result = globals ? PyRun_String(snippet, Py_file_input, globals, globals) : NULL;

	Py_XDECREF(globals);
	Py_XDECREF(result);
	return result ? 0 : -1;
}

void zyg_python_error(char *to, size_t size)
{
	PyObject *type, *value, *traceback, *text = NULL;
	const char *name, *utf8 = NULL;

	PyErr_Fetch(&type, &value, &traceback);
	PyErr_NormalizeException(&type, &value, &traceback);
	name = type && PyType_Check(type) ? ((PyTypeObject *)type)->tp_name : "an error";
	if (strrchr(name, '.'))
		name = strrchr(name, '.') + 1;
	if (value)
		text = PyObject_Str(value);
	if (text)
		utf8 = PyUnicode_AsUTF8(text);
	snprintf(to, size, "%s%s%s", name, utf8 && *utf8 ? ": " : "", utf8 ? utf8 : "");
	PyErr_Clear();
	Py_XDECREF(text);
	Py_XDECREF(type);
	Py_XDECREF(value);
	Py_XDECREF(traceback);
}

int zyg_step_python(struct zyg *z)
{
	char error[512];
	PyStatus status;

	if (set_environment(z) < 0)
		return -1;
	if (wrk_register_builtin() < 0)
		return zyg_fail(z, ENOMEM, "cannot register the module _brood");
	zyg_text_to_huge_pages(z);
	status = start_python(z);
	if (PyStatus_Exception(status))
		return python_failed(z, status);
	/* "3.11.2 (main, …)": the library may be newer than the headers that we were built with. */
	snprintf(z->python.version, sizeof(z->python.version), "%.*s", (int)strcspn(Py_GetVersion(), " "),
		 Py_GetVersion());
	if (run_snippet(NAME_SOURCES) < 0 || run_snippet(IMPORT_WITHOUT_HOOKS) < 0 || add_site_builtins() < 0) {
		zyg_python_error(error, sizeof(error));
		return zyg_fail(z, 0, "cannot set up the builtins of Python %s: %s", PY_VERSION, error);
	}
	return 0;
}
