/*
 * Runs in:   tests.
 * Trusts:    nothing.
 * Blocks on: nothing.
 *
 * What the finished programs say, by running them over made-up calls: every rule of the tables both ways and with every unused high bit
 * set; other architectures and x32; and a sweep over all numbers against lists that were reviewed by hand
 * (worker.txt, zygote.txt). A list changes only by hand, so a rule that slips into the tables turns this test red.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/audit.h>
#include <seccomp.h>

#include "tests/seccomp/bpf.h"
#include "zygote/filter.h"
#include "zygote/filter_table.h"

#define X32_BIT 0x40000000u
#define REFUSED (SECCOMP_RET_ERRNO | EPERM)
#define OWN_PID 4242
#define SWEEP_MAX 1024

#ifdef __x86_64__
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#else
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#endif

static unsigned checks, failures;
static bool quiet; /* the control fails on purpose */

static void __attribute__((format(printf, 2, 3))) check(bool good, const char *format, ...)
{
	va_list args;

	checks++;
	if (good)
		return;
	failures++;
	if (quiet)
		return;
	va_start(args, format);
	printf("FAIL ");
	vprintf(format, args);
	printf("\n");
	va_end(args);
}

struct subject {
	const char *name;
	enum zyg_filter_kind kind;
	bool own_root;
	struct zyg_filter filter;
};

static uint32_t verdict(const struct subject *s, int number, const uint64_t args[6])
{
	struct seccomp_data data = {.nr = number, .arch = NATIVE_ARCH};

	memcpy(data.args, args, sizeof(data.args));
	return bpf_run(&s->filter.prog, &data);
}

static uint64_t own(uint64_t value)
{
	return value == ZYG_SELF_PID ? OWN_PID : value;
}

static bool applies(const struct subject *s, const struct zyg_rule *rule)
{
	if (rule->number < 0)
		return false;
	return rule->when == ZYG_RULE_ALWAYS || (rule->when == ZYG_RULE_OWN_ROOT) == s->own_root;
}

/* Does any rule of the tables allow this? The tables' own meaning, computed without libseccomp. */
static bool table_allows(const struct subject *s, int number, const uint64_t args[6])
{
	const struct zyg_rules *tables[] = {&ZYG_WORKER_RULES, s->kind == ZYG_FILTER_ZYGOTE ? &ZYG_ZYGOTE_RULES : NULL};

	for (unsigned t = 0; t < 2 && tables[t]; t++) {
		for (size_t i = 0; i < tables[t]->count; i++) {
			const struct zyg_rule *rule = &tables[t]->rule[i];
			bool holds = rule->number == number && applies(s, rule);

			for (unsigned c = 0; c < rule->count && holds; c++)
				holds = (args[rule->condition[c].argument] & rule->condition[c].mask) ==
					own(rule->condition[c].value);
			if (holds)
				return true;
		}
	}
	return false;
}

static void check_call(const struct subject *s, const struct zyg_rule *rule, const uint64_t args[6], const char *how)
{
	uint32_t got = verdict(s, rule->number, args);
	uint32_t expected = table_allows(s, rule->number, args) ? SECCOMP_RET_ALLOW : REFUSED;

	check(got == expected, "%s: %s(%#lx, %#lx, %#lx, %#lx, %#lx), %s: verdict %#x, expected %#x", s->name,
	      rule->name, args[0], args[1], args[2], args[3], args[4], how, got, expected);
}

/* A rule as written, with each bit of each argument turned over in its turn. */
static void check_rule(const struct subject *s, const struct zyg_rule *rule)
{
	uint64_t args[6] = {0};

	for (unsigned c = 0; c < rule->count; c++)
		args[rule->condition[c].argument] = own(rule->condition[c].value);
	check(verdict(s, rule->number, args) == SECCOMP_RET_ALLOW, "%s: %s is not allowed as its rule says", s->name,
	      rule->name);
	for (unsigned a = 0; a < 6; a++) {
		for (unsigned bit = 0; bit < 64; bit++) {
			args[a] ^= UINT64_C(1) << bit;
			check_call(s, rule, args, "one bit turned");
			args[a] ^= UINT64_C(1) << bit;
		}
		args[a] ^= UINT64_C(0xffffffff) << 32;
		check_call(s, rule, args, "all high bits turned");
		args[a] ^= UINT64_C(0xffffffff) << 32;
	}
}

static void check_rules(const struct subject *s)
{
	for (size_t i = 0; i < ZYG_WORKER_RULES.count; i++)
		if (applies(s, &ZYG_WORKER_RULES.rule[i]) &&
		    (s->kind == ZYG_FILTER_WORKER || ZYG_WORKER_RULES.rule[i].condition[0].value != ZYG_SELF_PID))
			check_rule(s, &ZYG_WORKER_RULES.rule[i]);
	for (size_t i = 0; i < ZYG_ZYGOTE_RULES.count && s->kind == ZYG_FILTER_ZYGOTE; i++)
		if (applies(s, &ZYG_ZYGOTE_RULES.rule[i]))
			check_rule(s, &ZYG_ZYGOTE_RULES.rule[i]);
	for (size_t i = 0; i < ZYG_REFUSED_RULES.count; i++) {
		const struct zyg_rule *rule = &ZYG_REFUSED_RULES.rule[i];
		const uint64_t none[6] = {0};

		if (rule->number >= 0)
			check(verdict(s, rule->number, none) == (SECCOMP_RET_ERRNO | (uint32_t)rule->error),
			      "%s: %s does not fail with its errno", s->name, rule->name);
	}
}

/* Another architecture kills, whatever the number; so does x32, which shares ours. */
static void check_foreign(const struct subject *s)
{
	static const uint32_t FOREIGN[] = {AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_MIPS, AUDIT_ARCH_RISCV64, 0,
					   0xffffffff};

	for (int number = 0; number < SWEEP_MAX; number++) {
		struct seccomp_data data = {.nr = number};

		for (size_t i = 0; i < sizeof(FOREIGN) / sizeof(FOREIGN[0]); i++) {
			data.arch = FOREIGN[i];
			check(bpf_run(&s->filter.prog, &data) == SECCOMP_RET_KILL_PROCESS,
			      "%s: call %d of architecture %#x does not kill", s->name, number, FOREIGN[i]);
		}
#ifdef __x86_64__
		data = (struct seccomp_data){.nr = (int)(X32_BIT | (unsigned)number), .arch = NATIVE_ARCH};
		check(bpf_run(&s->filter.prog, &data) == SECCOMP_RET_KILL_PROCESS, "%s: x32 call %d does not kill",
		      s->name, number);
#endif
	}
}

/* Numbers beyond every table, where no rule may match by accident. */
static void check_extremes(const struct subject *s)
{
	static const unsigned EXTREMES[] = {0x3fffffff, 0x7fffffff, 0x80000000, 0x80000001, 0xc0000000,
					    0xfffffffe, 0xffffffff, 4096,	65536};
	const uint64_t none[6] = {0};

	for (size_t i = 0; i < sizeof(EXTREMES) / sizeof(EXTREMES[0]); i++)
		check(verdict(s, (int)EXTREMES[i], none) != SECCOMP_RET_ALLOW, "%s: call number %#x is allowed",
		      s->name, EXTREMES[i]);
}

/* Is there any argument with which this call is allowed? As good as its rules and nothing can tell. */
static bool reachable(const struct subject *s, int number)
{
	const struct zyg_rules *tables[] = {&ZYG_WORKER_RULES, &ZYG_ZYGOTE_RULES};
	const uint64_t none[6] = {0};

	if (verdict(s, number, none) == SECCOMP_RET_ALLOW)
		return true;
	for (unsigned t = 0; t < 2; t++) {
		for (size_t i = 0; i < tables[t]->count; i++) {
			const struct zyg_rule *rule = &tables[t]->rule[i];
			uint64_t args[6] = {0};

			if (rule->number != number)
				continue;
			for (unsigned c = 0; c < rule->count; c++)
				args[rule->condition[c].argument] = own(rule->condition[c].value);
			if (verdict(s, number, args) == SECCOMP_RET_ALLOW)
				return true;
		}
	}
	return false;
}

/* Marks the calls that a reviewed list names; '#' begins a comment. */
static void read_list(const char *directory, const char *file, bool listed[SWEEP_MAX])
{
	char path[4096], name[256];
	FILE *list;

	snprintf(path, sizeof(path), "%s/%s", directory, file);
	list = fopen(path, "r");
	if (!list) {
		check(false, "%s: %s", path, strerror(errno));
		return;
	}
	while (fgets(name, sizeof(name), list)) {
		int number;

		if (name[0] == '#')
			continue;
		name[strcspn(name, "\n")] = '\0';
		number = seccomp_syscall_resolve_name(name);
		check(number != __NR_SCMP_ERROR, "%s: no such call: %s", path, name);
		if (number >= 0 && number < SWEEP_MAX)
			listed[number] = true;
	}
	fclose(list);
}

static void check_sweep(const struct subject *s, const char *directory)
{
	bool listed[SWEEP_MAX] = {false};
	unsigned allowed = 0;

	read_list(directory, "worker.txt", listed);
	if (s->kind == ZYG_FILTER_ZYGOTE)
		read_list(directory, "zygote.txt", listed);
	for (int number = 0; number < SWEEP_MAX; number++) {
		bool is = reachable(s, number);
		char *name = is != listed[number] ? seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number) : NULL;

		check(is == listed[number], "%s: %s (%d) is %s but the reviewed list says otherwise", s->name,
		      name ? name : "no call", number, is ? "allowed" : "refused");
		free(name);
		allowed += is;
	}
	printf("%s: %u calls allowed for some arguments, %d instructions\n", s->name, allowed, s->filter.prog.len);
}

/* Negative control: a program that allows all must fail what the real ones pass. */
static void check_control(void)
{
	struct sock_filter allow[] = {{.code = BPF_RET | BPF_K, .k = SECCOMP_RET_ALLOW}};
	struct subject open = {"control", ZYG_FILTER_WORKER, true, {.prog = {.len = 1, .filter = allow}}};
	unsigned before = failures, found;

	quiet = true;
	check_rules(&open);
	check_foreign(&open);
	check_extremes(&open);
	quiet = false;
	found = failures - before;
	failures = before;
	check(found > 1000, "the control, a program that allows all, failed %u checks only", found);
}

int main(int argc, char **argv)
{
	struct subject subjects[] = {
		{"worker", ZYG_FILTER_WORKER, true, {.self = NULL}},
		{"worker on the host's root", ZYG_FILTER_WORKER, false, {.self = NULL}},
		{"zygote", ZYG_FILTER_ZYGOTE, true, {.self = NULL}},
		{"zygote on the host's root", ZYG_FILTER_ZYGOTE, false, {.self = NULL}},
	};

	if (argc != 2) {
		fprintf(stderr, "usage: %s DIRECTORY-OF-LISTS\n", argv[0]);
		return 2;
	}
	for (size_t i = 0; i < sizeof(subjects) / sizeof(subjects[0]); i++) {
		struct subject *s = &subjects[i];
		int error = zyg_filter_build(s->kind, s->own_root, &s->filter);

		if (error) {
			printf("FAIL %s cannot be built: %s\n", s->name, strerror(-error));
			return 1;
		}
		zyg_filter_set_self(&s->filter, OWN_PID);
		check_rules(s);
		check_foreign(s);
		check_extremes(s);
		check_sweep(s, argv[1]);
		zyg_filter_free(&s->filter);
	}
	check_control();
	printf("%u checks, %u failures\n", checks, failures);
	return failures ? 1 : 0;
}
