/*
 * Runs in:   a worker
 * Trusts:    the Python side, which user code may have spoilt: what it returns is checked for its types
 * Blocks on: the answer pipe, until the supervisor reads
 */
#include "zygote/worker/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <msgpack.h>
#include <sys/uio.h>
#include <unistd.h>

#include "protocol/fds.h"
#include "protocol/frame.h"

static void write_frame(int fd, const msgpack_sbuffer *payload)
{
	uint8_t header[BROOD_FRAME_HEADER];
	struct iovec parts[2] = {{header, sizeof(header)}, {payload->data, payload->size}};
	struct iovec *part = parts;
	int count = 2;

	brood_frame_header(header, (uint32_t)payload->size);
	while (count > 0) {
		ssize_t n = writev(fd, part, count);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			abort();
		while (count > 0 && (size_t)n >= part->iov_len) {
			n -= (ssize_t)part->iov_len;
			part++;
			count--;
		}
		if (count > 0) {
			part->iov_base = (char *)part->iov_base + n;
			part->iov_len -= (size_t)n;
		}
	}
}

void wrk_write_parked(void)
{
	msgpack_sbuffer payload;

	msgpack_sbuffer_init(&payload);
	if (brood_parked_write(&payload) < 0)
		_exit(WRK_EXIT_MEMORY);
	write_frame(BROOD_WRK_FD_ANSWER, &payload);
	msgpack_sbuffer_destroy(&payload);
}

static void text(msgpack_packer *pk, const char *s)
{
	msgpack_pack_str(pk, strlen(s));
	msgpack_pack_str_body(pk, s, strlen(s));
}

/* bytes that hold UTF-8, as a str; anything else as nil. */
static void text_or_nil(msgpack_packer *pk, PyObject *bytes)
{
	if (!bytes || !PyBytes_CheckExact(bytes)) {
		msgpack_pack_nil(pk);
		return;
	}
	msgpack_pack_str(pk, (size_t)PyBytes_GET_SIZE(bytes));
	msgpack_pack_str_body(pk, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
}

static void pack_error(msgpack_packer *pk, PyObject *error)
{
	static const char *const NAMES[] = {"type", "message", "traceback", "line"};
	PyObject *line;

	if (!error || !PyTuple_CheckExact(error) || PyTuple_GET_SIZE(error) != 4) {
		msgpack_pack_nil(pk);
		return;
	}
	msgpack_pack_map(pk, 4);
	for (int i = 0; i < 3; i++) {
		text(pk, NAMES[i]);
		text_or_nil(pk, PyTuple_GET_ITEM(error, i));
	}
	text(pk, NAMES[3]);
	line = PyTuple_GET_ITEM(error, 3);
	if (PyLong_CheckExact(line))
		msgpack_pack_int64(pk, PyLong_AsLongLong(line));
	else
		msgpack_pack_nil(pk);
}

static void pack_cuts(msgpack_packer *pk, PyObject *cuts)
{
	Py_ssize_t count = cuts && PyList_CheckExact(cuts) ? PyList_GET_SIZE(cuts) : 0;

	if (count > BROOD_TRUNCATED_MAX)
		count = BROOD_TRUNCATED_MAX;
	msgpack_pack_array(pk, (size_t)count);
	for (Py_ssize_t i = 0; i < count; i++) {
		const char *what = "", *reason = "";
		long long kept = 0, cut = 0;

		if (!PyArg_ParseTuple(PyList_GET_ITEM(cuts, i), "sLLs", &what, &kept, &cut, &reason))
			PyErr_Clear();
		msgpack_pack_map(pk, 4);
		text(pk, "what"), text(pk, what);
		text(pk, "kept_bytes"), msgpack_pack_uint64(pk, (uint64_t)kept);
		text(pk, "cut_bytes"), msgpack_pack_uint64(pk, (uint64_t)cut);
		text(pk, "reason"), text(pk, reason);
	}
}

static void begin(msgpack_packer *pk, msgpack_sbuffer *payload, size_t fields, const char *outcome)
{
	msgpack_sbuffer_init(payload);
	msgpack_packer_init(pk, payload, msgpack_sbuffer_write);
	msgpack_pack_array(pk, 2);
	msgpack_pack_int(pk, BROOD_W_RESULT);
	msgpack_pack_map(pk, fields);
	text(pk, "outcome"), text(pk, outcome);
}

/* run() itself raised: memory ran out even for saying so, or user code spoilt our Python side. */
static void write_failure(int fd)
{
	bool memory = PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_MemoryError);
	const char *message = memory ? "out of memory, even for a traceback"
				     : "the code damaged the interpreter: its ending could not be described";
	msgpack_sbuffer payload;
	msgpack_packer pk;

	PyErr_Clear();
	begin(&pk, &payload, 2, memory ? "memory" : "error");
	text(&pk, "error");
	msgpack_pack_map(&pk, 4);
	text(&pk, "type"), text(&pk, memory ? "MemoryError" : "RuntimeError");
	text(&pk, "message"), text(&pk, message);
	text(&pk, "traceback"), text(&pk, "");
	text(&pk, "line"), msgpack_pack_nil(&pk);
	write_frame(fd, &payload);
	msgpack_sbuffer_destroy(&payload);
}

/* The Python side's Answer: (outcome, value, repr, error, exit code, cuts). */
void wrk_write_result(int fd, PyObject *answer)
{
	PyObject *value, *repr, *error, *code, *cuts;
	msgpack_sbuffer payload;
	const char *outcome;
	msgpack_packer pk;

	if (!answer || !PyArg_ParseTuple(answer, "sOOOOO", &outcome, &value, &repr, &error, &code, &cuts)) {
		write_failure(fd);
		return;
	}
	begin(&pk, &payload, 6, outcome);
	text(&pk, "value");
	if (PyBytes_CheckExact(value))
		msgpack_sbuffer_write(&payload, PyBytes_AS_STRING(value), (size_t)PyBytes_GET_SIZE(value));
	else
		msgpack_pack_nil(&pk);
	text(&pk, "repr");
	text_or_nil(&pk, repr);
	text(&pk, "error");
	pack_error(&pk, error);
	text(&pk, "exit_code");
	if (PyLong_CheckExact(code))
		msgpack_pack_int64(&pk, PyLong_AsLongLong(code));
	else
		msgpack_pack_nil(&pk);
	text(&pk, "truncated");
	pack_cuts(&pk, cuts);
	write_frame(fd, &payload);
	msgpack_sbuffer_destroy(&payload);
}
