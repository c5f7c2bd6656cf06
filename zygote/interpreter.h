/*
 * Which Python the code shall believe to run in: the one this program embeds, or another installation or virtual environment
 * of the same version, whose modules are used with the embedded interpreter.
 */
#ifndef BROOD_ZYGOTE_INTERPRETER_H
#define BROOD_ZYGOTE_INTERPRETER_H

#include <stdbool.h>
#include <stddef.h>

#include "protocol/messages.h"

#define ZYG_SITES_MAX 8

struct zyg_interpreter {
	char executable[BROOD_TEXT_MAX + 1]; /* sys.executable */
	char version[32];		     /* of the embedded one, as it says itself; set once it runs */
	char prefix[BROOD_TEXT_MAX + 1];     /* sys.prefix */
	bool foreign; /* another installation than the embedded one, and not a virtual environment */
	size_t site_count;
	char site[ZYG_SITES_MAX][BROOD_TEXT_MAX + 1]; /* site-packages directories that exist */
};

#endif
