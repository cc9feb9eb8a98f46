// SPDX-License-Identifier: Apache-2.0
#include "util/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Without O_NONBLOCK a FIFO would wait for its writer. */
#define OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)

int input_open(const char *path)
{
	struct stat status;
	int fd;

	if (stat(path, &status))
		return -errno;
	if (!S_ISREG(status.st_mode))
		return S_ISDIR(status.st_mode) ? -EISDIR : -EINVAL;
	fd = open(path, OPEN_FLAGS);
	return fd < 0 ? -errno : fd;
}

ssize_t input_read_fd(int fd, char *text, size_t max)
{
	size_t len = 0;

	while (len < max) {
		ssize_t got = read(fd, text + len, max - len);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		len += (size_t)got;
	}
	return (ssize_t)len;
}

static bool is_fifo(int fd)
{
	struct stat status;

	return !fstat(fd, &status) && S_ISFIFO(status.st_mode);
}

ssize_t input_read(const char *path, char *text, size_t max)
{
	int fd = open(path, OPEN_FLAGS);
	ssize_t len, more = 0;

	if (fd < 0)
		return -errno;
	len = read(fd, text, max);
	if (len < 0)
		len = errno == EAGAIN ? 0 : -errno;
	else if (len == 0 && is_fifo(fd))
		len = -EPIPE;
	if (len >= 0 && fcntl(fd, F_SETFL, 0))
		len = -errno;
	if (len >= 0)
		more = input_read_fd(fd, text + len, max - (size_t)len);
	close(fd);
	return more < 0 ? more : len + more;
}

const char *input_error(int code)
{
	switch (code) {
	case EISDIR:
		return "is a directory";
	case EINVAL:
		return "is not a regular file";
	case EPIPE:
		return "nobody writes to this FIFO";
	default:
		return strerror(code);
	}
}
