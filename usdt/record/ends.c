// SPDX-License-Identifier: Apache-2.0
#include "usdt/record/ends.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Symbols of usdt/libwaffle.map that the libc has, too. */
#define INSTEAD __attribute__((visibility("default"), weak))

static void (*ends_flush)(void);

static void flush(void)
{
	if (ends_flush)
		ends_flush();
}

void ends_watch(void (*flush_all)(void))
{
	ends_flush = flush_all;
	/* The first that is registered runs last. Inside of the libc it ends in another _exit(). */
	at_quick_exit(flush);
}

static _Noreturn void end(int status)
{
	flush();
	for (;;)
		syscall(SYS_exit_group, status);
}

INSTEAD _Noreturn void _exit(int status)
{
	end(status);
}

INSTEAD _Noreturn void _Exit(int status)
{
	end(status);
}

/* Input and output of a daemon. Returns as daemon(). */
static int null_open(void)
{
	int fd = open("/dev/null", O_RDWR);
	struct stat null;

	if (fd < 0)
		return -1;
	if (fstat(fd, &null) || !S_ISCHR(null.st_mode) || null.st_rdev != makedev(1, 3)) {
		close(fd);
		errno = ENODEV;
		return -1;
	}
	for (int standard = 0; standard < 3; standard++)
		dup2(fd, standard);
	if (fd > 2)
		close(fd);
	return 0;
}

/* As its manual page says. */
INSTEAD int daemon(int keep_folder, int keep_files)
{
	pid_t child = fork();

	if (child < 0)
		return -1;
	if (child)
		_exit(0);
	if (setsid() < 0)
		return -1;
	if (!keep_folder && chdir("/"))
		errno = 0; /* it stays where it is */
	return keep_files ? 0 : null_open();
}
