// SPDX-License-Identifier: Apache-2.0
/* Whether a library may be loaded into a process. */
#include <elf.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "target/inject/inject_internal.h"
#include "target/process/opener.h"
#include "target/process/process_tids.h"
#include "target/process/root.h"
#include "util/text.h"

/* The machine of the process's program, or a negative errno. */
static int machine_of(pid_t pid)
{
	char path[32];
	Elf64_Ehdr header = {0};
	int fd;
	bool whole;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	fd = opener_file(-1, path);
	if (fd < 0)
		return fd;
	whole = read(fd, &header, sizeof(header)) == sizeof(header);
	close(fd);
	return whole && header.e_ident[EI_CLASS] == ELFCLASS64 ? header.e_machine : 0;
}

static int machine_check(pid_t pid, struct error *err)
{
	int machine = machine_of(pid);

	if (machine == -ETIMEDOUT || machine == -EBUSY)
		return error_set(err, -machine, "the file system of its program does not answer");
	return machine == EM_X86_64 ? 0 : error_set(err, EOPNOTSUPP, "it is no program of x86-64");
}

/* The process with which it shares its memory, such as the parent of a child of vfork(): what the
 * child's loader does would be done to the parent. 0: none is known. */
static pid_t memory_sharer(pid_t pid)
{
	pid_t parent = process_parent(pid);

	return parent > 0 && !syscall(SYS_kcmp, pid, parent, KCMP_VM, 0, 0) ? parent : 0;
}

/* The text behind a word that begins a line of /proc/PID/status, which `text` gets. NULL: none. */
static const char *status_line(pid_t pid, const char *word, char *text, size_t size)
{
	char path[32];
	const char *found;
	int fd;
	ssize_t got;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	got = fd < 0 ? -1 : read(fd, text, size - 1);
	text[got < 0 ? 0 : got] = '\0';
	if (fd >= 0)
		close(fd);
	found = strstr(text, word);
	return found ? found + strlen(word) : NULL;
}

int inject_check_process(pid_t pid, struct error *err)
{
	char text[4096];
	const char *line = status_line(pid, "\nTracerPid:\t", text, sizeof(text));
	pid_t sharer;
	long tracer = line ? strtol(line, NULL, 10) : 0;

#ifndef __x86_64__
	return error_set(err, EOPNOTSUPP, "this is done on x86-64 only");
#endif
	if (!line)
		return error_set(err, ESRCH, "no such process");
	if (machine_check(pid, err))
		return -EOPNOTSUPP;
	if (tracer)
		return error_set(err, EBUSY, "process %ld traces it, such as a debugger or strace",
				 tracer);
	line = status_line(pid, "\nState:\t", text, sizeof(text));
	if (line && strchr("TtZX", *line))
		return error_set(err, EBUSY, "it is stopped or has ended (state %c)", *line);
	sharer = memory_sharer(pid);
	if (sharer)
		return error_set(err, EBUSY,
				 "it has the memory of process %d, which waits in "
				 "vfork() until it executes a program",
				 sharer);
	line = status_line(pid, "\nx86_Thread_features:\t", text, sizeof(text));
	if (line && strcspn(line, "\n") > strlen("shstk") - 1 && text_begins(line, "shstk"))
		return error_set(err, EOPNOTSUPP, "it has a shadow stack");
	if (process_is_confined(pid))
		return error_set(
			err, EPERM,
			"its sandbox (seccomp) could end it because of what a library does");
	return 0;
}

/* Whether nobody but root and the user of the process can replace a file or folder. */
static bool is_guarded(const struct stat *status, uid_t user)
{
	bool others = status->st_mode & (S_IWGRP | S_IWOTH);

	/* In a sticky folder others can't replace what is not theirs. */
	if (S_ISDIR(status->st_mode) && status->st_mode & S_ISVTX && !status->st_uid)
		others = false;
	return !others && (!status->st_uid || status->st_uid == user);
}

/* Whether the file and all folders of its real path are guarded. `path` is changed meanwhile. */
static bool path_is_guarded(char *path, uid_t user)
{
	struct stat status;

	for (char *slash = path + strlen(path); slash; slash = strrchr(path, '/')) {
		*slash = '\0';
		if (stat(*path ? path : "/", &status) || !is_guarded(&status, user))
			return false;
	}
	return true;
}

static bool user_of(pid_t pid, uid_t *user)
{
	char path[32];
	struct stat status;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	if (stat(path, &status))
		return false;
	*user = status.st_uid;
	return true;
}

/* Whether the process sees the same file at this path. */
static bool is_seen(pid_t pid, const char *path, const struct stat *own)
{
	struct stat status = {0};
	struct root root;
	int fd;

	if (root_open(&root, pid))
		return false;
	fd = root_file(&root, path);
	root_close(&root);
	if (fd < 0)
		return false;
	if (fstat(fd, &status))
		status.st_ino = 0;
	close(fd);
	return status.st_ino == own->st_ino && status.st_dev == own->st_dev;
}

int inject_check_file(pid_t pid, const char *library, struct error *err)
{
	char real[PATH_MAX], guarded[PATH_MAX];
	struct stat status;
	uid_t user;

	if (!realpath(library, real) || stat(real, &status))
		return error_set(err, errno, "%s: %s", library, strerror(errno));
	if (!user_of(pid, &user))
		return error_set(err, ESRCH, "no such process");
	strcpy(guarded, real);
	if (!S_ISREG(status.st_mode) || !path_is_guarded(guarded, user))
		return error_set(err, EPERM,
				 "%s: others than root and the user of the process can replace it",
				 real);
	if (!(status.st_mode & S_IROTH) && status.st_uid != user && user)
		return error_set(err, EACCES, "%s: the process may not read it", real);
	if (!is_seen(pid, library, &status))
		return error_set(err, ENOENT,
				 "it does not see %s, as in a container; install waffle there, and "
				 "start the program with CUDA_INJECTION64_PATH=%s",
				 library, library);
	return 0;
}
