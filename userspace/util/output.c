// SPDX-License-Identifier: Apache-2.0
#include "util/output.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A number from the environment; false if it is not set or not a plain decimal number. */
static bool environment_id(const char *name, unsigned *id)
{
	const char *text = getenv(name);
	unsigned long value;
	char *end;

	if (!text || text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || *end || value >= UINT_MAX)
		return false;
	*id = (unsigned)value;
	return true;
}

void output_give_to_caller(int fd)
{
	unsigned uid, gid;

	if (geteuid() != 0 || !environment_id("SUDO_UID", &uid))
		return;
	if (!environment_id("SUDO_GID", &gid))
		gid = UINT_MAX; /* fchown's -1: as it is */
	if (fchown(fd, uid, gid) != 0)
		errno = 0; /* a file system without owners is no reason to fail */
}

/* The name is short and in the same directory: it may be longer than `path`'s last part, and
 * rename() works within one file system only. */
static char *temporary_name(const char *path, unsigned attempt)
{
	const char *slash = strrchr(path, '/');
	int folder = slash ? (int)(slash - path) + 1 : 0;
	char *name;

	if (asprintf(&name, "%.*s.waffle-%d-%u.tmp", folder, path, (int)getpid(), attempt) < 0)
		return NULL;
	return name;
}

/* Opens a new file beside `path`; its descriptor, or a negative errno. */
static int create_beside(const char *path, char **temporary)
{
	int fd = -EEXIST;

	for (unsigned attempt = 0; fd == -EEXIST && attempt < 1000; attempt++) {
		char *name = temporary_name(path, attempt);

		if (!name)
			return -ENOMEM;
		fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		if (fd < 0)
			fd = -errno;
		if (fd >= 0)
			*temporary = name;
		else
			free(name);
	}
	return fd;
}

static int open_regular(struct output *output, struct error *err)
{
	int fd = create_beside(output->path, &output->temporary);

	if (fd < 0)
		return error_set(err, -fd, "%s: can't be created: %s", output->path, strerror(-fd));
	output_give_to_caller(fd);
	output->file = fdopen(fd, "w");
	if (!output->file) {
		close(fd);
		return error_set(err, ENOMEM, "%s: out of memory", output->path);
	}
	return 0;
}

/* A device or a FIFO, which is not waited for. */
static int open_other(struct output *output, bool fifo, struct error *err)
{
	int fd = open(output->path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd >= 0 && !fcntl(fd, F_SETFL, 0))
		output->file = fdopen(fd, "w");
	if (output->file)
		return 0;
	error_set(err, errno, "%s: can't be written: %s", output->path,
		  fifo && errno == ENXIO ? "nobody reads from it" : strerror(errno));
	if (fd >= 0)
		close(fd);
	return -EINVAL;
}

static int open_named(struct output *output, const char *path, struct error *err)
{
	size_t len = strlen(path);
	struct stat st;
	bool exists = stat(path, &st) == 0;

	if (!len)
		return error_set(err, EINVAL, "the output has an empty name; give it one");
	if ((exists && S_ISDIR(st.st_mode)) || path[len - 1] == '/')
		return error_set(err, EISDIR, "%s: is a directory; name a file in it", path);
	if (!exists || S_ISREG(st.st_mode))
		return open_regular(output, err);
	return open_other(output, S_ISFIFO(st.st_mode), err);
}

int output_open(struct output *output, const char *path, struct error *err)
{
	int ret = 0;

	*output = (struct output){.path = strdup(path)};
	if (!output->path)
		return error_set(err, ENOMEM, "%s: out of memory", path);
	if (!strcmp(path, "-"))
		output->file = stdout;
	else
		ret = open_named(output, path, err);
	if (ret)
		output_abort(output);
	return ret;
}

/* Flushes and closes; 0 or the errno of the first write that failed. */
static int output_finish(struct output *output)
{
	FILE *file = output->file;
	int code = 0;

	output->file = NULL;
	errno = 0;
	if (fflush(file) || ferror(file))
		code = errno ? errno : EIO;
	if (file != stdout && fclose(file) && !code)
		code = errno ? errno : EIO;
	return code;
}

int output_commit(struct output *output, struct error *err)
{
	const char *name = output->path && strcmp(output->path, "-") ? output->path : "stdout";
	int code = output->file ? output_finish(output) : EBADF;

	if (!code && output->temporary && rename(output->temporary, output->path))
		code = errno;
	if (!code) {
		free(output->temporary);
		output->temporary = NULL;
	} else {
		error_set(err, code, "%s: %s%s", name, strerror(code),
			  output->temporary ? "; nothing was written" : "");
	}
	output_abort(output);
	return -code;
}

void output_abort(struct output *output)
{
	if (output->file && output->file != stdout)
		fclose(output->file);
	if (output->temporary)
		unlink(output->temporary);
	free(output->temporary);
	free(output->path);
	*output = (struct output){0};
}
