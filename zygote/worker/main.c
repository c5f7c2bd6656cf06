/*
 * Runs in:   a worker, from the fork to its end
 * Trusts:    the supervisor's one frame; nothing once that has been read
 * Blocks on: the request pipe, twice: for RUN, and after the answer until it is killed
 *
 * Order: Python's locks after the fork, confinement, the Python side's own preparation and warm-up, PARKED, RUN, the code, RESULT. A worker never
 * finalises Python and leaves by _exit only, so nothing that a preloaded module registered for the interpreter's end runs here.
 *
 * From RUN on, an exit status is the code's own (os._exit): what fails here after that aborts, which no one takes for an ordinary ending.
 */
#include "zygote/worker/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <msgpack.h>
#include <sys/mman.h>
#include <unistd.h>

#include "protocol/fds.h"
#include "protocol/frame.h"

/* The frame RUN is never longer than a request and what the supervisor puts before it. */
#define RUN_MAX (BROOD_REQUEST_CEILING + 4096)

struct request {
	uint8_t *data;
	size_t len;
};

static void read_fully(uint8_t *to, size_t len, bool may_end)
{
	size_t got = 0;

	while (got < len) {
		ssize_t n = read(BROOD_WRK_FD_REQUEST, to + got, len - got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0 && may_end && got == 0)
			_exit(0); /* retired while it was parked */
		if (n <= 0)
			abort();
		got += (size_t)n;
	}
}

static struct request read_request(void)
{
	uint8_t header[BROOD_FRAME_HEADER];
	struct brood_slice payload;
	struct request request;
	uint32_t len = 0;
	size_t used;

	read_fully(header, sizeof(header), true);
	/* The length alone: a frame of that many bytes is not there yet. */
	if (brood_frame_parse(header, sizeof(header), RUN_MAX, &payload, &used) < 0)
		abort();
	for (int i = 0; i < BROOD_FRAME_HEADER; i++)
		len |= (uint32_t)header[i] << (8 * i);
	request.len = len;
	request.data = PyMem_RawMalloc(len);
	if (!request.data)
		abort();
	read_fully(request.data, len, false);
	return request;
}

/* What run() is called with. Slices point into the request. */
struct arguments {
	struct brood_slice code, name, inputs;
	bool code_is_bytes;
	struct brood_limits limits;
};

static void take_field(struct brood_reader *r, struct brood_slice key, struct arguments *out)
{
	struct brood_slice any;

	if (brood_slice_is(key, "code")) {
		out->code_is_bytes = brood_peek(r) == BROOD_T_BIN;
		if ((out->code_is_bytes ? brood_read_bin(r, &out->code) : brood_read_str(r, &out->code)) == 0)
			return;
	} else if (brood_slice_is(key, "name")) {
		if (brood_read_str(r, &out->name) == 0)
			return;
	} else if (brood_read_any(r, &any) == 0) {
		if (brood_slice_is(key, "inputs"))
			out->inputs = any;
		return;
	}
	abort();
}

static void parse_request(const struct request *request, struct arguments *out)
{
	struct brood_slice params, key;
	struct brood_reader r;
	uint32_t count;

	memset(out, 0, sizeof(*out));
	out->name = (struct brood_slice){(const uint8_t *)"<brood>", 7};
	if (brood_run_parse(request->data, request->len, &out->limits, &params) < 0)
		abort();
	brood_reader_init(&r, params.data, params.len);
	if (brood_read_map(&r, &count) < 0)
		abort();
	for (; count > 0; count--) {
		if (brood_read_str(&r, &key) < 0)
			abort();
		take_field(&r, key, out);
	}
}

/* `how`(source, name, inputs, value_bytes): the Python side's run, or rehearse. A new reference, or NULL with an exception. */
static PyObject *call_python(const char *how, const struct wrk_setup *setup, const struct request *request)
{
	PyObject *run = wrk_python_global(how), *source, *name, *inputs, *answer = NULL;
	struct arguments a;

	parse_request(request, &a);
	if (a.limits.v[BROOD_LIMIT_MEMORY] < setup->limits.v[BROOD_LIMIT_MEMORY] &&
	    wrk_limit_memory(setup, a.limits.v[BROOD_LIMIT_MEMORY]) < 0)
		abort();
	source = a.code_is_bytes ? PyBytes_FromStringAndSize((const char *)a.code.data, (Py_ssize_t)a.code.len)
				 : PyUnicode_DecodeUTF8((const char *)a.code.data, (Py_ssize_t)a.code.len, NULL);
	name = PyUnicode_DecodeUTF8((const char *)a.name.data, (Py_ssize_t)a.name.len, "replace");
	inputs = PyBytes_FromStringAndSize((const char *)a.inputs.data, (Py_ssize_t)a.inputs.len);
	if (run && source && name && inputs)
		answer = PyObject_CallFunction(run, "OOOn", source, name, inputs,
					       (Py_ssize_t)a.limits.v[BROOD_LIMIT_VALUE]);
	Py_XDECREF(source);
	Py_XDECREF(name);
	Py_XDECREF(inputs);
	return answer;
}

static void call_or_leave(const char *function)
{
	PyObject *callable = wrk_python_global(function), *result = callable ? PyObject_CallNoArgs(callable) : NULL;

	if (!result) {
		PyErr_Print();
		_exit(WRK_EXIT_PREPARE);
	}
	Py_DECREF(result);
}

/* --- warm-up --- */

/* The interpreter specialises code after eight runs; twice that settles what depends on it in turn. */
#define REHEARSALS 20

static msgpack_sbuffer warm_request; /* the payload of a RUN, made in the zygote */

static void text(msgpack_packer *pk, const char *s)
{
	msgpack_pack_str(pk, strlen(s));
	msgpack_pack_str_body(pk, s, strlen(s));
}

int wrk_prepare_warm_up(const char *source)
{
	struct brood_limits limits;
	msgpack_packer pk;

	brood_limits_preset(&limits);
	msgpack_sbuffer_init(&warm_request);
	if (brood_run_write_head(&warm_request, &limits) < 0)
		return -1;
	msgpack_packer_init(&pk, &warm_request, msgpack_sbuffer_write);
	msgpack_pack_map(&pk, 3);
	text(&pk, "code"), text(&pk, source);
	text(&pk, "name"), text(&pk, WRK_WARM_UP_NAME);
	text(&pk, "inputs");
	msgpack_pack_map(&pk, 1);
	text(&pk, "n"), msgpack_pack_int(&pk, 3);
	return 0;
}

/*
 * One call over the whole of the path that a real one takes, from the bytes of its request to the bytes of its answer, which go to /dev/null:
 * what it touches is paged in, and the caches on the way are filled, before anybody waits.
 */
static PyObject *rehearse(const struct wrk_setup *setup)
{
	struct wrk_setup same = *setup;
	struct request request = {PyMem_RawMalloc(warm_request.size), warm_request.size};
	PyObject *answer;

	if (!request.data)
		return PyErr_NoMemory();
	memcpy(request.data, warm_request.data, request.len);
	brood_limits_preset(&same.limits); /* as in the request: nothing is to be lowered */
	answer = call_python("rehearse", &same, &request);
	if (answer)
		wrk_write_result(STDIN_FILENO, answer);
	PyMem_RawFree(request.data);
	return answer;
}

static void warm_up(const struct wrk_setup *setup)
{
	PyObject *answer = rehearse(setup);

	if (!answer) {
		PyErr_Print();
		_exit(WRK_EXIT_PREPARE);
	}
	Py_DECREF(answer);
}

/* What a worker does is done here as well, so that all that the interpreter keeps of it (specialised code, caches of types, interned names) is inherited. */
int wrk_rehearse(void)
{
	static const char *const STEPS[] = {"start_worker", NULL, "finish_warm_up", "settle"};
	struct wrk_setup setup = {.filter = NULL};

	brood_limits_preset(&setup.limits);
	for (int round = 0; round < REHEARSALS; round++) {
		for (size_t i = 0; i < sizeof(STEPS) / sizeof(STEPS[0]); i++) {
			PyObject *result =
				STEPS[i] ? PyObject_CallNoArgs(wrk_python_global(STEPS[i])) : rehearse(&setup);

			if (!result)
				return -1;
			Py_DECREF(result);
		}
	}
	return 0;
}

/* In bulk a page costs a half to two thirds of what its fault costs. Kernels before 5.14 refuse: then they are copied by faults. */
static void copy_hot_pages(const struct wrk_setup *setup)
{
	for (size_t i = 0; i < setup->hot_count; i++)
		if (madvise(setup->hot[i].start, setup->hot[i].len, MADV_POPULATE_WRITE) < 0)
			return;
}

_Noreturn void wrk_main(const struct wrk_setup *setup, bool warm)
{
	struct request request;
	PyObject *answer;
	char byte;

	copy_hot_pages(setup);
	PyOS_AfterFork_Child();
	wrk_confine(setup);
	call_or_leave("start_worker");
	if (warm)
		warm_up(setup);
	call_or_leave("finish_warm_up");
	wrk_write_parked();
	request = read_request();
	answer = call_python("run", setup, &request);
	wrk_write_result(BROOD_WRK_FD_ANSWER, answer);
	/* The supervisor ends us; until then our clocks and pipes stay readable for it. */
	Py_BEGIN_ALLOW_THREADS while (read(BROOD_WRK_FD_REQUEST, &byte, 1) > 0 || errno == EINTR);
	Py_END_ALLOW_THREADS _exit(0);
}
