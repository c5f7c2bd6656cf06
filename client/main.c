/*
 * Runs in:   brood
 * Trusts:    its user
 * Blocks on: see command.c
 */
#include <fcntl.h>
#include <unistd.h>

#include "client/command.h"

/* 0, 1 and 2 must be something, or the next descriptor that is opened would become one of them. */
static void ensure_standard_fds(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	ensure_standard_fds();
	return cli_main(argc, argv);
}
