/*
 * Runs in:   broodd and brood-zygote
 * Trusts:    nothing: the other side is judged, though it is one of ours
 * Blocks on: nothing
 */
#include "protocol/messages.h"
#include "protocol/messages_parts.h"

bool brood_control_allowed(enum brood_peer sender, enum brood_zygote_state state, enum brood_control type)
{
	switch (type) {
	case BROOD_C_START:
		return sender == BROOD_PEER_SUPERVISOR && state == BROOD_ZYGOTE_BORN;
	case BROOD_C_READY:
	case BROOD_C_FAILED:
		return sender == BROOD_PEER_ZYGOTE && state == BROOD_ZYGOTE_STARTING;
	case BROOD_C_FORK:
		return sender == BROOD_PEER_SUPERVISOR && state == BROOD_ZYGOTE_READY;
	case BROOD_C_FORKED:
	case BROOD_C_FORK_FAILED:
	case BROOD_C_EXITED:
		return sender == BROOD_PEER_ZYGOTE && state == BROOD_ZYGOTE_READY;
	}
	return false;
}

int brood_control_type(const uint8_t *packet, size_t len, enum brood_control *out)
{
	struct brood_reader r;
	uint32_t count;
	uint64_t type;
	int result;

	if (len > BROOD_CONTROL_MAX)
		return BROOD_E_TOO_LARGE;
	result = brood_scan_whole(packet, len, BROOD_MESSAGE_DEPTH);
	if (result < 0)
		return result;
	brood_reader_init(&r, packet, len);
	if (brood_read_array(&r, &count) < 0 || count < 1 || brood_read_u64(&r, &type) < 0)
		return BROOD_E_TYPE;
	if (type < BROOD_C_START || type > BROOD_C_EXITED)
		return BROOD_E_UNKNOWN;
	*out = (enum brood_control)type;
	return 0;
}

/* The packer and the head of [type, …] with so many elements. */
static void begin(msgpack_packer *pk, msgpack_sbuffer *to, size_t count, enum brood_control type)
{
	msgpack_packer_init(pk, to, msgpack_sbuffer_write);
	msgpack_pack_array(pk, count);
	msgpack_pack_int(pk, type);
}

static int open_packet(struct brood_reader *r, const uint8_t *packet, size_t len, uint32_t count,
		       enum brood_control type)
{
	if (len > BROOD_CONTROL_MAX)
		return BROOD_E_TOO_LARGE;
	return mp_open(r, packet, len, BROOD_MESSAGE_DEPTH, count, type);
}

/* A number of at most `max`. */
static int read_upto(struct brood_reader *r, uint64_t max, uint64_t *out)
{
	uint64_t number;
	int result = brood_read_u64(r, &number);

	if (result < 0)
		return result;
	if (number > max)
		return BROOD_E_RANGE;
	*out = number;
	return 0;
}

int brood_failed_write(msgpack_sbuffer *to, const struct brood_failed *failed)
{
	size_t before = to->size;
	msgpack_packer pk;

	begin(&pk, to, 4, BROOD_C_FAILED);
	mp_text(&pk, failed->step);
	msgpack_pack_int(&pk, failed->error);
	mp_text(&pk, failed->message);
	return brood_message_written(to, before);
}

int brood_failed_parse(const uint8_t *packet, size_t len, struct brood_failed *out)
{
	struct brood_failed failed = {0};
	struct brood_reader r;
	uint64_t number = 0;
	int result = open_packet(&r, packet, len, 4, BROOD_C_FAILED);

	if (result == 0)
		result = brood_message_text(&r, failed.step, sizeof(failed.step) - 1);
	if (result == 0)
		result = read_upto(&r, 4095, &number);
	if (result == 0)
		result = brood_message_text(&r, failed.message, sizeof(failed.message) - 1);
	if (result < 0)
		return result;
	failed.error = (int)number;
	*out = failed;
	return 0;
}

int brood_fork_write(msgpack_sbuffer *to, uint64_t worker, bool warm)
{
	size_t before = to->size;
	msgpack_packer pk;

	begin(&pk, to, 3, BROOD_C_FORK);
	msgpack_pack_uint64(&pk, worker);
	if (warm)
		msgpack_pack_true(&pk);
	else
		msgpack_pack_false(&pk);
	return brood_message_written(to, before);
}

int brood_fork_parse(const uint8_t *packet, size_t len, uint64_t *worker, bool *warm)
{
	struct brood_reader r;
	uint64_t id = 0;
	bool warm_up = false;
	int result = open_packet(&r, packet, len, 3, BROOD_C_FORK);

	if (result == 0)
		result = read_upto(&r, UINT64_MAX, &id);
	if (result == 0)
		result = brood_read_bool(&r, &warm_up);
	if (result < 0)
		return result;
	*worker = id;
	*warm = warm_up;
	return 0;
}

/* FORKED and FORK_FAILED: a worker and a number. */
static int write_pair(msgpack_sbuffer *to, enum brood_control type, uint64_t worker, int32_t number)
{
	size_t before = to->size;
	msgpack_packer pk;

	begin(&pk, to, 3, type);
	msgpack_pack_uint64(&pk, worker);
	msgpack_pack_int32(&pk, number);
	return brood_message_written(to, before);
}

static int parse_pair(const uint8_t *packet, size_t len, enum brood_control type, uint64_t least, uint64_t *worker,
		      int32_t *number)
{
	struct brood_reader r;
	uint64_t id, value = 0;
	int result = open_packet(&r, packet, len, 3, type);

	if (result == 0)
		result = read_upto(&r, UINT64_MAX, &id);
	if (result == 0)
		result = read_upto(&r, INT32_MAX, &value);
	if (result == 0 && value < least)
		result = BROOD_E_RANGE;
	if (result < 0)
		return result;
	*worker = id;
	*number = (int32_t)value;
	return 0;
}

int brood_forked_write(msgpack_sbuffer *to, uint64_t worker, int32_t pid)
{
	return write_pair(to, BROOD_C_FORKED, worker, pid);
}

int brood_forked_parse(const uint8_t *packet, size_t len, uint64_t *worker, int32_t *pid)
{
	return parse_pair(packet, len, BROOD_C_FORKED, 1, worker, pid);
}

int brood_fork_failed_write(msgpack_sbuffer *to, uint64_t worker, int error)
{
	return write_pair(to, BROOD_C_FORK_FAILED, worker, error);
}

int brood_fork_failed_parse(const uint8_t *packet, size_t len, uint64_t *worker, int *error)
{
	return parse_pair(packet, len, BROOD_C_FORK_FAILED, 0, worker, error);
}

int brood_exited_write(msgpack_sbuffer *to, const struct brood_exited *exited)
{
	size_t before = to->size;
	msgpack_packer pk;

	begin(&pk, to, 6, BROOD_C_EXITED);
	msgpack_pack_uint64(&pk, exited->worker);
	mp_text(&pk, exited->signalled ? "signal" : "exit");
	msgpack_pack_int(&pk, exited->code);
	msgpack_pack_uint64(&pk, exited->cpu_us);
	msgpack_pack_uint64(&pk, exited->max_rss_bytes);
	return brood_message_written(to, before);
}

int brood_exited_parse(const uint8_t *packet, size_t len, struct brood_exited *out)
{
	struct brood_exited exited = {0};
	struct brood_slice how;
	struct brood_reader r;
	uint64_t code = 0;
	int result = open_packet(&r, packet, len, 6, BROOD_C_EXITED);

	if (result == 0)
		result = read_upto(&r, UINT64_MAX, &exited.worker);
	if (result == 0)
		result = brood_read_str(&r, &how);
	if (result < 0)
		return result;
	exited.signalled = brood_slice_is(how, "signal");
	if (!exited.signalled && !brood_slice_is(how, "exit"))
		return BROOD_E_UNKNOWN;
	result = read_upto(&r, exited.signalled ? 64 : 255, &code);
	if (result == 0)
		result = read_upto(&r, INT64_MAX, &exited.cpu_us);
	if (result == 0)
		result = read_upto(&r, INT64_MAX, &exited.max_rss_bytes);
	if (result < 0)
		return result;
	exited.code = (int)code;
	*out = exited;
	return 0;
}

/* --- READY --- */

enum ready_field { READY_LAYERS, READY_PYTHON, READY_BASE_DATA, READY_BASE_AS, READY_START, READY_FIELDS };
static const char *const READY_NAMES[READY_FIELDS] = {"layers", "python", "base_data_bytes", "base_as_bytes",
						      "start_us"};

int brood_ready_write(msgpack_sbuffer *to, const struct brood_ready *ready)
{
	size_t before = to->size;
	msgpack_packer pk;

	begin(&pk, to, 2, BROOD_C_READY);
	msgpack_pack_map(&pk, READY_FIELDS);
	mp_key_u64(&pk, READY_NAMES[READY_LAYERS], ready->layers);
	mp_text(&pk, READY_NAMES[READY_PYTHON]);
	mp_text(&pk, ready->python);
	mp_key_u64(&pk, READY_NAMES[READY_BASE_DATA], ready->base_data_bytes);
	mp_key_u64(&pk, READY_NAMES[READY_BASE_AS], ready->base_as_bytes);
	mp_key_u64(&pk, READY_NAMES[READY_START], ready->start_us);
	return brood_message_written(to, before);
}

static int read_ready_field(struct brood_reader *r, enum ready_field field, struct brood_ready *ready)
{
	uint64_t layers;
	int result;

	switch (field) {
	case READY_LAYERS:
		result = read_upto(r, BROOD_LAYER_BIT(BROOD_LAYER_COUNT) - 1, &layers);
		if (result == 0)
			ready->layers = (uint32_t)layers;
		return result;
	case READY_PYTHON:
		return brood_message_text(r, ready->python, sizeof(ready->python) - 1);
	case READY_BASE_DATA:
		return read_upto(r, INT64_MAX, &ready->base_data_bytes);
	case READY_BASE_AS:
		return read_upto(r, INT64_MAX, &ready->base_as_bytes);
	case READY_START:
		return read_upto(r, INT64_MAX, &ready->start_us);
	case READY_FIELDS:
		break;
	}
	return BROOD_E_UNKNOWN;
}

int brood_ready_parse(const uint8_t *packet, size_t len, struct brood_ready *out)
{
	struct brood_ready ready = {0};
	struct brood_reader r;
	unsigned seen = 0;
	uint32_t count;
	int result = open_packet(&r, packet, len, 2, BROOD_C_READY);

	if (result == 0)
		result = brood_read_map(&r, &count);
	if (result < 0)
		return result;
	for (; count > 0; count--) {
		int field = brood_message_key(&r, READY_NAMES, READY_FIELDS, &seen);

		if (field < 0)
			return field;
		result = read_ready_field(&r, (enum ready_field)field, &ready);
		if (result < 0)
			return result;
	}
	if (seen != (1u << READY_FIELDS) - 1)
		return BROOD_E_MISSING;
	*out = ready;
	return 0;
}
