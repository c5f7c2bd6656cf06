/*
 * The embedded CPython, as far as other files of the zygote need it.
 */
#ifndef BROOD_ZYGOTE_PYTHON_H
#define BROOD_ZYGOTE_PYTHON_H

#include <stddef.h>

/* Takes the current Python exception and writes "Type: message" (cut to `size`). With the GIL held. */
void zyg_python_error(char *to, size_t size);

#endif
