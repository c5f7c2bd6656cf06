/*
 * Runs in:   brood-zygote.
 * Trusts:    the supervisor that has started it, and its START.
 * Blocks on: what its steps block on; see there.
 *
 * A zygote is born in the namespaces that the supervisor could get, with four descriptors (protocol/fds.h), and becomes in a few steps
 * a started, locked CPython that only forks. The order of the steps matters:
 * the interpreter is looked for while the host's files are in sight; the root is built while there are rights to mount; then all
 * rights go, and only then does Python start, so that no module is ever imported with a capability; the lock comes last, when no
 * foreign code will run in this process any more. The first step that fails is reported in FAILED, and the process ends:
 * nothing goes on with less protection than it says.
 */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "protocol/scan.h"
#include "zygote/control.h"
#include "zygote/proc.h"
#include "zygote/zygote.h"

static const struct step {
	const char *name;
	int (*run)(struct zyg *z);
} STEPS[] = {
	{"start", zyg_step_start},	   {"interpreter", zyg_step_interpreter}, {"root", zyg_step_root},
	{"privilege", zyg_step_privilege}, {"python", zyg_step_python},		  {"preload", zyg_step_preload},
	{"lock", zyg_step_lock},
};

uint64_t zyg_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

void zyg_log(const char *format, ...)
{
	char line[1024];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(line, sizeof(line) - 1, format, args);
	va_end(args);
	if (len < 0)
		return;
	if (len > (int)sizeof(line) - 2)
		len = (int)sizeof(line) - 2;
	line[len++] = '\n';
	/* One write, so that lines of several processes do not mix. A log that is gone is no reason to stop. */
	if (write(STDERR_FILENO, line, (size_t)len) < 0)
		return;
}

void zyg_make_line(char *text)
{
	size_t len = strlen(text);

	/* Control characters of a module's exception do not belong in a line. */
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = ' ';
	/* snprintf may have cut a character in two, and paths need not be UTF-8; what is sent must be. */
	text[brood_utf8_prefix((const uint8_t *)text, len, len)] = '\0';
	if (brood_utf8_valid((const uint8_t *)text, strlen(text)))
		return;
	for (char *c = text; *c; c++)
		if ((unsigned char)*c >= 0x80)
			*c = '?';
}

int zyg_fail(struct zyg *z, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(z->failed.message, sizeof(z->failed.message), format, args);
	va_end(args);
	zyg_make_line(z->failed.message);
	z->failed.error = error;
	return -1;
}

/* A process of its own session has no terminal. Signal state is inherited from whoever started us; ours is declared. */
/* A thread's whole stack counts against a worker's memory limit, touched or not: 8 MiB each would leave room for few. */
#define THREAD_STACK (2 * 1024 * 1024)

static void small_thread_stacks(void)
{
	pthread_attr_t attributes;

	if (pthread_attr_init(&attributes) != 0)
		return;
	if (pthread_attr_setstacksize(&attributes, THREAD_STACK) == 0)
		pthread_setattr_default_np(&attributes);
	pthread_attr_destroy(&attributes);
}

/* By the system call: glibc's signal() passes over two signals that it keeps for threads, and they may come to us ignored as well. */
static void default_signals(void)
{
	const struct {
		void (*handler)(int);
		unsigned long flags;
		void (*restorer)(void);
		unsigned long mask;
	} plain = {.handler = SIG_DFL};

	for (int sig = 1; sig < _NSIG; sig++)
		syscall(SYS_rt_sigaction, sig, &plain, NULL, sizeof(plain.mask));
}

static void declare_state(void)
{
	sigset_t none;

	setsid();
	umask(022);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	default_signals();
	/* Each arena of malloc reserves 64 MiB of address space, which workers are short of. */
	mallopt(M_ARENA_MAX, 2);
	/* A worker lives for one call: memory that was touched once is kept, not given back and faulted in again. */
	mallopt(M_TRIM_THRESHOLD, 64 * 1024 * 1024);
	small_thread_stacks();
}

_Noreturn static void report_and_exit(struct zyg *z, const char *step)
{
	if (!z->failed.step[0])
		snprintf(z->failed.step, sizeof(z->failed.step), "%s", step);
	zyg_make_line(z->failed.step);
	zyg_log("zygote: %s: %s", z->failed.step, z->failed.message);
	zyg_control_failed(&z->failed);
	/* Not exit(): handlers that preloaded modules registered have no business here. */
	_exit(EXIT_FAILURE);
}

int main(void)
{
	/* Too large for a stack, and needed until the end. */
	static struct zyg zygote = {.proc = -1, .pagemap = -1, .memory = -1, .signals = -1};

	zygote.born_us = zyg_now_us();
	declare_state();
	for (size_t i = 0; i < sizeof(STEPS) / sizeof(STEPS[0]); i++)
		if (STEPS[i].run(&zygote) < 0)
			report_and_exit(&zygote, STEPS[i].name);
	zyg_serve(&zygote);
}
