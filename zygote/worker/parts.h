/* What the C files of a worker share. */
#ifndef BROOD_ZYGOTE_WORKER_PARTS_H
#define BROOD_ZYGOTE_WORKER_PARTS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "protocol/reader.h"
#include "zygote/worker/worker.h"

/*
 * encode.c: `value` as one MessagePack value of at most `most` bytes. A new bytes object; None when it would be longer; NULL with an exception.
 * `rare` is the Python side's encode_rare.
 */
PyObject *wrk_encode(PyObject *value, size_t most, PyObject *rare);
/* encode.c: what it needs to know of Python's modules. 0, or -1 with an exception. */
int wrk_encode_prepare(void);

/* decode.c: the one value that `data` holds. A new reference, or NULL with an exception. `rare` is the Python side's decode_rare. */
PyObject *wrk_decode(const uint8_t *data, size_t len, PyObject *rare);

/* module.c: the Python side's globals, once wrk_prepare has run; borrowed. */
PyObject *wrk_python_global(const char *name);

/* confine.c: signals, limits, filter. Leaves the process with the status that names the step, if one fails. */
void wrk_confine(const struct wrk_setup *setup);
/* confine.c: what the code may use beyond what its zygote had. May only be lowered. 0, or -1 with errno. */
int wrk_limit_memory(const struct wrk_setup *setup, uint64_t bytes);

/* answer.c: writes a whole frame to the answer pipe. Leaves the process when it cannot. */
void wrk_write_parked(void);
/* answer.c: the frame RESULT, to `fd`, from what the Python side's run() returned; NULL: it raised (the exception is set). */
void wrk_write_result(int fd, PyObject *answer);

/* The file name of the warm-up's source; brood_worker.py knows it too. */
#define WRK_WARM_UP_NAME "<warm-up>"
/* main.c: in the zygote, makes the request that each worker warms up with. 0, or -1 when out of memory. */
int wrk_prepare_warm_up(const char *source);

#endif
