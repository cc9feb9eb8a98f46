// SPDX-License-Identifier: Apache-2.0
#include "export/process/file_sender_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/output.h"

#define QUEUE_BYTES (8u << 20)
#define GIVE_UP_NS 60000000000ull

struct file_target {
	char *path;           /* of replace; whole, since a program may change its directory */
	int fd;               /* of append; -1: none */
	struct stat identity; /* of append: the file */
};

/* A program may close all descriptors, and then open a file of its own under the number of ours. */
static bool is_ours(const struct file_target *target)
{
	struct stat now;

	return !fstat(target->fd, &now) && now.st_dev == target->identity.st_dev &&
	       now.st_ino == target->identity.st_ino;
}

static void target_free(void *arg)
{
	struct file_target *target = arg;

	if (target->fd >= 0 && is_ours(target))
		close(target->fd);
	free(target->path);
	free(target);
}

static enum sender_outcome failed(struct sender_reply *reply, int code)
{
	snprintf(reply->why, sizeof(reply->why), "%s", strerror(code));
	return SENDER_REFUSED;
}

/* ---- appending ---- */

/* The thread of the sender may wait here as long as the file does. */
static enum sender_outcome append(void *arg, unsigned thread, const struct parcel *parcel,
				  struct sender_reply *reply)
{
	const struct file_target *target = arg;
	const char *data = parcel->data;
	size_t len = parcel->len;

	(void)thread;
	while (len) {
		struct pollfd room = {.fd = target->fd, .events = POLLOUT};
		ssize_t written;

		if (!is_ours(target)) {
			snprintf(reply->why, sizeof(reply->why),
				 "the program has closed its descriptor");
			return SENDER_REFUSED;
		}
		written = write(target->fd, data, len);
		if (written < 0 && errno == EAGAIN)
			poll(&room, 1, -1);
		else if (written < 0 && errno != EINTR)
			return failed(reply, errno);
		if (written > 0) {
			data += written;
			len -= (size_t)written;
		}
	}
	return SENDER_DONE;
}

/* ---- replacing ---- */

static enum sender_outcome replace(void *arg, unsigned thread, const struct parcel *parcel,
				   struct sender_reply *reply)
{
	const struct file_target *target = arg;
	struct output output;
	struct error err = ERROR_INIT;
	int code = output_open(&output, target->path, &err);

	(void)thread;
	if (!code) {
		fwrite(parcel->data, 1, parcel->len, output.file);
		code = output_commit(&output, &err);
	}
	if (!code)
		return SENDER_DONE;
	snprintf(reply->why, sizeof(reply->why), "%.*s", (int)sizeof(reply->why) - 1, err.message);
	return SENDER_REFUSED;
}

/* ---- opening ---- */

static const struct sender_type append_type = {.deliver = append, .free = target_free};
static const struct sender_type replace_type = {.deliver = replace, .free = target_free};

static int sender_make(struct sender **result, const char *name, struct file_target *target,
		       const struct sender_type *type, const struct chain_host *host,
		       struct error *err)
{
	struct sender_options options = {
		.name = name, .host = host, .queue_bytes = QUEUE_BYTES, .give_up_ns = GIVE_UP_NS};
	struct sender *sender = sender_new(&options, type, target);
	int code;

	*result = NULL;
	if (!sender)
		return error_set(err, ENOMEM, "%s: out of memory", name);
	code = sender_start(sender, err);
	if (code)
		sender_close(sender, 0);
	else
		*result = sender;
	return code;
}

static struct file_target *target_new(void)
{
	struct file_target *target = calloc(1, sizeof(*target));

	if (target)
		target->fd = -1;
	return target;
}

/* NULL: out of memory. */
static char *path_whole(const char *path)
{
	char folder[PATH_MAX], *whole;

	if (*path == '/' || !getcwd(folder, sizeof(folder)))
		return strdup(path);
	return asprintf(&whole, "%s/%s", folder, path) < 0 ? NULL : whole;
}

/* Not through a link, since root may write into the folder of another; /dev/stdout is one. */
static int append_open(const char *path)
{
	int follow = strncmp(path, "/dev/", 5) ? O_NOFOLLOW : 0;
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | follow,
		      OUTPUT_MODE);

	if (fd >= 0 && follow)
		output_give_to_caller(fd);
	return fd;
}

int file_sender_append(struct sender **sender, const char *name, const char *path,
		       const struct chain_host *host, struct error *err)
{
	struct file_target *target = target_new();

	*sender = NULL;
	if (!target)
		return error_set(err, ENOMEM, "%s: out of memory", name);
	/* Not one of the descriptors that a program expects to have for itself. */
	target->fd = path ? append_open(path) : fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	if (target->fd < 0 || fstat(target->fd, &target->identity)) {
		int code = errno;

		target_free(target);
		return error_set(err, code, "%s: %s: %s", name, path ? path : "standard error",
				 strerror(code));
	}
	return sender_make(sender, name, target, &append_type, host, err);
}

int file_sender_replace(struct sender **sender, const char *name, const char *path,
			const struct chain_host *host, struct error *err)
{
	struct file_target *target = target_new();
	struct output probe;
	int code;

	*sender = NULL;
	if (target)
		target->path = path_whole(path);
	if (!target || !target->path) {
		free(target);
		return error_set(err, ENOMEM, "%s: out of memory", name);
	}
	/* An unusable name is an error now, not in the middle of the run. */
	code = output_open(&probe, path, err);
	if (code) {
		target_free(target);
		error_prefix(err, "%s", name);
		return code;
	}
	output_abort(&probe);
	return sender_make(sender, name, target, &replace_type, host, err);
}
