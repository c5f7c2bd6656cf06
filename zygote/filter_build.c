/*
 * Runs in:   brood-zygote; zyg_filter_set_self and zyg_filter_load also in its children.
 * Trusts:    the tables of filter.c.
 * Blocks on: nothing.
 *
 * libseccomp turns the tables into a program once, before the lock, and the program is read back from a memory file. A worker then
 * needs no library to load it, only one system call.
 *
 * A worker must reach no process but itself, and its pid is known only after the fork. So the tables name ZYG_SELF_PID, a number that
 * is no pid; the places where the finished program compares with it are found here and overwritten in the child (libseccomp lets rules
 * that end alike share one). If there is none, or the number turns up in another instruction, it has built something else
 * than we think, and nothing is loaded. Should a place be missed, the call is refused: no pid equals ZYG_SELF_PID.
 */
#include "zygote/filter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/seccomp.h>
#include <seccomp.h>

#include "zygote/filter_table.h"

static bool applies(const struct zyg_rule *rule, bool own_root)
{
	switch (rule->when) {
	case ZYG_RULE_ALWAYS:
		return true;
	case ZYG_RULE_OWN_ROOT:
		return own_root;
	case ZYG_RULE_HOST_ROOT:
		return !own_root;
	}
	return false;
}

/* The zygote's table allows some calls whole of which the worker's table allows a part. */
static bool allowed_whole(const struct zyg_rules *rules, int number)
{
	for (size_t i = 0; i < rules->count; i++)
		if (rules->rule[i].number == number && rules->rule[i].count == 0)
			return true;
	return false;
}

static bool names_self(const struct zyg_rule *rule)
{
	for (unsigned i = 0; i < rule->count; i++)
		if (rule->condition[i].value == ZYG_SELF_PID)
			return true;
	return false;
}

static int add_rule(scmp_filter_ctx ctx, const struct zyg_rule *rule)
{
	struct scmp_arg_cmp args[ZYG_CONDITIONS_MAX];
	uint32_t action = rule->error ? SCMP_ACT_ERRNO((uint32_t)rule->error) : SCMP_ACT_ALLOW;

	for (unsigned i = 0; i < rule->count; i++) {
		const struct zyg_condition *c = &rule->condition[i];

		args[i] = (struct scmp_arg_cmp){
			.arg = c->argument, .op = SCMP_CMP_MASKED_EQ, .datum_a = c->mask, .datum_b = c->value};
	}
	return seccomp_rule_add_exact_array(ctx, action, rule->number, rule->count, args);
}

/* Adds the rules that apply, but for those of calls that `wider` allows whole. Counts the rules that name ZYG_SELF_PID. */
static int add_rules(scmp_filter_ctx ctx, const struct zyg_rules *rules, bool own_root, const struct zyg_rules *wider,
		     size_t *self)
{
	for (size_t i = 0; i < rules->count; i++) {
		const struct zyg_rule *rule = &rules->rule[i];
		int error;

		if (rule->number < 0 || !applies(rule, own_root) || (wider && allowed_whole(wider, rule->number)))
			continue;
		/* A zygote cannot hold a rule about its children's pids; its own table must allow those calls. */
		if (wider && names_self(rule))
			continue;
		error = add_rule(ctx, rule);
		if (error < 0)
			return error;
		*self += names_self(rule);
	}
	return 0;
}

static int fill(scmp_filter_ctx ctx, enum zyg_filter_kind kind, bool own_root, size_t *self)
{
	int error = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);

	if (!error)
		error = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (!error)
		error = add_rules(ctx, &ZYG_REFUSED_RULES, own_root, NULL, self);
	switch (kind) {
	case ZYG_FILTER_ZYGOTE:
		if (!error)
			error = add_rules(ctx, &ZYG_ZYGOTE_RULES, own_root, NULL, self);
		if (!error)
			error = add_rules(ctx, &ZYG_WORKER_RULES, own_root, &ZYG_ZYGOTE_RULES, self);
		break;
	case ZYG_FILTER_WORKER:
		if (!error)
			error = add_rules(ctx, &ZYG_WORKER_RULES, own_root, NULL, self);
		break;
	}
	return error;
}

/* Reads the whole program out of the memory file. */
static int read_program(int fd, struct sock_fprog *out)
{
	struct sock_filter *code;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size == 0 || st.st_size % (off_t)sizeof(*code) || st.st_size / (off_t)sizeof(*code) > BPF_MAXINSNS)
		return -E2BIG;
	code = malloc((size_t)st.st_size);
	if (!code)
		return -ENOMEM;
	if (pread(fd, code, (size_t)st.st_size, 0) != st.st_size) {
		free(code);
		return -EIO;
	}
	*out = (struct sock_fprog){.len = (unsigned short)((size_t)st.st_size / sizeof(*code)), .filter = code};
	return 0;
}

static int export_program(scmp_filter_ctx ctx, struct sock_fprog *out)
{
	int fd = memfd_create("brood-filter", MFD_CLOEXEC);
	int error;

	if (fd < 0)
		return -errno;
	error = seccomp_export_bpf(ctx, fd);
	if (!error)
		error = read_program(fd, out);
	close(fd);
	return error;
}

/* Where the program compares with ZYG_SELF_PID: in 1 to `rules` places, as so many rules name it. */
static int find_self(struct zyg_filter *filter, size_t rules)
{
	size_t found = 0;

	if (rules == 0)
		return 0;
	filter->self = calloc(rules, sizeof(*filter->self));
	if (!filter->self)
		return -ENOMEM;
	for (unsigned short i = 0; i < filter->prog.len; i++) {
		const struct sock_filter *in = &filter->prog.filter[i];

		if (in->k != ZYG_SELF_PID)
			continue;
		if (in->code != (BPF_JMP | BPF_JEQ | BPF_K) || found == rules)
			return -EPROTO;
		filter->self[found++] = i;
	}
	filter->self_count = found;
	return found > 0 ? 0 : -EPROTO;
}

int zyg_filter_build(enum zyg_filter_kind kind, bool own_root, struct zyg_filter *out)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	struct zyg_filter filter = {.self = NULL};
	size_t self = 0;
	int error;

	if (!ctx)
		return -ENOMEM;
	error = fill(ctx, kind, own_root, &self);
	if (!error)
		error = export_program(ctx, &filter.prog);
	seccomp_release(ctx);
	if (!error)
		error = find_self(&filter, self);
	if (error) {
		zyg_filter_free(&filter);
		return error;
	}
	*out = filter;
	return 0;
}

void zyg_filter_free(struct zyg_filter *filter)
{
	if (!filter)
		return;
	free(filter->prog.filter);
	free(filter->self);
	*filter = (struct zyg_filter){.self = NULL};
}

void zyg_filter_set_self(struct zyg_filter *filter, pid_t pid)
{
	for (size_t i = 0; i < filter->self_count; i++)
		filter->prog.filter[filter->self[i]].k = (uint32_t)pid;
}

int zyg_filter_load(const struct sock_fprog *prog)
{
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, prog) < 0 ? -errno : 0;
}
