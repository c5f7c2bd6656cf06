/*
 * Descriptor numbers that a process is born with. Everything else is O_CLOEXEC (or closed by close_range).
 */
#ifndef BROOD_PROTOCOL_FDS_H
#define BROOD_PROTOCOL_FDS_H

/* brood-zygote: 0 is /dev/null; 1 and 2 are a pipe whose lines the supervisor logs. */
#define BROOD_ZYG_FD_CONTROL 3
#define BROOD_ZYG_FD_COUNT 4

/* A worker: 0 is /dev/null; 1 and 2 are the call's raw output. */
#define BROOD_WRK_FD_STDOUT 1
#define BROOD_WRK_FD_STDERR 2
#define BROOD_WRK_FD_REQUEST 3
#define BROOD_WRK_FD_ANSWER 4
#define BROOD_WRK_FD_COUNT 5

/* The order of the four descriptors that travel with FORK. */
enum brood_fork_fd {
	BROOD_FORK_STDOUT,
	BROOD_FORK_STDERR,
	BROOD_FORK_REQUEST,
	BROOD_FORK_ANSWER,
	BROOD_FORK_FDS,
};

#endif
