/*
 * The kernel's classic BPF, as far as seccomp programs use it, in user space: shows what a program says about calls that cannot be
 * made here, such as those of another architecture.
 */
#ifndef BROOD_TESTS_SECCOMP_BPF_H
#define BROOD_TESTS_SECCOMP_BPF_H

#include <stdint.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

/* The program's verdict (SECCOMP_RET_*). Ends the test program when it meets an instruction that seccomp does not have. */
uint32_t bpf_run(const struct sock_fprog *prog, const struct seccomp_data *data);

#endif
