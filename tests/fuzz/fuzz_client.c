/* What a client may send: messages one after another, and the parameters of every method. */
#include <stdlib.h>
#include <string.h>

#include "protocol/scan.h"
#include "supervisor/rpc.h"
#include "tests/fuzz/fuzz.h"

static void take(const uint8_t *message, size_t len)
{
	char error[SUP_RPC_ERROR_MAX] = "";
	struct brood_limits limits;
	struct sup_run run;
	struct sup_rpc rpc;
	uint64_t version;
	uint32_t id;

	if (sup_rpc_parse(message, len, &rpc, error) < 0) {
		if (error[0] == '\0')
			abort(); /* a refusal says why */
		return;
	}
	brood_limits_preset(&limits);
	if (sup_run_parse(rpc.params, &run, error) == 0) {
		if (run.map.data < message || run.map.data + run.map.len > message + len)
			abort();
		sup_run_limits(&run, "default", &limits, error);
	}
	sup_hello_parse(rpc.params, &version, error);
	sup_cancel_parse(rpc.params, &id, error);
	sup_status_parse(rpc.params, error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct brood_scan scan;
	size_t end;

	for (;;) {
		brood_scan_init(&scan, 65536, BROOD_SCAN_DEPTH);
		if (brood_scan_feed(&scan, data, size, &end) != 1)
			return 0;
		take(data, end);
		data += end;
		size -= end;
	}
}
