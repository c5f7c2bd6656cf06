/*
 * Runs in:   brood-zygote, before its root is built.
 * Trusts:    the profile's paths; the file system is looked at with lstat and readlink only.
 * Blocks on: the file system.
 *
 * A path is walked part by part. A symbolic link on the way (/lib -> usr/lib) is noted, to be made again in the new root, and
 * the walk goes on from where it leads. So every path that worked outside works inside, and only its end is shown: showing
 * /root/venv shows nothing else of /root.
 */
#include "zygote/plan.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINKS_MAX 40 /* as the kernel */

static int add_item(struct zyg_plan *plan, const char *path, const char *link)
{
	struct zyg_shown item = {.path = strdup(path), .link = link ? strdup(link) : NULL};

	if (plan->count == plan->room) {
		size_t room = plan->room ? 2 * plan->room : 32;
		struct zyg_shown *grown = reallocarray(plan->item, room, sizeof(*grown));

		if (grown) {
			plan->item = grown;
			plan->room = room;
		}
	}
	if (!item.path || (link && !item.link) || plan->count == plan->room) {
		free(item.path);
		free(item.link);
		return -ENOMEM;
	}
	plan->item[plan->count++] = item;
	return 0;
}

/* Cuts the last part off `done`; the root stays the root (""). */
static void step_up(char *done)
{
	char *slash = strrchr(done, '/');

	if (slash)
		*slash = '\0';
}

/* Puts what a link says before the rest of the way. */
static int follow(char *done, char rest[PATH_MAX], const char *target)
{
	char way[PATH_MAX];
	int len = snprintf(way, sizeof(way), "%s/%s", target, rest);

	if (len < 0 || len >= (int)sizeof(way))
		return -ENAMETOOLONG;
	memcpy(rest, way, (size_t)len + 1);
	if (target[0] == '/')
		done[0] = '\0';
	else
		step_up(done);
	return 0;
}

/* Takes the next part of `rest` into `part`: false at the end. */
static bool next_part(char *rest, char part[NAME_MAX + 2])
{
	size_t skip = strspn(rest, "/");
	size_t len = strcspn(rest + skip, "/");

	if (len == 0)
		return false;
	if (len > NAME_MAX + 1)
		len = NAME_MAX + 1; /* too long for any file system: lstat will say so */
	memcpy(part, rest + skip, len);
	part[len] = '\0';
	memmove(rest, rest + skip + len, strlen(rest + skip + len) + 1);
	return true;
}

/* One step down: appends `part` to `done`, and follows it if it is a link. 0 or a negative errno. */
static int step_down(struct zyg_plan *plan, char done[PATH_MAX], char rest[PATH_MAX], const char *part, int *links)
{
	size_t len = strlen(done);
	char target[PATH_MAX];
	struct stat st;
	ssize_t got;
	int error;

	if (len + 1 + strlen(part) >= PATH_MAX)
		return -ENAMETOOLONG;
	sprintf(done + len, "/%s", part);
	if (lstat(done, &st) < 0)
		return -errno;
	if (!S_ISLNK(st.st_mode))
		return 0;
	got = readlink(done, target, sizeof(target) - 1);
	if (got <= 0)
		return got < 0 ? -errno : -ENOENT;
	target[got] = '\0';
	if (++*links > LINKS_MAX)
		return -ELOOP;
	error = add_item(plan, done, target);
	return error ? error : follow(done, rest, target);
}

int zyg_plan_add(struct zyg_plan *plan, const char *path)
{
	char done[PATH_MAX] = "", rest[PATH_MAX], part[NAME_MAX + 2];
	size_t len = strlen(path);
	int links = 0;

	if (path[0] != '/')
		return -EINVAL;
	if (len >= sizeof(rest))
		return -ENAMETOOLONG;
	memcpy(rest, path, len + 1);
	while (next_part(rest, part)) {
		int error = 0;

		/* No link is left in `done`, so going up in the text is going up in the tree. */
		if (strcmp(part, "..") == 0)
			step_up(done);
		else if (strcmp(part, ".") != 0)
			error = step_down(plan, done, rest, part, &links);
		if (error)
			return error;
	}
	return done[0] ? add_item(plan, done, NULL) : -EINVAL;
}

static int by_path(const void *a, const void *b)
{
	const struct zyg_shown *left = a, *right = b;

	return strcmp(left->path, right->path);
}

/* Is `path` the same as, or below, the bound `parent`? */
static bool covered(const struct zyg_shown *parent, const char *path)
{
	size_t len = strlen(parent->path);

	return !parent->link && strncmp(parent->path, path, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

void zyg_plan_finish(struct zyg_plan *plan)
{
	size_t kept = 0;

	qsort(plan->item, plan->count, sizeof(*plan->item), by_path);
	for (size_t i = 0; i < plan->count; i++) {
		struct zyg_shown *item = &plan->item[i];
		bool drop = false;

		for (size_t k = 0; k < kept && !drop; k++)
			drop = covered(&plan->item[k], item->path) ||
			       (item->link && strcmp(plan->item[k].path, item->path) == 0);
		if (drop) {
			free(item->path);
			free(item->link);
			continue;
		}
		plan->item[kept++] = *item;
	}
	plan->count = kept;
}

void zyg_plan_free(struct zyg_plan *plan)
{
	if (!plan)
		return;
	for (size_t i = 0; i < plan->count; i++) {
		free(plan->item[i].path);
		free(plan->item[i].link);
	}
	free(plan->item);
	*plan = (struct zyg_plan){.item = NULL};
}
