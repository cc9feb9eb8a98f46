// SPDX-License-Identifier: Apache-2.0
#include "target/process/terminal.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target/process/process.h"
#include "util/text.h"

/* Limits of the search. A process may have a million descriptors. */
#define ANCESTORS_MAX 32
#define DESCRIPTORS_MAX 1024

/* Device numbers: Documentation/admin-guide/devices.txt of Linux. */
#define MAJOR_TTY 5
#define MINOR_TTY 0   /* /dev/tty, the controlling terminal */
#define MAJOR_PTS 136 /* the minor number is that of the terminal */

/* The number of a pseudo-terminal; -1: it is another one. Field 7 of /proc/PID/stat is the
 * controlling terminal; the name before it may contain anything, and ends with the last ')'. */
static int number_of(pid_t pid, const struct terminal_file *file)
{
	char path[64], line[1024] = "";
	const char *end;
	unsigned device;
	FILE *stat;

	if (file->major == MAJOR_PTS)
		return (int)file->minor;
	if (file->major != MAJOR_TTY || file->minor != MINOR_TTY)
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	stat = fopen(path, "re");
	if (!stat)
		return -1;
	end = fgets(line, sizeof(line), stat) ? strrchr(line, ')') : NULL;
	fclose(stat);
	if (!end || sscanf(end, ") %*c %*d %*d %*d %u", &device) != 1 ||
	    (device >> 8 & 0xfff) != MAJOR_PTS)
		return -1;
	return (int)((device & 0xff) | (device >> 12 & 0xfff00));
}

static bool is_master(pid_t pid, const char *fd, int number)
{
	char path[64], line[256];
	bool found = false;
	int index;
	FILE *info;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%.16s", pid, fd);
	info = fopen(path, "re");
	while (info && !found && fgets(line, sizeof(line), info))
		found = sscanf(line, "tty-index: %d", &index) == 1 && index == number;
	if (info)
		fclose(info);
	return found;
}

/* Whether a process holds the other end of a pseudo-terminal. */
static bool holds_master(pid_t pid, int number)
{
	unsigned left = DESCRIPTORS_MAX;
	char path[64], name[PATH_MAX];
	struct dirent *entry;
	bool found = false;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	folder = opendir(path);
	while (folder && !found && left-- && (entry = readdir(folder))) {
		ssize_t len;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		len = readlinkat(dirfd(folder), entry->d_name, name, sizeof(name) - 1);
		name[len > 0 ? len : 0] = '\0';
		found = len > 5 && !strcmp(name + len - 5, "/ptmx") &&
			is_master(pid, entry->d_name, number);
	}
	if (folder)
		closedir(folder);
	return found;
}

/* Whether both see the same terminals. Those of another container may have the same numbers. */
static bool share_mounts(pid_t one, pid_t other)
{
	char path[64];
	struct stat a, b;

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", one);
	if (stat(path, &a))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", other);
	return !stat(path, &b) && a.st_ino == b.st_ino;
}

static pid_t process_of(pid_t pid, int number)
{
	pid_t at = pid;

	for (unsigned i = 0; i < ANCESTORS_MAX; i++) {
		at = process_parent(at);
		if (at <= 0)
			return 0;
		if (share_mounts(pid, at) && holds_master(at, number))
			return at;
	}
	return 0;
}

static bool is_terminal(const struct terminal_file *file)
{
	return file->major == MAJOR_PTS || text_begins(file->name, "/dev/tty") ||
	       !strcmp(file->name, "/dev/console");
}

bool terminal_describe(char *text, size_t size, pid_t pid, const struct terminal_file *file)
{
	char comm[16];
	pid_t other;
	int number;

	if (!is_terminal(file))
		return false;
	number = number_of(pid, file);
	other = number >= 0 ? process_of(pid, number) : 0;
	if (!other) {
		snprintf(text, size, TERMINAL_TEXT);
		return true;
	}
	process_comm(other, comm);
	snprintf(text, size, TERMINAL_OF "%d, %s", other, comm);
	return true;
}

uint32_t terminal_process(const char *text)
{
	return strncmp(text, TERMINAL_OF, strlen(TERMINAL_OF)) != 0
		       ? 0
		       : process_number(text + strlen(TERMINAL_OF));
}
