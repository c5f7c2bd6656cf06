/* Every parser of packets between supervisor and zygote. */
#include "protocol/messages.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum brood_control type;
	struct brood_start start;
	struct brood_ready ready;
	struct brood_failed failed;
	struct brood_exited exited;
	uint64_t worker;
	int32_t pid;
	bool warm;
	int error;

	brood_control_type(data, size, &type);
	if (brood_start_parse(data, size, &start) == 0)
		brood_start_free(&start);
	brood_ready_parse(data, size, &ready);
	brood_failed_parse(data, size, &failed);
	brood_fork_parse(data, size, &worker, &warm);
	brood_forked_parse(data, size, &worker, &pid);
	brood_fork_failed_parse(data, size, &worker, &error);
	brood_exited_parse(data, size, &exited);
	return 0;
}
