/* The configuration file: any text is a configuration or one line that says what is wrong. */
#include <stdlib.h>
#include <string.h>

#include "supervisor/config.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char error[SUP_CONFIG_ERROR_MAX] = "";
	struct sup_config *config = sup_config_parse("fuzz.conf", (const char *)data, size, error);

	if (!config && error[0] == '\0')
		abort();
	sup_config_free(config);
	return 0;
}
