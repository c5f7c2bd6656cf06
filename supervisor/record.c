/*
 * Runs in:   broodd
 * Trusts:    slices that brood_result_parse has judged; output is bytes
 * Blocks on: nothing
 *
 * msgpack-c's packers fail only when the buffer does, which is out of memory; the caller finds that by the buffer.
 */
#include "supervisor/record.h"

#include <string.h>

#include "protocol/scan.h"

static const char *const CODE_NAMES[] = {
	[SUP_RPC_MALFORMED] = "malformed",	 [SUP_RPC_UNKNOWN_METHOD] = "unknown-method",
	[SUP_RPC_BAD_PARAMS] = "bad-params",	 [SUP_RPC_UNKNOWN_PROFILE] = "unknown-profile",
	[SUP_RPC_DUPLICATE_ID] = "duplicate-id", [SUP_RPC_UNSUPPORTED_VERSION] = "unsupported-version",
	[SUP_RPC_UNAVAILABLE] = "unavailable",	 [SUP_RPC_FORBIDDEN] = "forbidden",
};

void sup_pack_text(msgpack_packer *pk, const char *text)
{
	size_t len = strlen(text);

	msgpack_pack_str(pk, len);
	if (brood_utf8_valid((const uint8_t *)text, len)) {
		msgpack_pack_str_body(pk, text, len);
		return;
	}
	for (size_t i = 0; i < len; i++)
		msgpack_pack_str_body(pk, (unsigned char)text[i] < 0x80 ? text + i : "?", 1);
}

static void pack_key_u64(msgpack_packer *pk, const char *key, uint64_t value)
{
	sup_pack_text(pk, key);
	msgpack_pack_uint64(pk, value);
}

static void pack_raw(msgpack_packer *pk, struct brood_slice slice)
{
	if (slice.len > 0)
		pk->callback(pk->data, (const char *)slice.data, slice.len);
	else
		msgpack_pack_nil(pk);
}

void sup_pack_response(msgpack_packer *pk, uint32_t id)
{
	msgpack_pack_array(pk, 4);
	msgpack_pack_int(pk, 1);
	msgpack_pack_uint32(pk, id);
	msgpack_pack_nil(pk);
}

void sup_pack_error(msgpack_packer *pk, bool has_id, uint32_t id, enum sup_rpc_code code, const char *message)
{
	msgpack_pack_array(pk, 4);
	msgpack_pack_int(pk, 1);
	if (has_id)
		msgpack_pack_uint32(pk, id);
	else
		msgpack_pack_nil(pk);
	msgpack_pack_map(pk, 2);
	sup_pack_text(pk, "code");
	sup_pack_text(pk, CODE_NAMES[code]);
	sup_pack_text(pk, "message");
	sup_pack_text(pk, message);
	msgpack_pack_nil(pk);
}

void sup_pack_layers(msgpack_packer *pk, uint32_t layers)
{
	msgpack_pack_array(pk, (size_t)__builtin_popcount(layers));
	for (int i = 0; i < BROOD_LAYER_COUNT; i++) {
		if (layers & BROOD_LAYER_BIT((uint32_t)i))
			sup_pack_text(pk, brood_layer_name((enum brood_layer)i));
	}
}

static void pack_stream(msgpack_packer *pk, const char *key, const struct sup_output *out, bool sent)
{
	size_t len = sent ? 0 : out->len;

	sup_pack_text(pk, key);
	if (len == 0) {
		msgpack_pack_str(pk, 0);
	} else if (brood_utf8_valid(out->data, len)) {
		msgpack_pack_str(pk, len);
		msgpack_pack_str_body(pk, out->data, len);
	} else {
		msgpack_pack_bin(pk, len);
		msgpack_pack_bin_body(pk, out->data, len);
	}
}

static void pack_usage(msgpack_packer *pk, const struct sup_usage *usage)
{
	sup_pack_text(pk, "usage");
	msgpack_pack_map(pk, 4);
	pack_key_u64(pk, "wall_us", usage->wall_us);
	pack_key_u64(pk, "cpu_us", usage->cpu_us);
	pack_key_u64(pk, "peak_memory_bytes", usage->peak_memory_bytes);
	pack_key_u64(pk, "queue_us", usage->queue_us);
}

static void pack_receipt(msgpack_packer *pk, const struct sup_record *record)
{
	sup_pack_text(pk, "receipt");
	msgpack_pack_map(pk, 4);
	sup_pack_text(pk, "layers");
	sup_pack_layers(pk, record->layers);
	sup_pack_text(pk, "image");
	if (record->worker)
		sup_pack_text(pk, "forked");
	else
		msgpack_pack_nil(pk);
	sup_pack_text(pk, "profile");
	sup_pack_text(pk, record->profile);
	pack_key_u64(pk, "worker", record->worker);
}

static void pack_cut(msgpack_packer *pk, const char *what, const struct sup_output *out)
{
	msgpack_pack_map(pk, 4);
	sup_pack_text(pk, "what");
	sup_pack_text(pk, what);
	pack_key_u64(pk, "kept_bytes", out->kept);
	pack_key_u64(pk, "cut_bytes", out->total - out->kept);
	sup_pack_text(pk, "reason");
	sup_pack_text(pk, "beyond output_bytes");
}

/* The supervisor's own cuts, then those that the worker told of. */
static void pack_truncated(msgpack_packer *pk, const struct sup_record *record)
{
	bool out_cut = record->out && record->out->total > record->out->kept;
	bool err_cut = record->err && record->err->total > record->err->kept;
	struct brood_reader theirs = {NULL, NULL};
	uint32_t count = 0;

	if (record->result && record->result->truncated.len > 0) {
		brood_reader_init(&theirs, record->result->truncated.data, record->result->truncated.len);
		if (brood_read_array(&theirs, &count) < 0)
			count = 0;
	}
	sup_pack_text(pk, "truncated");
	msgpack_pack_array(pk, count + out_cut + err_cut);
	if (out_cut)
		pack_cut(pk, "stdout", record->out);
	if (err_cut)
		pack_cut(pk, "stderr", record->err);
	if (count > 0)
		pk->callback(pk->data, (const char *)theirs.pos, (size_t)(theirs.end - theirs.pos));
}

static void pack_ending(msgpack_packer *pk, const struct sup_record *record)
{
	const struct brood_result *result = record->result;
	bool has_code = result ? result->has_exit_code : record->has_exit_code;

	sup_pack_text(pk, "exit_code");
	if (has_code)
		msgpack_pack_int64(pk, result ? result->exit_code : record->exit_code);
	else
		msgpack_pack_nil(pk);
	sup_pack_text(pk, "signal");
	if (record->signal)
		msgpack_pack_int(pk, record->signal);
	else
		msgpack_pack_nil(pk);
}

void sup_pack_record(msgpack_packer *pk, uint32_t id, const struct sup_record *record)
{
	static const struct sup_output NOTHING;
	static const struct brood_result NO_RESULT;
	const struct brood_result *result = record->result ? record->result : &NO_RESULT;

	sup_pack_response(pk, id);
	msgpack_pack_map(pk, 12);
	sup_pack_text(pk, "status");
	sup_pack_text(pk, brood_status_name(record->status));
	sup_pack_text(pk, "message");
	sup_pack_text(pk, record->message);
	sup_pack_text(pk, "value");
	pack_raw(pk, result->value);
	sup_pack_text(pk, "repr");
	pack_raw(pk, result->repr);
	pack_stream(pk, "stdout", record->out ? record->out : &NOTHING, record->stream);
	pack_stream(pk, "stderr", record->err ? record->err : &NOTHING, record->stream);
	sup_pack_text(pk, "error");
	pack_raw(pk, result->error);
	pack_ending(pk, record);
	pack_usage(pk, &record->usage);
	pack_receipt(pk, record);
	pack_truncated(pk, record);
}

void sup_pack_output(msgpack_packer *pk, uint32_t id, bool is_stderr, const uint8_t *data, size_t len)
{
	msgpack_pack_array(pk, 3);
	msgpack_pack_int(pk, 2);
	sup_pack_text(pk, "output");
	msgpack_pack_array(pk, 3);
	msgpack_pack_uint32(pk, id);
	sup_pack_text(pk, is_stderr ? "stderr" : "stdout");
	msgpack_pack_bin(pk, len);
	msgpack_pack_bin_body(pk, data, len);
}
