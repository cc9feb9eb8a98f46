// SPDX-License-Identifier: Apache-2.0
#include "target/process/pipe_ends.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "target/process/process.h"
#include "util/clock.h"

/* The clock is read after so many descriptors. */
#define CLOCK_DESCRIPTORS 256

#define OF_PROCESS "process "

static const char *end_text(bool write)
{
	return write ? "write end of " : "read end of ";
}

/* Reads what a link of /proc/PID/fd leads to, and how it is open: the permissions of the link show
 * that. False: it is closed. */
static bool pipe_read(int folder, const char *name, struct file_key *key, bool *pipe, mode_t *mode)
{
	const int quiet = AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT;
	struct statx file, link;

	if (statx(folder, name, quiet, STATX_TYPE | STATX_INO, &file))
		return false;
	*pipe = S_ISFIFO(file.stx_mode);
	if (!*pipe)
		return true;
	if (statx(folder, name, quiet | AT_SYMLINK_NOFOLLOW, STATX_MODE, &link))
		return false;
	*mode = link.stx_mode;
	*key = (struct file_key){.ino = file.stx_ino,
				 .dev = file.stx_dev_major << 20 | file.stx_dev_minor};
	return true;
}

bool pipe_end_opposite(struct pipe_end *end, pid_t pid, int fd)
{
	char path[64];
	mode_t mode;
	bool pipe;

	*end = (struct pipe_end){.count = 0};
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
	if (!pipe_read(AT_FDCWD, path, &end->key, &pipe, &mode) || !pipe)
		return false;
	end->write = mode & S_IRUSR;
	return !(mode & S_IRUSR) != !(mode & S_IWUSR);
}

static void holder_add(struct pipe_end *end, pid_t pid)
{
	struct pipe_holder *holder = &end->holders[end->count];

	if (end->last == pid) /* it has several descriptors */
		return;
	if (end->count < PIPE_HOLDERS) {
		holder->pid = pid;
		process_comm(pid, holder->comm);
	}
	end->last = pid;
	end->count++;
}

static void descriptor_add(struct pipe_end *ends, size_t count, pid_t pid,
			   const struct file_key *key, mode_t mode)
{
	for (size_t i = 0; i < count; i++)
		if (ends[i].key.ino == key->ino && ends[i].key.dev == key->dev &&
		    mode & (ends[i].write ? S_IWUSR : S_IRUSR))
			holder_add(&ends[i], pid);
}

/* Searches the descriptors of a thread of the process. Whether all were seen in time, or it is
 * gone. */
static bool thread_search(struct pipe_end *ends, size_t count, pid_t pid, pid_t tid,
			  uint64_t until_ns, bool *any)
{
	unsigned left = CLOCK_DESCRIPTORS;
	struct dirent *entry;
	struct file_key key;
	bool pipe, late = false;
	char path[64];
	mode_t mode;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/fd", tid);
	folder = opendir(path);
	if (!folder)
		return errno == ENOENT || errno == ESRCH;
	while (!late && (entry = readdir(folder))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		*any = true;
		if (pipe_read(dirfd(folder), entry->d_name, &key, &pipe, &mode) && pipe)
			descriptor_add(ends, count, pid, &key, mode);
		if (!--left) {
			left = CLOCK_DESCRIPTORS;
			late = clock_monotonic_ns() >= until_ns;
		}
	}
	closedir(folder);
	return !late;
}

/* A main thread that has exited shows none. */
static bool process_search(struct pipe_end *ends, size_t count, pid_t pid, uint64_t until_ns)
{
	bool any = false, all = thread_search(ends, count, pid, pid, until_ns, &any);
	pid_t live = all && !any ? process_live_task(pid) : pid;

	return all &&
	       (live <= 0 || live == pid || thread_search(ends, count, pid, live, until_ns, &any));
}

bool pipe_ends_find(struct pipe_end *ends, size_t count, uint64_t until_ns)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	bool all = proc;

	while (all && (entry = readdir(proc))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid > 0)
			all = clock_monotonic_ns() < until_ns &&
			      process_search(ends, count, pid, until_ns);
	}
	if (proc)
		closedir(proc);
	return all;
}

void pipe_end_describe(char *text, size_t size, const struct pipe_end *end)
{
	uint32_t named = end->count < PIPE_HOLDERS ? end->count : PIPE_HOLDERS;
	int len;

	text[0] = '\0';
	if (named == 1) {
		snprintf(text, size, "%s" OF_PROCESS "%d, %s", end_text(end->write),
			 end->holders[0].pid, end->holders[0].comm);
		return;
	}
	len = named ? snprintf(text, size, "%s%u processes", end_text(end->write), end->count) : 0;
	for (uint32_t i = 0; i < named && len < (int)size; i++)
		len += snprintf(text + len, size - (size_t)len, "%s%s (%d)", i ? ", " : ": ",
				end->holders[i].comm, end->holders[i].pid);
	if (end->count > named && len < (int)size)
		snprintf(text + len, size - (size_t)len, ", …");
}

uint32_t pipe_end_process(const char *text)
{
	const char *fifo = DESCRIPTOR_FIFO DESCRIPTOR_AFTER " ";

	if (!strncmp(text, fifo, strlen(fifo)))
		text += strlen(fifo);
	for (int write = 0; write < 2; write++) {
		size_t len = strlen(end_text(write));

		if (!strncmp(text, end_text(write), len) &&
		    !strncmp(text + len, OF_PROCESS, strlen(OF_PROCESS)))
			return process_number(text + len + strlen(OF_PROCESS));
	}
	return 0;
}
