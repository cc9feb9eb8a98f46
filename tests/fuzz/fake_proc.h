/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulates a process whose files in /proc have any contents. It replaces open(), fopen(),
 * readlink(), statx() and kill() of the C library. Other processes are invisible, so that an input
 * has the same effect on every machine. For programs with a single source file.
 */
#ifndef WAFFLE_FUZZ_FAKE_PROC_H
#define WAFFLE_FUZZ_FAKE_PROC_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FAKE_PID 4194305 /* unused: PID_MAX_LIMIT of include/linux/threads.h */

static struct {
	const void *bytes; /* of its files, and of the machine's tables; NULL: no process */
	size_t size;
	int folder;        /* open directory of the process; -1: none */
	struct statx info; /* result of statx() for its descriptors */
} fake = {.folder = -1};

int open(const char *path, int flags, ...);
int open64(const char *path, int flags, ...);
int openat(int folder, const char *path, int flags, ...);
int openat64(int folder, const char *path, int flags, ...);
FILE *fopen(const char *path, const char *mode);
FILE *fopen64(const char *path, const char *mode);

enum fake_path {
	FAKE_NO, /* not simulated */
	FAKE_FOLDER,
	FAKE_FILE,
	FAKE_GONE
};

static enum fake_path fake_path(int folder, const char *path)
{
	static const char *const tables[] = {"/proc/self/mountinfo", "/proc/stat", "/proc/cmdline",
					     "/sys/dev/block/"};
	char *end;
	long pid;

	if (folder >= 0 && folder == fake.folder)
		return FAKE_FILE;
	for (size_t i = 0; fake.bytes && i < sizeof(tables) / sizeof(tables[0]); i++)
		if (!strncmp(path, tables[i], strlen(tables[i])))
			return FAKE_FILE;
	if (strncmp(path, "/proc/", 6) != 0 || path[6] < '0' || path[6] > '9')
		return FAKE_NO;
	pid = strtol(path + 6, &end, 10);
	if (pid == getpid() && !fake.bytes)
		return FAKE_NO;
	if (pid != FAKE_PID || !fake.bytes)
		return FAKE_GONE;
	return *end ? FAKE_FILE : FAKE_FOLDER;
}

static inline int fake_open(int folder, const char *path, int flags, mode_t mode)
{
	int fd;

	switch (fake_path(folder, path)) {
	case FAKE_NO:
		return (int)syscall(SYS_openat, folder, path, flags, mode);
	case FAKE_FOLDER:
		fake.folder = (int)syscall(SYS_openat, AT_FDCWD, "/", O_PATH | O_CLOEXEC, 0);
		return fake.folder;
	case FAKE_FILE:
		fd = memfd_create("fake", MFD_CLOEXEC);
		if (fd < 0 || write(fd, fake.bytes, fake.size) != (ssize_t)fake.size ||
		    lseek(fd, 0, SEEK_SET))
			abort();
		return fd;
	default:
		errno = ENOENT;
		return -1;
	}
}

static inline mode_t fake_mode(int flags, va_list args)
{
	return flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, mode_t) : 0;
}

#define FAKE_OPEN(folder)                                                                          \
	va_list args;                                                                              \
	int fd;                                                                                    \
                                                                                                   \
	va_start(args, flags);                                                                     \
	fd = fake_open(folder, path, flags, fake_mode(flags, args));                               \
	va_end(args);                                                                              \
	return fd

int open(const char *path, int flags, ...)
{
	FAKE_OPEN(AT_FDCWD);
}

int open64(const char *path, int flags, ...)
{
	FAKE_OPEN(AT_FDCWD);
}

int openat(int folder, const char *path, int flags, ...)
{
	FAKE_OPEN(folder);
}

int openat64(int folder, const char *path, int flags, ...)
{
	FAKE_OPEN(folder);
}

FILE *fopen(const char *path, const char *mode)
{
	int access = strchr(mode, '+') ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY;
	int create = mode[0] == 'w' ? O_CREAT | O_TRUNC : mode[0] == 'a' ? O_CREAT | O_APPEND : 0;
	int fd = fake_open(AT_FDCWD, path, access | create | (strchr(mode, 'e') ? O_CLOEXEC : 0),
			   0666);

	return fd < 0 ? NULL : fdopen(fd, mode);
}

FILE *fopen64(const char *path, const char *mode)
{
	return fopen(path, mode);
}

/* A link leads to the first line of the contents. */
ssize_t readlink(const char *path, char *to, size_t size)
{
	const char *end;
	size_t len = fake.size;

	switch (fake_path(AT_FDCWD, path)) {
	case FAKE_NO:
		return syscall(SYS_readlinkat, AT_FDCWD, path, to, size);
	case FAKE_FILE:
		end = memchr(fake.bytes, '\n', fake.size);
		len = end ? (size_t)(end - (const char *)fake.bytes) : len;
		len = len < size ? len : size;
		memcpy(to, fake.bytes, len);
		return (ssize_t)len;
	default:
		errno = ENOENT;
		return -1;
	}
}

int statx(int folder, const char *restrict path, int flags, unsigned mask,
	  struct statx *restrict info)
{
	switch (fake_path(folder, path)) {
	case FAKE_NO:
		return (int)syscall(SYS_statx, folder, path, flags, mask, info);
	case FAKE_FILE:
		*info = fake.info;
		return 0;
	default:
		errno = ENOENT;
		return -1;
	}
}

int kill(pid_t pid, int signal)
{
	siginfo_t info;

	if (!signal && pid == FAKE_PID && fake.bytes)
		return 0;
	/* Code that reads records ends nothing but its own processes: on a very busy machine the
	 * one that opens files may be too slow. */
	if (signal == SIGKILL && !waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT))
		return (int)syscall(SYS_kill, pid, signal);
	if (signal)
		abort();
	errno = ESRCH;
	return -1;
}

#endif
