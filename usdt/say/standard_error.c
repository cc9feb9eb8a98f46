// SPDX-License-Identifier: Apache-2.0
#include "usdt/say/standard_error.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <termios.h>
#include <unistd.h>

#define NULL_DEVICE makedev(1, 3)

/* Descriptor 2 when the library was loaded. `st_mode` 0: it was closed, or did not look like
 * standard error. */
static struct stat at_load;
static bool noted;

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_rdev == b->st_rdev &&
	       (a->st_mode & S_IFMT) == (b->st_mode & S_IFMT);
}

static bool is_also_output(const struct stat *status)
{
	struct stat output;

	return !fstat(STDOUT_FILENO, &output) && is_same(status, &output);
}

/* The library may be loaded late. What a program opens itself is mostly closed by an exec, can be
 * read as well, or is a socket. */
static bool looks_usual(const struct stat *status)
{
	int flags = fcntl(STDERR_FILENO, F_GETFD), mode = fcntl(STDERR_FILENO, F_GETFL);
	struct termios terminal;

	if (flags < 0 || flags & FD_CLOEXEC || mode < 0)
		return false;
	switch (status->st_mode & S_IFMT) {
	case S_IFCHR:
		return status->st_rdev == NULL_DEVICE || !tcgetattr(STDERR_FILENO, &terminal);
	case S_IFREG:
	case S_IFIFO:
		return (mode & O_ACCMODE) == O_WRONLY || is_also_output(status);
	default:
		return is_also_output(status);
	}
}

/* Another constructor of the library may have something to say before this one runs. */
__attribute__((constructor)) static void standard_error_note(void)
{
	struct stat status;
	int code = errno;

	if (noted)
		return;
	noted = true;
	if (!fstat(STDERR_FILENO, &status) && looks_usual(&status))
		at_load = status;
	errno = code;
}

bool standard_error_is_there(void)
{
	struct stat now;
	int code = errno;
	bool there;

	standard_error_note();
	there = !fstat(STDERR_FILENO, &now) &&
		((at_load.st_mode && is_same(&now, &at_load)) || is_also_output(&now));

	errno = code;
	return there;
}
