/*
 * The memory image that every worker is a copy of: laid out so that a worker writes to few of its pages, and which those are.
 */
#ifndef BROOD_ZYGOTE_IMAGE_H
#define BROOD_ZYGOTE_IMAGE_H

#include "zygote/zygote.h"

/*
 * Once, with the GIL held, when Python has nothing left to do in this process: uses up the free blocks that lie scattered over the
 * image, so that what a worker allocates comes from a few fresh pages side by side. Costs the image no resident memory.
 */
void zyg_image_pack(void);

/*
 * Forks a worker for trial, lets it park, and notes in z->setup which pages it wrote to on the way: later workers have those copied in
 * bulk before they begin. The workers' filter and limits must be ready, /proc still open. 0, or what zyg_fail returned: a worker that cannot
 * be confined is found out here. Where the kernel does not tell the pages, none are noted; they are copied one by one then.
 */
int zyg_image_learn(struct zyg *z);

#endif
