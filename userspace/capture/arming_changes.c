// SPDX-License-Identifier: Apache-2.0
/*
 * Handles files that change on disk during a capture. A file that is written to has different code
 * behind its probes, so they are removed. A file that loses its name, most likely to a new file,
 * stays armed in the processes that have it mapped. But programs that load it must be examined
 * again. inotify(7) reports both by inode, so it also works for files in containers.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/arming_internal.h"

/* A name was added or removed. Other changes of an inode that are no writes are rare. */
#define WATCH_NAMES (IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF)

/* Whether a path leads us to the file. It does not for a file in a container. */
static bool leads_to(const char *path, const struct file *file)
{
	struct stat status;

	return !stat(path, &status) && status.st_dev == file->dev && status.st_ino == file->ino;
}

int file_watch(struct arming *arming, struct file *file, int fd)
{
	char link[32];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	file->watch = inotify_add_watch(arming->changes, link, WATCH_NAMES | IN_MODIFY);
	if (file->watch < 0) {
		file->watch = 0;
		return -errno;
	}
	file->reachable = leads_to(file->path, file);
	return 0;
}

void file_unwatch(struct arming *arming, struct file *file)
{
	if (file->watch)
		inotify_rm_watch(arming->changes, file->watch);
	file->watch = 0;
}

void file_watch_less(struct arming *arming, struct file *file, int fd)
{
	char link[32];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (file->watch)
		inotify_add_watch(arming->changes, link, WATCH_NAMES | IN_CLOSE_WRITE);
}

void arming_watch_links(struct arming *arming, const char *path)
{
	char part[4096];
	struct stat status;

	for (size_t at = 1; arming->changes >= 0 && at < sizeof(part) && path[at - 1]; at++) {
		if (path[at] && path[at] != '/')
			continue;
		snprintf(part, sizeof(part), "%.*s", (int)at, path);
		if (!lstat(part, &status) && S_ISLNK(status.st_mode))
			inotify_add_watch(arming->changes, part, WATCH_NAMES | IN_DONT_FOLLOW);
	}
}

void file_tell(struct arming *arming, struct file *file, const char *what)
{
	char line[4400], *copy;

	for (size_t i = 0; i < arming->files.len; i++)
		if (arming->files.data[i].told && !strcmp(arming->files.data[i].path, file->path))
			return;
	file->told = true;
	snprintf(line, sizeof(line), "%s %s", file->path, what);
	copy = strdup(line);
	if (copy && !vec_push(&arming->notices, copy))
		free(copy);
}

static void file_tell_replaced(struct arming *arming, struct file *file)
{
	if (!file->came)
		return;
	file_tell(arming, file,
		  "was replaced by another file; what runs keeps the old one, and the new one is "
		  "armed when it is loaded");
}

void file_replaces(struct arming *arming, const char *path)
{
	for (size_t i = 0; i < arming->files.len; i++)
		if (arming->files.data[i].lost && !strcmp(arming->files.data[i].path, path))
			file_tell_replaced(arming, &arming->files.data[i]);
}

/* Disarms and forgets a file that was written to. It is examined again when it is mapped. */
static void file_retire(struct arming *arming, struct file *file)
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
	if (file->object && file->came)
		file_tell(arming, file,
			  "was written to; its probes are off until it is loaded again");
	file->armed_everywhere = file->expected = false;
	file->ino = 0;
}

/* Forgets a file that no process uses and that has no name, since its inode number may be
 * reused. */
static void file_end(struct file *file)
{
	file->watch = 0;
	file->ino = 0;
}

static void file_lose(struct arming *arming, struct file *file)
{
	struct stat status;

	if (!file->object || file->lost || !file->ino)
		return;
	file->lost = true;
	if (!stat(file->path, &status))
		file_tell_replaced(arming, file);
}

/* Returns whether programs may load another file from now on. */
static bool file_change(struct arming *arming, struct file *file, uint32_t what)
{
	if (what & (IN_MODIFY | IN_CLOSE_WRITE))
		file_retire(arming, file);
	else if (what & (IN_DELETE_SELF | IN_IGNORED | IN_UNMOUNT))
		file_end(file);
	else if (!file->reachable)
		return true; /* for a file in a container we cannot check */
	else if (leads_to(file->path, file))
		return false;
	else
		file_lose(arming, file);
	return true;
}

/* Handles a change of a file, or of a symbolic link to files. `watch` -1: events were lost. */
static bool watch_change(struct arming *arming, int watch, uint32_t what)
{
	for (size_t i = 0; i < arming->files.len; i++)
		if (watch > 0 && arming->files.data[i].watch == watch)
			return file_change(arming, &arming->files.data[i], what);
	for (size_t i = 0; i < arming->files.len; i++) {
		struct file *file = &arming->files.data[i];

		if (file->reachable && !leads_to(file->path, file))
			file_lose(arming, file);
	}
	return true;
}

int arming_changes_fd(const struct arming *arming)
{
	return arming->changes;
}

void arming_changed(struct arming *arming)
{
	_Alignas(struct inotify_event) char events[4096];
	bool changed = false;
	ssize_t len;

	while (arming->changes >= 0 && (len = read(arming->changes, events, sizeof(events))) > 0) {
		for (ssize_t at = 0; at < len;) {
			const struct inotify_event *event = (void *)(events + at);

			changed |= watch_change(arming, event->wd, event->mask);
			at += (ssize_t)(sizeof(*event) + event->len);
		}
	}
	if (changed)
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
