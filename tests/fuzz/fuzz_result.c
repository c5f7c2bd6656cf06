/* What a worker may write: frames, and RESULT. What is accepted makes a record that a client can read. */
#include <stdlib.h>

#include "protocol/frame.h"
#include "protocol/messages.h"
#include "protocol/scan.h"
#include "supervisor/record.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sup_record record = {.status = BROOD_OK, .message = "", .profile = "default"};
	struct brood_result result;
	struct brood_limits limits;
	struct brood_slice payload;
	enum brood_worker_frame type;
	msgpack_sbuffer packed;
	msgpack_packer pk;
	size_t used;

	brood_limits_preset(&limits);
	limits.v[BROOD_LIMIT_VALUE] = 4096;
	if (brood_frame_parse(data, size, 65536, &payload, &used) == 1)
		brood_worker_frame_type(payload.data, payload.len, &type);
	if (brood_result_parse(data, size, &limits, &result) < 0)
		return 0;
	record.result = &result;
	msgpack_sbuffer_init(&packed);
	msgpack_packer_init(&pk, &packed, msgpack_sbuffer_write);
	sup_pack_record(&pk, 1, &record);
	if (brood_scan_whole((const uint8_t *)packed.data, packed.size, BROOD_SCAN_DEPTH) < 0)
		abort();
	msgpack_sbuffer_destroy(&packed);
	return 0;
}
