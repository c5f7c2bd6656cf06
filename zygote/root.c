/*
 * Runs in:   brood-zygote, in a mount namespace of its own, with the rights to mount.
 * Trusts:    the profile's paths.
 * Blocks on: the file system.
 *
 * The new root is an empty, small tmpfs with read-only binds of what this Python needs to import its modules, at the paths where the
 * host has them: the standard library, the directories of shared libraries, site-packages, the profile's paths, the time
 * zones, four device nodes. There is no /etc, /proc, /sys, /home or /tmp. Parents of what is shown are empty directories of our own.
 *
 * Two changes of root. The first makes a tmpfs the root that holds the host's tree under /old and the new root under /new: so no source
 * can be hidden by the place where we build, wherever it lies. It is put on /proc, the one directory that is sure to
 * exist, as /proc/self is open. The second makes /new the root and lets go of everything else.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <patchlevel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "zygote/mounts.h"
#include "zygote/plan.h"
#include "zygote/zygote.h"

#define STRING_(x) #x
#define STRING(x) STRING_(x)
#define STDLIB_ZIP BROOD_PYTHON_PREFIX "/lib/python" STRING(PY_MAJOR_VERSION) STRING(PY_MINOR_VERSION) ".zip"

#define SHOWN_FLAGS (MS_RDONLY | MS_NOSUID | MS_NODEV)

/* Shown where the host has them. The loader looks in these places even without its cache, which is in /etc. */
static const char *const OPTIONAL[] = {
	STDLIB_ZIP,
	BROOD_PYTHON_PLATSTDLIB,
#ifdef __x86_64__
	"/lib/x86_64-linux-gnu",
	"/usr/lib/x86_64-linux-gnu",
#endif
#ifdef __aarch64__
	"/lib/aarch64-linux-gnu",
	"/usr/lib/aarch64-linux-gnu",
#endif
	"/lib64",
	"/usr/lib64",
	"/usr/share/zoneinfo",
	"/usr/lib/locale/C.utf8",
};

/* Bound with their devices alive, so without nodev. */
static const char *const DEVICES[] = {"/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* --- what is shown --- */

/* The directory of each library that this process has loaded: where the rest of them will be found. */
static int add_library(struct dl_phdr_info *info, size_t size, void *plan)
{
	size_t len = strlen(info->dlpi_name);
	char path[PATH_MAX];
	char *slash;

	(void)size;
	/* The program itself and the vdso have no path. */
	if (info->dlpi_name[0] != '/' || len >= sizeof(path))
		return 0;
	memcpy(path, info->dlpi_name, len + 1);
	slash = strrchr(path, '/');
	if (slash == path)
		return 0;
	*slash = '\0';
	return zyg_plan_add(plan, path);
}

static int add_optional(struct zyg_plan *plan, const char *path)
{
	int error = zyg_plan_add(plan, path);

	return error == -ENOENT || error == -ENOTDIR ? 0 : error;
}

/* A prefix other than /usr keeps libraries of its own beside its Python. */
static int add_prefix_lib(struct zyg_plan *plan, const char *prefix)
{
	char path[PATH_MAX];

	if (strcmp(prefix, "/usr") == 0)
		return 0;
	snprintf(path, sizeof(path), "%s/lib", prefix);
	return add_optional(plan, path);
}

static int add_profile_paths(struct zyg *z, struct zyg_plan *plan)
{
	for (size_t i = 0; i < z->start.paths_count; i++) {
		int error = zyg_plan_add(plan, z->start.paths[i]);

		if (error)
			return zyg_fail(z, -error,
					"profile '%s': the path %s cannot be shown: %s; correct or remove it",
					z->start.profile, z->start.paths[i], strerror(-error));
	}
	return 0;
}

/*
 * Debian's choice between implementations of a library (libblas, liblapack) is a link by way of /etc/alternatives. Of that directory only the
 * links that a library leads through are shown, and only to profiles that use installed packages, as the standard library needs none.
 */
static int add_library_choices(struct zyg_plan *plan, const char *libraries)
{
	static const char CHOICES[] = "/etc/alternatives/";
	DIR *directory = opendir(libraries);
	const struct dirent *entry;
	int error = 0;

	if (!directory)
		return 0;
	while (!error && (entry = readdir(directory)) != NULL) {
		char target[PATH_MAX];
		ssize_t len = entry->d_type == DT_LNK
				      ? readlinkat(dirfd(directory), entry->d_name, target, sizeof(target) - 1)
				      : -1;

		if (len <= 0)
			continue;
		target[len] = '\0';
		if (strncmp(target, CHOICES, sizeof(CHOICES) - 1) == 0)
			error = add_optional(plan, target);
	}
	closedir(directory);
	return error;
}

static int make_plan(struct zyg *z, struct zyg_plan *plan)
{
	int error = zyg_plan_add(plan, BROOD_PYTHON_STDLIB);

	if (!error)
		error = dl_iterate_phdr(add_library, plan);
	for (size_t i = 0; i < COUNT(OPTIONAL) && !error; i++)
		error = add_optional(plan, OPTIONAL[i]);
	if (!error)
		error = add_prefix_lib(plan, BROOD_PYTHON_PREFIX);
	if (!error && z->python.foreign)
		error = add_prefix_lib(plan, z->python.prefix);
	for (size_t i = 0; i < z->python.site_count && !error; i++)
		error = zyg_plan_add(plan, z->python.site[i]);
	for (size_t i = 0; i < COUNT(OPTIONAL) && z->python.site_count > 0 && !error; i++)
		error = add_library_choices(plan, OPTIONAL[i]);
	if (error)
		return zyg_fail(z, -error, "cannot find what Python needs: %s", strerror(-error));
	if (add_profile_paths(z, plan) < 0)
		return -1;
	zyg_plan_finish(plan);
	return 0;
}

/* --- how --- */

static int pivot(const char *to, const char *old)
{
	return syscall(SYS_pivot_root, to, old) < 0 ? -errno : 0;
}

static int enter_stage(struct zyg *z)
{
	const unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
	int error;

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return zyg_fail(z, errno, "cannot make the mounts private: %s", strerror(errno));
	if (mount("brood", "/proc", "tmpfs", flags, "size=64k,nr_inodes=16,mode=755") < 0)
		return zyg_fail(z, errno, "cannot mount a tmpfs: %s", strerror(errno));
	if (chdir("/proc") < 0 || mkdir("old", 0755) < 0 || mkdir("new", 0755) < 0)
		return zyg_fail(z, errno, "cannot prepare the new root: %s", strerror(errno));
	error = pivot(".", "old");
	if (error)
		return zyg_fail(
			z, -error,
			"pivot_root: %s; the root of this machine or container is no mount of its own, so run Brood "
			"without the mount namespace",
			strerror(-error));
	if (chdir("/") < 0 || mount("brood", "/new", "tmpfs", flags, "size=1m,nr_inodes=8192,mode=755") < 0)
		return zyg_fail(z, errno, "cannot mount the new root: %s", strerror(errno));
	return 0;
}

/* Makes the directories above the last part of a path. */
static int make_parents(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		int made;

		*slash = '\0';
		made = mkdir(path, 0755);
		*slash = '/';
		if (made < 0 && errno != EEXIST)
			return -errno;
	}
	return 0;
}

/* An empty directory or file to mount on. */
static int make_place(const char *path, bool directory)
{
	int fd;

	if (directory)
		return mkdir(path, 0755) < 0 && errno != EEXIST ? -errno : 0;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

/* A bind of the host's `path`, less the rights in `flags`. MS_REC as a user namespace must not uncover what is mounted below. */
static int bind_shown(const char *path, unsigned long flags, int proc)
{
	char source[PATH_MAX], target[PATH_MAX];
	struct stat st;
	int error;

	if (snprintf(source, sizeof(source), "/old%s", path) >= (int)sizeof(source))
		return -ENAMETOOLONG;
	snprintf(target, sizeof(target), "/new%s", path);
	if (stat(source, &st) < 0)
		return -errno;
	error = make_parents(target);
	if (!error)
		error = make_place(target, S_ISDIR(st.st_mode));
	if (error)
		return error;
	if (mount(source, target, NULL, MS_BIND | MS_REC, NULL) < 0)
		return -errno;
	return zyg_mount_restrict(target, flags, proc);
}

static int link_shown(const struct zyg_shown *item)
{
	char target[PATH_MAX];
	int error;

	if (snprintf(target, sizeof(target), "/new%s", item->path) >= (int)sizeof(target))
		return -ENAMETOOLONG;
	error = make_parents(target);
	if (error)
		return error;
	return symlink(item->link, target) < 0 && errno != EEXIST ? -errno : 0;
}

static int show_all(struct zyg *z, const struct zyg_plan *plan)
{
	for (size_t i = 0; i < plan->count; i++) {
		const struct zyg_shown *item = &plan->item[i];
		int error = item->link ? link_shown(item) : bind_shown(item->path, SHOWN_FLAGS, z->proc);

		if (error)
			return zyg_fail(z, -error, "cannot show %s in the new root: %s", item->path, strerror(-error));
	}
	for (size_t i = 0; i < COUNT(DEVICES); i++) {
		int error = bind_shown(DEVICES[i], MS_NOSUID | MS_NOEXEC, z->proc);

		if (error)
			return zyg_fail(z, -error, "cannot show %s in the new root: %s", DEVICES[i], strerror(-error));
	}
	return 0;
}

static int leave_stage(struct zyg *z)
{
	int error = chdir("/new") < 0 ? -errno : 0;

	/* The old root lands on top of the new one and is then taken away; nothing needs a name for it. */
	if (!error)
		error = pivot(".", ".");
	if (!error && umount2(".", MNT_DETACH) < 0)
		error = -errno;
	if (!error && chdir("/") < 0)
		error = -errno;
	if (error)
		return zyg_fail(z, -error, "cannot change to the new root: %s", strerror(-error));
	error = zyg_mount_restrict("/", MS_NOSUID | MS_RDONLY, z->proc);
	if (error)
		return zyg_fail(z, -error, "cannot make the new root read-only: %s", strerror(-error));
	return 0;
}

/* --- is it so? --- */

static bool has_flags(const char *path, unsigned long flags)
{
	struct statvfs st;

	return statvfs(path, &st) == 0 && (st.f_flag & flags) == flags;
}

static int check_root(struct zyg *z, const struct zyg_plan *plan)
{
	if (!has_flags("/", ST_RDONLY | ST_NOSUID | ST_NODEV) || mkdir("/brood", 0700) == 0 || errno != EROFS)
		return zyg_fail(z, 0, "the new root is not read-only");
	for (size_t i = 0; i < plan->count; i++)
		if (!plan->item[i].link && !has_flags(plan->item[i].path, ST_RDONLY | ST_NOSUID | ST_NODEV))
			return zyg_fail(z, 0, "%s is not read-only in the new root", plan->item[i].path);
	if (access("/proc", F_OK) == 0 || access("/old", F_OK) == 0)
		return zyg_fail(z, 0, "the host's files are still in sight");
	z->layers |= BROOD_LAYER_BIT(BROOD_LAYER_ROOT);
	return 0;
}

static int set_hostname(struct zyg *z)
{
	if (!(z->layers & BROOD_LAYER_BIT(BROOD_LAYER_UTS_NS)))
		return 0;
	if (sethostname("brood", 5) < 0 || setdomainname("", 0) < 0)
		return zyg_fail(z, errno, "cannot set the host name: %s", strerror(errno));
	return 0;
}

int zyg_step_root(struct zyg *z)
{
	struct zyg_plan plan = {.item = NULL};
	int result;

	if (set_hostname(z) < 0)
		return -1;
	if (!(z->layers & BROOD_LAYER_BIT(BROOD_LAYER_MOUNT_NS))) {
		/* Not to stand in a directory that somebody else wants to remove. */
		return chdir("/") < 0 ? zyg_fail(z, errno, "cannot change to /: %s", strerror(errno)) : 0;
	}
	result = make_plan(z, &plan);
	if (result == 0)
		result = enter_stage(z);
	if (result == 0)
		result = show_all(z, &plan);
	if (result == 0)
		result = leave_stage(z);
	if (result == 0)
		result = check_root(z, &plan);
	zyg_plan_free(&plan);
	return result;
}
