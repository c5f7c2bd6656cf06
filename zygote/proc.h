/*
 * What a process reads and writes of itself in the host's /proc, through one descriptor that was opened while /proc was in sight.
 */
#ifndef BROOD_ZYGOTE_PROC_H
#define BROOD_ZYGOTE_PROC_H

#include <stddef.h>
#include <stdint.h>

/* /proc/self as an O_PATH directory, or a negative errno. The caller closes it. */
int zyg_proc_open(void);

/* The number of tasks (threads) of this process, or a negative errno. */
int zyg_proc_tasks(int proc);

/* A field of `status` that is given in kB, as bytes: "VmData". 0, or a negative errno and *out untouched. */
int zyg_proc_status(int proc, const char *field, uint64_t *out);

/* Writes text to one of the files (uid_map and its like) in one piece. 0 or a negative errno. */
int zyg_proc_write(int proc, const char *file, const char *text);

#endif
