// SPDX-License-Identifier: Apache-2.0
#include "util/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Without O_NONBLOCK, opening a FIFO would wait for a writer. */
#define OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)

/* Opens the file that `place`, an O_PATH descriptor, was checked to be. Its path may lead to a
 * device by now. */
static int path_at_open(int place, const char *path)
{
	struct stat status, opened;
	char name[64];
	int fd;

	if (fstat(place, &status))
		return -errno;
	if (!S_ISREG(status.st_mode))
		return S_ISDIR(status.st_mode) ? -EISDIR : -EINVAL;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", place);
	fd = open(name, OPEN_FLAGS);
	if (fd >= 0 || errno != ENOENT)
		return fd < 0 ? -errno : fd;
	/* /proc is not mounted. */
	fd = open(path, OPEN_FLAGS);
	if (fd < 0)
		return -errno;
	if (!fstat(fd, &opened) && opened.st_ino == status.st_ino && opened.st_dev == status.st_dev)
		return fd;
	close(fd);
	return -ESTALE;
}

int input_open(const char *path)
{
	int place = open(path, O_PATH | O_CLOEXEC), fd;

	if (place < 0)
		return -errno;
	fd = path_at_open(place, path);
	close(place);
	return fd;
}

static struct timespec time_of(const struct statx_timestamp *time)
{
	return (struct timespec){time->tv_sec, time->tv_nsec};
}

static int stat_known(int fd, const char *path, int flags, struct stat *status)
{
	struct statx known;

	if (statx(fd, path, flags | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &known))
		return -1;
	*status = (struct stat){.st_dev = makedev(known.stx_dev_major, known.stx_dev_minor),
				.st_ino = known.stx_ino,
				.st_mode = known.stx_mode,
				.st_nlink = known.stx_nlink,
				.st_uid = known.stx_uid,
				.st_gid = known.stx_gid,
				.st_size = (off_t)known.stx_size,
				.st_mtim = time_of(&known.stx_mtime),
				.st_ctim = time_of(&known.stx_ctime)};
	return 0;
}

int input_stat(int fd, struct stat *status)
{
	return stat_known(fd, "", AT_EMPTY_PATH, status);
}

int input_stat_link(const char *path, struct stat *status)
{
	return stat_known(AT_FDCWD, path, 0, status);
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
