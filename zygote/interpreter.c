/*
 * Runs in:   brood-zygote, before its root is built.
 * Trusts:    the profile; of the file system only what it reads here, with bounds.
 * Blocks on: the file system.
 *
 * `python` names an interpreter or a virtual environment. Neither is ever executed: the version is read from pyvenv.cfg, from the real
 * name of the executable (python3.11), or from the standard library beside it. It must be the embedded one's, as extension
 * modules fit one version only. The standard library stays the embedded one's; what the named one adds is its site-packages.
 */
#include "zygote/interpreter.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <patchlevel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "zygote/zygote.h"

#define STRING_(x) #x
#define STRING(x) STRING_(x)
#define VERSION STRING(PY_MAJOR_VERSION) "." STRING(PY_MINOR_VERSION)
#define PATH_ROOM (BROOD_TEXT_MAX + 1)

#define CFG_MAX 8192 /* bytes of a pyvenv.cfg that are looked at */

static bool is_directory(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Copies a path, cut to fit. What is copied here comes from the kernel or the build and does fit. */
static void set_path(char to[PATH_ROOM], const char *from)
{
	size_t len = strnlen(from, BROOD_TEXT_MAX);

	memcpy(to, from, len);
	to[len] = '\0';
}

/* Joins two parts of a path; false if it does not fit. */
static bool join(char to[PATH_ROOM], const char *base, const char *rest)
{
	char path[PATH_ROOM];
	int len = snprintf(path, sizeof(path), "%s/%s", base, rest);

	if (len < 0 || len >= (int)sizeof(path))
		return false;
	memcpy(to, path, (size_t)len + 1);
	return true;
}

static void add_site(struct zyg_interpreter *python, const char *path)
{
	size_t len = strlen(path);

	if (python->site_count == ZYG_SITES_MAX || len > BROOD_TEXT_MAX || !is_directory(path))
		return;
	memcpy(python->site[python->site_count++], path, len + 1);
}

/* The embedded interpreter's own: a list that the build asked it for, separated by colons. */
static void add_embedded_sites(struct zyg_interpreter *python)
{
	char list[] = BROOD_PYTHON_SITE;
	char *save = NULL;

	for (char *path = strtok_r(list, ":", &save); path; path = strtok_r(NULL, ":", &save))
		add_site(python, path);
}

/* <prefix>/<lib>/pythonX.Y/site-packages, for both names that installations use. */
static void add_prefix_sites(struct zyg_interpreter *python, const char *prefix)
{
	char path[PATH_ROOM];

	if (join(path, prefix, "lib/python" VERSION "/site-packages"))
		add_site(python, path);
	if (python->site_count == 0 && join(path, prefix, "lib64/python" VERSION "/site-packages"))
		add_site(python, path);
}

/* The file's first CFG_MAX bytes: 0, or a negative errno. */
static int read_text(const char *path, char text[CFG_MAX + 1])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t len;

	if (fd < 0)
		return -errno;
	len = read(fd, text, CFG_MAX);
	close(fd);
	if (len < 0)
		return -EIO;
	text[len] = '\0';
	return 0;
}

/* The value of a line "key = value" of a pyvenv.cfg; false when there is none. */
static bool cfg_value(const char *text, const char *key, char value[256])
{
	size_t key_len = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		const char *at;
		size_t len;

		line += *line == '\n';
		if (strncmp(line, key, key_len) != 0)
			continue;
		at = line + key_len;
		at += strspn(at, " \t");
		if (*at != '=')
			continue;
		at++;
		at += strspn(at, " \t");
		len = strcspn(at, " \t\r\n");
		if (len > 255)
			return false;
		memcpy(value, at, len);
		value[len] = '\0';
		return true;
	}
	return false;
}

/* "3.11.2" or "3.11.2.final.0" against our "3.11". */
static bool version_matches(const char *version)
{
	size_t len = strlen(VERSION);

	return strncmp(version, VERSION, len) == 0 && (version[len] == '.' || version[len] == '\0');
}

static int wrong_version(struct zyg *z, const char *version)
{
	return zyg_fail(z, EINVAL,
			"profile '%s': %s is Python %s but this zygote embeds %s; set `python` to a Python %s",
			z->start.profile, z->start.python, version, VERSION, VERSION);
}

static int use_venv(struct zyg *z, const char *dir, const char *cfg)
{
	char version[256] = "";

	if (!cfg_value(cfg, "version", version) && !cfg_value(cfg, "version_info", version))
		return zyg_fail(z, EINVAL, "profile '%s': %s/pyvenv.cfg names no version; create the environment again",
				z->start.profile, dir);
	if (!version_matches(version))
		return wrong_version(z, version);
	if (!join(z->python.prefix, dir, "") || !join(z->python.executable, dir, "bin/python"))
		return zyg_fail(z, ENAMETOOLONG, "profile '%s': the path %s is too long", z->start.profile, dir);
	z->python.prefix[strlen(dir)] = '\0';
	add_prefix_sites(&z->python, dir);
	if (z->python.site_count == 0)
		return zyg_fail(z, ENOENT,
				"profile '%s': %s has no lib/python%s/site-packages; create the environment again",
				z->start.profile, dir, VERSION);
	if (cfg_value(cfg, "include-system-site-packages", version) && strcmp(version, "true") == 0)
		add_embedded_sites(&z->python);
	return 0;
}

/* Cuts the last part off a path; false when nothing is left. */
static bool parent(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash || slash == path)
		return false;
	*slash = '\0';
	return true;
}

/* bin/python3 of a prefix: leaves the prefix. */
static bool prefix_of(char *path)
{
	return parent(path) ? parent(path) : false;
}

static bool is_embedded(const char *real)
{
	char embedded[PATH_MAX];

	return realpath(BROOD_PYTHON_EXECUTABLE, embedded) && strcmp(real, embedded) == 0;
}

/* Another installation, by its executable: its real name carries the version (bin/python3.11). */
static int use_installation(struct zyg *z)
{
	char real[PATH_MAX], prefix[PATH_ROOM], library[PATH_ROOM];
	const char *name;

	if (!realpath(z->start.python, real))
		return zyg_fail(z, errno, "profile '%s': interpreter %s: %s", z->start.profile, z->start.python,
				strerror(errno));
	name = strrchr(real, '/') + 1;
	set_path(prefix, real);
	if (!prefix_of(prefix))
		return zyg_fail(z, EINVAL, "profile '%s': %s is not an interpreter in a bin directory",
				z->start.profile, z->start.python);
	if (is_embedded(real)) {
		add_embedded_sites(&z->python);
		return 0;
	}
	if (strncmp(name, "python", 6) != 0)
		return zyg_fail(
			z, EINVAL,
			"profile '%s': %s leads to %s, which is no Python interpreter; set `python` to one, or to a "
			"virtual environment",
			z->start.profile, z->start.python, real);
	if (name[6] >= '0' && name[6] <= '9' && strchr(name, '.') && !version_matches(name + 6))
		return wrong_version(z, name + 6);
	if (!join(library, prefix, "lib/python" VERSION "/os.py") || access(library, R_OK) < 0)
		return zyg_fail(
			z, EINVAL,
			"profile '%s': %s has no lib/python%s beside it, so it is not of the version that this zygote "
			"embeds; set `python` to a Python %s",
			z->start.profile, z->start.python, VERSION, VERSION);
	set_path(z->python.prefix, prefix);
	set_path(z->python.executable, real);
	z->python.foreign = true;
	add_prefix_sites(&z->python, prefix);
	return 0;
}

/* A virtual environment is a directory with a pyvenv.cfg; one of its executables may stand for it. */
static int use_named(struct zyg *z)
{
	char dir[PATH_ROOM], file[PATH_ROOM], cfg[CFG_MAX + 1] = "";
	bool directory = is_directory(z->start.python);

	if (z->start.python[0] != '/')
		return zyg_fail(z, EINVAL, "profile '%s': `python` is %s; set it to an absolute path", z->start.profile,
				z->start.python);
	if (access(z->start.python, F_OK) < 0)
		return zyg_fail(
			z, errno, "profile '%s': interpreter %s %s%s; set `python` to a Python %s that can be read",
			z->start.profile, z->start.python, errno == ENOENT ? "does not exist" : "cannot be reached: ",
			errno == ENOENT ? "" : strerror(errno), VERSION);
	snprintf(dir, sizeof(dir), "%s", z->start.python);
	for (size_t len = strlen(dir); len > 1 && dir[len - 1] == '/'; len--)
		dir[len - 1] = '\0';
	if (!directory && !prefix_of(dir))
		return use_installation(z);
	if (join(file, dir, "pyvenv.cfg") && read_text(file, cfg) == 0)
		return use_venv(z, dir, cfg);
	if (directory)
		return zyg_fail(
			z, ENOENT,
			"profile '%s': %s is a directory without pyvenv.cfg; set `python` to a virtual environment or "
			"an interpreter",
			z->start.profile, z->start.python);
	return use_installation(z);
}

int zyg_step_interpreter(struct zyg *z)
{
	set_path(z->python.executable, BROOD_PYTHON_EXECUTABLE);
	set_path(z->python.prefix, BROOD_PYTHON_PREFIX);
	if (z->start.python[0])
		return use_named(z);
	if (access(BROOD_PYTHON_STDLIB "/os.py", R_OK) < 0)
		return zyg_fail(z, errno,
				"profile '%s': the standard library %s of Python %s cannot be read: %s; install it or "
				"build Brood for another Python",
				z->start.profile, BROOD_PYTHON_STDLIB, VERSION, strerror(errno));
	if (z->start.site_packages)
		add_embedded_sites(&z->python);
	return 0;
}
