/* What a worker used, measured from outside. */
#ifndef BROOD_SUPERVISOR_USAGE_H
#define BROOD_SUPERVISOR_USAGE_H

#include <stdint.h>
#include <sys/types.h>

/* The pid, in our own namespace, of the process behind a pidfd; -1 when it cannot be told (no /proc, or it is gone). */
pid_t sup_pidfd_pid(int pidfd);

/* Opens /proc/PID/status for sup_peak_memory; -1 when it cannot. */
int sup_open_status(pid_t pid);

/* User and system time of all the process's threads so far, µs; 0 when it cannot be read. */
uint64_t sup_cpu_us(pid_t pid);

/* Highest resident size so far (VmHWM), bytes; 0 when it cannot be read. Costs about 3 µs. */
uint64_t sup_peak_memory(int status_fd);

#endif
