/*
 * The machine code and constants of the image: in huge pages where the kernel has them, and mapped in a worker from its birth.
 */
#ifndef BROOD_ZYGOTE_TEXT_H
#define BROOD_ZYGOTE_TEXT_H

#include "zygote/zygote.h"

/*
 * Moves this program's code and constants, the interpreter's among them where it is linked in, to huge pages. Before Python starts, with one
 * task. Leaves all as it is where that cannot be had: it is for speed alone.
 */
void zyg_text_to_huge_pages(struct zyg *z);

/* Makes fork() copy the page tables of mapped program files, before the first worker. For speed alone, likewise. */
void zyg_text_inherit(struct zyg *z);

#endif
