/*
 * What a root of our own will show of the host: places to bind, and the symbolic links that lead to them.
 */
#ifndef BROOD_ZYGOTE_PLAN_H
#define BROOD_ZYGOTE_PLAN_H

#include <stddef.h>

struct zyg_shown {
	char *path; /* absolute, without symbolic links in it */
	char *link; /* the text of the symbolic link to make there; NULL: bind the host's file or directory */
};

struct zyg_plan {
	struct zyg_shown *item;
	size_t count, room;
};

/*
 * Adds a path, absolute on the host, and whatever symbolic links are on its way. 0, or a negative errno (ENOENT: it is not
 * there; ELOOP; ENAMETOOLONG; EINVAL: not absolute, or the root itself). On failure some links may have been added; they do no harm.
 */
int zyg_plan_add(struct zyg_plan *plan, const char *path);

/* Orders parents before children and drops what an added directory already shows. */
void zyg_plan_finish(struct zyg_plan *plan);

void zyg_plan_free(struct zyg_plan *plan);

#endif
