// SPDX-License-Identifier: Apache-2.0
/*
 * Handles files that change on disk during a capture. A file that is written to has different code
 * behind its probes, so they are removed. A file that loses its name, most likely to a new file,
 * stays armed in the processes that have it mapped. But programs that load it must be examined
 * again. inotify(7) reports both by inode, so it also works for files in containers.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "capture/arming/arming_internal.h"
#include "target/process/mounts.h"
#include "target/process/path_at.h"
#include "util/input.h"

/* Events for a name that was added or removed. Other changes of an inode without a write are
 * rare. */
#define WATCH_NAMES (IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF)

/* At most this many events are handled in one call, so that a program that makes events without
 * end cannot occupy the loop. */
#define EVENTS_MAX 16384

/* The file that our view of a path leads to. For a file in a container it is another file, or
 * none. */
enum at_path { AT_PATH_THE_FILE, AT_PATH_ANOTHER, AT_PATH_NOTHING_KNOWN };

static enum at_path at_path(const struct armed_file *file)
{
	int fd = path_at_peek(file->path, 0);
	struct stat status;
	bool same;

	if (fd < 0)
		return AT_PATH_NOTHING_KNOWN;
	same = !input_stat(fd, &status) && status.st_dev == file->dev && status.st_ino == file->ino;
	close(fd);
	return same ? AT_PATH_THE_FILE : AT_PATH_ANOTHER;
}

/* inotify_add_watch() checks whether we may read the file. Some file systems ask their server
 * for that. */
static int watch_add(const struct arming *arming, int fd, uint32_t events)
{
	struct stat status;
	char link[32];

	if (input_stat(fd, &status))
		return -1;
	if (mounts_device_waits(getpid(),
				(uint64_t)major(status.st_dev) << 20 | minor(status.st_dev))) {
		errno = EOPNOTSUPP;
		return -1;
	}
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return inotify_add_watch(arming->changes, link, events);
}

int file_watch(struct arming *arming, struct armed_file *file, int fd)
{
	file->watch = watch_add(arming, fd, WATCH_NAMES | IN_MODIFY);
	if (file->watch < 0) {
		file->watch = 0;
		return -errno;
	}
	file->reachable = at_path(file) == AT_PATH_THE_FILE;
	return 0;
}

void file_unwatch(struct arming *arming, struct armed_file *file)
{
	if (file->watch)
		inotify_rm_watch(arming->changes, file->watch);
	file->watch = 0;
}

void file_watch_less(struct arming *arming, struct armed_file *file, int fd)
{
	if (file->watch)
		watch_add(arming, fd, WATCH_NAMES | IN_CLOSE_WRITE);
}

void arming_watch_links(struct arming *arming, const char *path)
{
	struct stat status;
	char part[4096];
	int fd;

	for (size_t at = 1; arming->changes >= 0 && at < sizeof(part) && path[at - 1]; at++) {
		if (path[at] && path[at] != '/')
			continue;
		snprintf(part, sizeof(part), "%.*s", (int)at, path);
		fd = path_at_peek(part, O_NOFOLLOW);
		if (fd < 0)
			continue;
		if (!input_stat(fd, &status) && S_ISLNK(status.st_mode))
			watch_add(arming, fd, WATCH_NAMES);
		close(fd);
	}
}

static void file_report_replaced(struct arming *arming, struct armed_file *file)
{
	if (!file->mapped)
		return;
	file_report(arming, file,
		    "was replaced by another file; what runs keeps the old one, and the new one is "
		    "armed when it is loaded");
}

void file_replaces(struct arming *arming, const char *path)
{
	for (size_t i = 0; i < arming->files.len; i++)
		if (arming->files.data[i].lost && !strcmp(arming->files.data[i].path, path))
			file_report_replaced(arming, &arming->files.data[i]);
}

/* Disarms and forgets a file that was written to. It is examined again when it is mapped. */
static void file_retire(struct arming *arming, struct armed_file *file)
{
	uint32_t index = (uint32_t)(file - arming->files.data);
	VEC(struct armed *) list = {0};

	for (size_t i = arming->arms.len; i > 0; i--) {
		struct armed *armed;

		if (arming->arms.data[i - 1].file != index)
			continue;
		armed = arm_remove(arming, i - 1);
		if (!vec_push(&list, armed))
			armed_release(armed);
	}
	armed_release_all(list.data, list.len);
	vec_free(&list);
	file_unwatch(arming, file);
	if (file->object && file->mapped)
		file_report(arming, file,
			    "was written to; its probes are off until it is loaded again");
	file->armed_everywhere = file->expected = false;
	file->ino = 0;
}

/* Forgets a file that no process uses and that has no name, since its inode number may be
 * reused. */
static void file_end(struct armed_file *file)
{
	file->watch = 0;
	file->ino = 0;
}

static void file_lose(struct arming *arming, struct armed_file *file, enum at_path now)
{
	if (!file->object || file->lost || !file->ino)
		return;
	file->lost = true;
	if (now == AT_PATH_ANOTHER)
		file_report_replaced(arming, file);
}

/* Returns whether programs may load another file from now on. */
static bool file_change(struct arming *arming, struct armed_file *file, uint32_t what)
{
	enum at_path now;

	if (what & (IN_MODIFY | IN_CLOSE_WRITE)) {
		file_retire(arming, file);
		return true;
	}
	if (what & (IN_DELETE_SELF | IN_IGNORED | IN_UNMOUNT)) {
		file_end(file);
		return true;
	}
	if (!file->reachable)
		return true; /* for a file in a container we cannot check */
	now = at_path(file);
	if (now == AT_PATH_THE_FILE)
		return false;
	file_lose(arming, file, now);
	return true;
}

static struct armed_file *file_watched(struct arming *arming, int watch)
{
	for (size_t i = 0; i < arming->files.len; i++)
		if (watch > 0 && arming->files.data[i].watch == watch)
			return &arming->files.data[i];
	return NULL;
}

/* A symbolic link has changed, or events were lost. */
static void files_check(struct arming *arming)
{
	for (size_t i = 0; i < arming->files.len; i++) {
		struct armed_file *file = &arming->files.data[i];
		enum at_path now = file->reachable ? at_path(file) : AT_PATH_THE_FILE;

		if (now != AT_PATH_THE_FILE)
			file_lose(arming, file, now);
	}
}

int arming_changes_fd(const struct arming *arming)
{
	return arming->changes;
}

void arming_changed(struct arming *arming)
{
	_Alignas(struct inotify_event) char events[4096];
	bool changed = false, others = false;
	unsigned count = 0;
	ssize_t len;

	while (arming->changes >= 0 && count < EVENTS_MAX &&
	       (len = read(arming->changes, events, sizeof(events))) > 0) {
		for (ssize_t at = 0; at < len; count++) {
			const struct inotify_event *event = (void *)(events + at);
			struct armed_file *file = file_watched(arming, event->wd);

			if (file)
				changed |= file_change(arming, file, event->mask);
			else
				others |= !(event->mask & IN_IGNORED);
			at += (ssize_t)(sizeof(*event) + event->len);
		}
	}
	if (others)
		files_check(arming);
	if (changed || others)
		programs_forget(arming);
}

void arming_notices(struct arming *arming, void (*say)(const char *line, void *arg), void *arg)
{
	for (size_t i = 0; i < arming->notices.len; i++) {
		say(arming->notices.data[i], arg);
		free(arming->notices.data[i]);
	}
	arming->notices.len = 0;
}
