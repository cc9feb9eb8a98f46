// SPDX-License-Identifier: Apache-2.0
/*
 * Files that change on disk during a capture. One that is written to has other code behind its
 * probes: they are taken off. One that has lost its name, to another file most likely, stays with
 * the processes that have it mapped; but a program that is known to be armed with all that it loads
 * is not known any more. inotify(7) tells of both, by inodes, so of files in containers, too.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/arming_internal.h"

/* A name of it went, or came; other changes of an inode that are no writes are rare. */
#define WATCH_NAMES (IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF)

/* Whether a path leads us to a file. It does not if that is in a container. */
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

/* Says it once of each path, however often that happens. */
static void file_tell(struct arming *arming, struct file *file, const char *what)
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

/* Disarms a file that is another one now, and forgets it: it is looked at anew when it is mapped.
 */
static void file_retire(struct arming *arming, struct file *file)
{
	uint32_t index = (uint32_t)(file - arming->files.data);
	VEC(struct armed *) list = {0};

	for (size_t i = arming->arms.len; i > 0; i--) {
		struct arm *arm = &arming->arms.data[i - 1];

		if (arm->file != index)
			continue;
		if (!vec_push(&list, arm->armed))
			armed_release(arm->armed);
		*arm = arming->arms.data[--arming->arms.len];
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

/* One that is in no process and has no name any more: its number may be given to another one. */
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

/* Returns whether what programs load may be another file now. */
static bool file_change(struct arming *arming, struct file *file, uint32_t what)
{
	if (what & (IN_MODIFY | IN_CLOSE_WRITE))
		file_retire(arming, file);
	else if (what & (IN_DELETE_SELF | IN_IGNORED | IN_UNMOUNT))
		file_end(file);
	else if (!file->reachable)
		return true; /* in a container nobody can tell */
	else if (leads_to(file->path, file))
		return false;
	else
		file_lose(arming, file);
	return true;
}

/* Of a file, of a symbolic link on the way to some, or -1: events were lost. */
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
		kernel_exec_forget(arming->kernel);
}

struct forgetter {
	pthread_t thread;
	struct kernel *kernel;
	int epoll, end;
};

enum { FORGETTER_CHANGE, FORGETTER_END };

/* The next program may be about to load a file that has just changed, whatever the session is busy
 * with. Which one it is is read later. */
static void *forget_at_once(void *arg)
{
	struct forgetter *forgetter = arg;
	struct epoll_event event = {0};

	/* Between a rename and the next exec is less than a millisecond. */
	sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1});
	while (event.data.u32 != FORGETTER_END) {
		int count = epoll_wait(forgetter->epoll, &event, 1, -1);

		if (count > 0)
			kernel_exec_forget(forgetter->kernel);
		else if (count < 0 && errno != EINTR)
			break;
	}
	return NULL;
}

static bool forgetter_start(struct forgetter *forgetter, int changes)
{
	struct epoll_event change = {.events = EPOLLIN | EPOLLET, .data.u32 = FORGETTER_CHANGE};
	struct epoll_event end = {.events = EPOLLIN, .data.u32 = FORGETTER_END};
	sigset_t all, before;
	bool started;

	if (epoll_ctl(forgetter->epoll, EPOLL_CTL_ADD, changes, &change) ||
	    epoll_ctl(forgetter->epoll, EPOLL_CTL_ADD, forgetter->end, &end))
		return false;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	started = !pthread_create(&forgetter->thread, NULL, forget_at_once, forgetter);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return started;
}

static void forgetter_free(struct forgetter *forgetter)
{
	if (forgetter->epoll >= 0)
		close(forgetter->epoll);
	if (forgetter->end >= 0)
		close(forgetter->end);
	free(forgetter);
}

/* Without one a program that begins too soon is not stopped. */
static struct forgetter *forgetter_open(const struct arming *arming)
{
	struct forgetter *forgetter = calloc(1, sizeof(*forgetter));

	if (!forgetter)
		return NULL;
	forgetter->kernel = arming->kernel;
	forgetter->epoll = epoll_create1(EPOLL_CLOEXEC);
	forgetter->end = eventfd(0, EFD_CLOEXEC);
	if (forgetter_start(forgetter, arming->changes))
		return forgetter;
	forgetter_free(forgetter);
	return NULL;
}

void forgetter_close(struct forgetter *forgetter)
{
	if (!forgetter)
		return;
	eventfd_write(forgetter->end, 1);
	pthread_join(forgetter->thread, NULL);
	forgetter_free(forgetter);
}

static bool changes_unread(const struct arming *arming)
{
	int bytes = 0;

	return !ioctl(arming->changes, FIONREAD, &bytes) && bytes;
}

void arming_program_known(struct arming *arming, pid_t pid)
{
	struct stat status;
	char exe[64];

	snprintf(exe, sizeof(exe), "/proc/%d/exe", pid);
	/* Of one that is gone its libraries were not asked for, perhaps. */
	if (!arming->options.follow || stat(exe, &status) ||
	    file_find(arming, status.st_dev, status.st_ino) < 0)
		return;
	if (!arming->forgetter)
		arming->forgetter = forgetter_open(arming);
	/* Of what has changed since it was looked at nothing is known. */
	if (changes_unread(arming))
		return;
	kernel_exec_known(arming->kernel, status.st_dev, status.st_ino);
	if (changes_unread(arming))
		kernel_exec_forget(arming->kernel);
}

void arming_notices(struct arming *arming, void (*say)(const char *line, void *arg), void *arg)
{
	for (size_t i = 0; i < arming->notices.len; i++) {
		say(arming->notices.data[i], arg);
		free(arming->notices.data[i]);
	}
	arming->notices.len = 0;
}
