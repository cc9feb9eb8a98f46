// SPDX-License-Identifier: Apache-2.0
#include "target/process/process_tids.h"

#include <dirent.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target/process/process.h"
#include "util/clock.h"

#define PARENTS_MAX 1000
#define THREADS_MAX 4096

/* The last number of the line "NSpid:". */
uint32_t process_seen_tid(pid_t pid, uint32_t tid)
{
	char path[64], line[512];
	uint32_t seen = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%u/status", pid, tid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	while (!seen && fgets(line, sizeof(line), file)) {
		const char *last = strrchr(line, '\t');

		if (!strncmp(line, "NSpid:", 6) && last)
			seen = (uint32_t)strtoul(last + 1, NULL, 10);
	}
	fclose(file);
	return seen;
}

bool process_has_tid(pid_t pid, uint32_t tid)
{
	return tid && process_seen_tid(pid, tid) == tid;
}

void process_tids_each(pid_t pid, void (*each)(uint32_t seen, uint32_t tid, void *arg), void *arg)
{
	char path[64];
	struct dirent *entry;
	DIR *folder;

	if (process_has_tid(pid, (uint32_t)pid)) /* all threads are in our namespace */
		return;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	folder = opendir(path);
	for (unsigned i = 0; folder && i < THREADS_MAX && (entry = readdir(folder)); i++) {
		uint32_t tid = (uint32_t)strtoul(entry->d_name, NULL, 10);
		uint32_t seen = tid ? process_seen_tid(pid, tid) : 0;

		if (seen)
			each(seen, tid, arg);
	}
	if (folder)
		closedir(folder);
}

/* Reads the number after a word that begins a line of /proc/PID/status. -1: there is none. */
static long status_number(pid_t pid, const char *word)
{
	char path[32], line[256];
	long number = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "re");
	if (!file)
		return -1;
	while (number < 0 && fgets(line, sizeof(line), file))
		if (!strncmp(line, word, strlen(word)))
			number = strtol(line + strlen(word), NULL, 10);
	fclose(file);
	return number;
}

static ino_t pid_namespace(pid_t pid)
{
	struct stat status;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", pid);
	return stat(path, &status) ? 0 : status.st_ino;
}

bool process_any_sees_others(uint64_t until_ns)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	bool found = !proc;

	while (!found && (entry = readdir(proc))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
		uint32_t seen = pid > 0 ? process_seen_tid(pid, (uint32_t)pid) : 0;

		found = pid > 0 && ((seen ? seen != (uint32_t)pid : !process_has_ended(pid)) ||
				    clock_monotonic_ns() >= until_ns);
	}
	if (proc)
		closedir(proc);
	return found;
}

/* The outermost process of a process's container, or of the machine. */
static pid_t container_first(pid_t pid)
{
	ino_t namespace = pid_namespace(pid);

	for (unsigned i = 0; i < PARENTS_MAX; i++) {
		pid_t parent = process_parent(pid);

		if (parent <= 0 || pid_namespace(parent) != namespace)
			break;
		pid = parent;
	}
	return pid;
}

bool process_is_confined(pid_t pid)
{
	long mode = status_number(pid, "Seccomp:"), mine, first;

	if (mode != SECCOMP_MODE_FILTER)
		return mode == SECCOMP_MODE_STRICT;
	mine = status_number(pid, "Seccomp_filters:");
	first = status_number(container_first(pid), "Seccomp_filters:");
	return mine < 0 || mine != first;
}

bool process_has_other_time(pid_t pid)
{
	struct stat mine, its;
	char path[64];

	/* Kernels without time namespaces (before 5.6) have no such file. */
	if (stat("/proc/self/ns/time", &mine))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/ns/time", pid);
	return stat(path, &its) || its.st_ino != mine.st_ino;
}
