/*
 * Runs in:   tests.
 * Trusts:    the test that starts it.
 * Blocks on: the end of the zygote.
 *
 * Bears a zygote as broodd does: `zygote_spawn NAMESPACES CONTROL-FD LOG-FD ZYGOTE`. NAMESPACES is a list like "user,pid,net" or
 * "-". Prints the zygote's pid, waits for its end and ends alike (128 plus the signal when there was one).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct {
	const char *name;
	uint64_t flag;
} NAMESPACES[] = {
	{"user", CLONE_NEWUSER}, {"pid", CLONE_NEWPID},	 {"net", CLONE_NEWNET},	      {"ipc", CLONE_NEWIPC},
	{"uts", CLONE_NEWUTS},	 {"mount", CLONE_NEWNS}, {"cgroup", CLONE_NEWCGROUP},
};

_Noreturn static void die(const char *what)
{
	fprintf(stderr, "zygote_spawn: %s: %s\n", what, strerror(errno));
	exit(125);
}

static uint64_t parse_namespaces(char *list)
{
	uint64_t flags = 0;

	for (char *name = strtok(list, ","); name; name = strtok(NULL, ","))
		for (size_t i = 0; i < sizeof(NAMESPACES) / sizeof(NAMESPACES[0]); i++)
			if (strcmp(name, NAMESPACES[i].name) == 0)
				flags |= NAMESPACES[i].flag;
	return flags;
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die(path);
	close(fd);
}

static void put_map(const char *path, unsigned id)
{
	char map[32];

	snprintf(map, sizeof(map), "0 %u 1\n", id);
	put(path, map);
}

/* The child: its maps, its four descriptors, its tie to us, the program. */
_Noreturn static void become_zygote(uint64_t flags, uid_t uid, gid_t gid, int control, int log, char *program)
{
	char *argv[] = {program, NULL}, *envp[] = {NULL};
	int null = open("/dev/null", O_RDWR);

	if (flags & CLONE_NEWUSER) {
		put("/proc/self/setgroups", "deny");
		put_map("/proc/self/uid_map", uid);
		put_map("/proc/self/gid_map", gid);
	}
	/* Out of the way of the places that are filled next. */
	control = fcntl(control, F_DUPFD, 10);
	log = fcntl(log, F_DUPFD, 10);
	if (null < 0 || dup2(null, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0 || dup2(control, 3) < 0)
		die("descriptors");
	close_range(4, ~0U, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execve(program, argv, envp);
	die(program);
}

int main(int argc, char **argv)
{
	struct clone_args args = {.exit_signal = SIGCHLD};
	uid_t uid = getuid();
	gid_t gid = getgid();
	int control, log, status;
	pid_t pid;

	if (argc != 5) {
		fprintf(stderr, "usage: zygote_spawn NAMESPACES CONTROL-FD LOG-FD ZYGOTE\n");
		return 2;
	}
	control = (int)strtol(argv[2], NULL, 10);
	log = (int)strtol(argv[3], NULL, 10);
	args.flags = parse_namespaces(argv[1]);
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (pid < 0)
		die("clone3");
	if (pid == 0)
		become_zygote(args.flags, uid, gid, control, log, argv[4]);
	close(control);
	close(log);
	printf("%d\n", pid);
	fclose(stdout);
	if (waitpid(pid, &status, 0) != pid)
		die("waitpid");
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
