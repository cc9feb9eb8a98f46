// SPDX-License-Identifier: Apache-2.0
#include "usdt/record/own_threads.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/clock.h"

#define LOOK_NS 100000000ull

enum thread_file { FILE_READ, FILE_GONE, FILE_UNKNOWN };

/* Reads a file of a thread in /proc. */
static enum thread_file thread_read(const char *tid, const char *file, char *text, size_t size)
{
	char path[64];
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%.20s/%s", tid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? FILE_GONE : FILE_UNKNOWN;
	len = read(fd, text, size - 1);
	if (len < 0 && errno == ESRCH)
		len = 0;
	close(fd);
	text[len > 0 ? len : 0] = '\0';
	return len > 0 ? FILE_READ : len ? FILE_UNKNOWN : FILE_GONE;
}

/* Whether a thread has ended, perhaps without being removed yet, as that of main(). */
static bool has_ended(const char *tid)
{
	char text[256];
	enum thread_file result = thread_read(tid, "stat", text, sizeof(text));
	const char *name = result == FILE_READ ? strrchr(text, ')') : NULL;

	return result == FILE_GONE ||
	       (name && (!strncmp(name, ") Z", 3) || !strncmp(name, ") X", 3)));
}

/* By its name. If a thread of the program has such a name, too, the recording ends too early, and
 * the process goes on. */
static bool is_own(const char *tid)
{
	static const char *const names[] = {"waffle\n", "waffle-file\n", "waffle-send\n",
					    "waffle-gpu\n"};
	char text[32];

	if (thread_read(tid, "comm", text, sizeof(text)) != FILE_READ)
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(text, names[i]))
			return true;
	return false;
}

static bool all_are_own(void)
{
	DIR *folder = opendir("/proc/self/task");
	struct dirent *entry;
	bool all = folder;

	while (all && (entry = readdir(folder)))
		all = *entry->d_name == '.' || is_own(entry->d_name) || has_ended(entry->d_name);
	if (folder)
		closedir(folder);
	return all;
}

bool own_threads_are_all(struct own_threads *own)
{
	uint64_t now = clock_monotonic_ns();
	char main_tid[24];

	if (now - own->looked_ns < LOOK_NS)
		return false;
	own->looked_ns = now;
	snprintf(main_tid, sizeof(main_tid), "%d", (int)getpid());
	return has_ended(main_tid) && all_are_own();
}
