/*
 * Runs in:   brood
 * Trusts:    its callers
 * Blocks on: nothing
 */
#include "client/request.h"

#include <string.h>

#include "client/exchange.h"
#include "protocol/error.h"
#include "protocol/scan.h"

static void pack_text(msgpack_packer *pk, const char *text)
{
	size_t len = strlen(text);

	msgpack_pack_str(pk, len);
	msgpack_pack_str_body(pk, text, len);
}

/* [0, id, method, params], up to the only element of params if there is one. */
static void pack_head(msgpack_packer *pk, const char *method, size_t params)
{
	msgpack_pack_array(pk, 4);
	msgpack_pack_int(pk, 0);
	msgpack_pack_int(pk, CLI_REQUEST_ID);
	pack_text(pk, method);
	msgpack_pack_array(pk, params);
}

static void pack_code(msgpack_packer *pk, const struct cli_program *program)
{
	struct brood_slice code = program->code;

	pack_text(pk, "code");
	if (program->text && brood_utf8_valid(code.data, code.len)) {
		msgpack_pack_str(pk, code.len);
		msgpack_pack_str_body(pk, code.data, code.len);
	} else {
		msgpack_pack_bin(pk, code.len);
		msgpack_pack_bin_body(pk, code.data, code.len);
	}
	pack_text(pk, "name");
	pack_text(pk, program->name);
}

static size_t limits_count(const struct cli_options *options)
{
	size_t count = 0;

	for (int i = 0; i < BROOD_LIMIT_COUNT; i++)
		count += options->limit_given[i];
	return count;
}

static void pack_limits(msgpack_packer *pk, const struct cli_options *options)
{
	pack_text(pk, "limits");
	msgpack_pack_map(pk, limits_count(options));
	for (int i = 0; i < BROOD_LIMIT_COUNT; i++) {
		if (!options->limit_given[i])
			continue;
		pack_text(pk, BROOD_LIMITS[i].field);
		msgpack_pack_uint64(pk, options->limits.v[i]);
	}
}

/* The packers fail only for want of memory, which leaves the bytes short somewhere. */
static int packed(const msgpack_sbuffer *to, size_t before)
{
	if (to->size - before > BROOD_REQUEST_CEILING)
		return BROOD_E_TOO_LARGE;
	return brood_scan_whole((const uint8_t *)to->data + before, to->size - before, BROOD_SCAN_DEPTH) < 0
		       ? BROOD_E_MEMORY
		       : 0;
}

int cli_request_run(msgpack_sbuffer *to, const struct cli_options *options, const struct cli_program *program)
{
	bool has_limits = limits_count(options) > 0, has_inputs = options->inputs_count > 0;
	size_t before = to->size;
	msgpack_packer pk;

	msgpack_packer_init(&pk, to, msgpack_sbuffer_write);
	pack_head(&pk, "run", 1);
	msgpack_pack_map(&pk, (size_t)3 + has_inputs + has_limits + (options->profile != NULL));
	pack_code(&pk, program);
	pack_text(&pk, "stream");
	if (options->json)
		msgpack_pack_false(&pk);
	else
		msgpack_pack_true(&pk);
	if (has_inputs) {
		pack_text(&pk, "inputs");
		msgpack_pack_map(&pk, options->inputs_count);
		msgpack_sbuffer_write(to, options->inputs.data, options->inputs.size);
	}
	if (has_limits)
		pack_limits(&pk, options);
	if (options->profile) {
		pack_text(&pk, "profile");
		pack_text(&pk, options->profile);
	}
	return packed(to, before);
}

int cli_request_status(msgpack_sbuffer *to)
{
	size_t before = to->size;
	msgpack_packer pk;

	msgpack_packer_init(&pk, to, msgpack_sbuffer_write);
	pack_head(&pk, "status", 0);
	return packed(to, before);
}
