/* Runs in: tests. Trusts: nothing; a program that leaves its bounds ends the test. Blocks on: nothing. */
#include "tests/seccomp/bpf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Noreturn static void bad(const char *what, unsigned at)
{
	fprintf(stderr, "bpf: %s at instruction %u\n", what, at);
	exit(1);
}

static uint32_t load(const struct seccomp_data *data, uint32_t offset, unsigned at)
{
	uint32_t word;

	if (offset % 4 || offset > sizeof(*data) - 4)
		bad("load outside the data", at);
	memcpy(&word, (const char *)data + offset, 4);
	return word;
}

/* How far a jump goes beyond the next instruction. */
static unsigned jump(const struct sock_filter *in, uint32_t a, unsigned at)
{
	switch (in->code) {
	case BPF_JMP | BPF_JA:
		return in->k;
	case BPF_JMP | BPF_JEQ | BPF_K:
		return a == in->k ? in->jt : in->jf;
	case BPF_JMP | BPF_JGT | BPF_K:
		return a > in->k ? in->jt : in->jf;
	case BPF_JMP | BPF_JGE | BPF_K:
		return a >= in->k ? in->jt : in->jf;
	case BPF_JMP | BPF_JSET | BPF_K:
		return a & in->k ? in->jt : in->jf;
	}
	bad("unknown jump", at);
}

uint32_t bpf_run(const struct sock_fprog *prog, const struct seccomp_data *data)
{
	uint32_t a = 0;

	for (unsigned at = 0; at < prog->len; at++) {
		const struct sock_filter *in = &prog->filter[at];

		if (in->code == (BPF_RET | BPF_K))
			return in->k;
		if (in->code == (BPF_LD | BPF_W | BPF_ABS))
			a = load(data, in->k, at);
		else if (in->code == (BPF_ALU | BPF_AND | BPF_K))
			a &= in->k;
		else
			at += jump(in, a, at);
	}
	bad("no verdict", prog->len);
}
