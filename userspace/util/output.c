// SPDX-License-Identifier: Apache-2.0
#include "util/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int output_write(int fd, const void *data, size_t size)
{
	const char *at = data;

	while (size) {
		ssize_t written = write(fd, at, size);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return written < 0 ? -errno : -EIO;
		at += written;
		size -= (size_t)written;
	}
	return 0;
}

bool output_reader_is_gone(void)
{
	struct pollfd out = {.fd = STDOUT_FILENO};

	return poll(&out, 1, 0) == 1 && (out.revents & POLLERR);
}

/* Parses an environment variable; false if it is not set or not a plain decimal number. */
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

bool output_caller(unsigned *uid, unsigned *gid)
{
	if (!environment_id("SUDO_UID", uid))
		return false;
	if (!environment_id("SUDO_GID", gid))
		*gid = UINT_MAX;
	return true;
}

void output_give_to_caller(int fd)
{
	unsigned uid, gid; /* -1 leaves an id unchanged in fchown() */

	if (geteuid() != 0 || !output_caller(&uid, &gid))
		return;
	if (fchown(fd, uid, gid) != 0)
		errno = 0; /* a file system without owners is no error */
}

/* The last part of a path. */
static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Opens the folder of the output. All later steps use this descriptor, even if the path leads to
 * another folder by then. */
static int folder_open(const char *path)
{
	size_t len = (size_t)(name_of(path) - path);
	char *folder = len ? strndup(path, len) : strdup(".");
	int fd;

	if (!folder)
		return -ENOMEM;
	fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		fd = -errno;
	free(folder);
	return fd;
}

/* Opens a new file in the folder; returns its descriptor or a negative errno. The temporary name is
 * not derived from the final one, which may have the maximum length. It is in the same folder
 * because rename() works only within a file system. */
static int create_temporary(struct output *output)
{
	int fd = -EEXIST;

	for (unsigned attempt = 0; fd == -EEXIST && attempt < 1000; attempt++) {
		char *name;

		if (asprintf(&name, ".waffle-%d-%u.tmp", (int)getpid(), attempt) < 0)
			return -ENOMEM;
		fd = openat(output->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
			    OUTPUT_MODE);
		if (fd < 0)
			fd = -errno;
		if (fd >= 0)
			output->temporary = name;
		else
			free(name);
	}
	return fd;
}

static int open_regular(struct output *output, struct error *err)
{
	int fd = create_temporary(output);

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

/* Whether another user owns a FIFO, and thus can read what is written to it. In a folder such as
 * /tmp another user may have created it where root was going to write. */
static bool is_of_a_stranger(const struct stat *st)
{
	unsigned uid, gid;

	if (!S_ISFIFO(st->st_mode) || st->st_uid == 0 || st->st_uid == geteuid())
		return false;
	return !output_caller(&uid, &gid) || st->st_uid != uid;
}

/* Opens a device or a FIFO without waiting. `held` is an O_PATH descriptor of it, so this opens the
 * file that was checked even if the name leads elsewhere by now. */
static int open_other(struct output *output, int held, bool fifo, struct error *err)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", held);
	fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
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

/* A symbolic link to a file is replaced, as a file is. A link to anything else is a trap for root,
 * or a mistake. */
static int open_link(struct output *output, struct error *err)
{
	struct stat st;
	bool exists = !fstatat(output->folder, name_of(output->path), &st, 0);

	if (!exists || S_ISREG(st.st_mode))
		return open_regular(output, err);
	if (S_ISDIR(st.st_mode))
		return error_set(err, EISDIR, "%s: is a directory; name a file in it",
				 output->path);
	return error_set(err, ELOOP,
			 "%s: is a symbolic link to a device or a pipe; name that itself",
			 output->path);
}

/* Chooses by the type of the existing file; `held` is an O_PATH descriptor of it. */
static int open_existing(struct output *output, int held, struct error *err)
{
	struct stat st;

	if (fstat(held, &st))
		return error_set(err, errno, "%s: %s", output->path, strerror(errno));
	switch (st.st_mode & S_IFMT) {
	case S_IFDIR:
		return error_set(err, EISDIR, "%s: is a directory; name a file in it",
				 output->path);
	case S_IFLNK:
		return open_link(output, err);
	case S_IFREG:
		return open_regular(output, err);
	case S_IFBLK:
		return error_set(err, EINVAL, "%s: is a disk; it would be overwritten",
				 output->path);
	default:
		if (is_of_a_stranger(&st))
			return error_set(err, EACCES,
					 "%s: is a pipe of another user, who would read it",
					 output->path);
		return open_other(output, held, S_ISFIFO(st.st_mode), err);
	}
}

/* The number of our descriptor that a path such as /dev/stdout or a shell's >(…) means. */
static int descriptor_named(const char *path)
{
	static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
	unsigned long number;
	char *end;

	if (!strcmp(path, "/dev/stdout"))
		return STDOUT_FILENO;
	if (!strcmp(path, "/dev/stderr"))
		return STDERR_FILENO;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		const char *text = path + strlen(folders[i]);

		if (strncmp(path, folders[i], strlen(folders[i])) || *text < '0' || *text > '9')
			continue;
		number = strtoul(text, &end, 10);
		return *end || number > INT_MAX ? -1 : (int)number;
	}
	return -1;
}

static int open_descriptor(struct output *output, int number, struct error *err)
{
	int fd = fcntl(number, F_DUPFD_CLOEXEC, 3);

	output->file = fd < 0 ? NULL : fdopen(fd, "w");
	if (output->file)
		return 0;
	error_set(err, errno, "%s: can't be written: %s", output->path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return -EINVAL;
}

static int exists_already(const struct output *output, struct error *err)
{
	return error_set(err, EEXIST, "%s: exists already, and is not replaced", output->path);
}

static int open_named(struct output *output, struct error *err)
{
	const char *path = output->path, *name = name_of(path);
	int held, result;

	if (!*path)
		return error_set(err, EINVAL, "the output has an empty name; give it one");
	if (output->only_new && descriptor_named(path) >= 0)
		return exists_already(output, err);
	if (descriptor_named(path) >= 0)
		return open_descriptor(output, descriptor_named(path), err);
	if (!*name)
		return error_set(err, EISDIR, "%s: is a directory; name a file in it", path);
	output->folder = folder_open(path);
	if (output->folder < 0)
		return error_set(err, -output->folder, "%s: can't be created: %s", path,
				 strerror(-output->folder));
	held = openat(output->folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (held < 0)
		return open_regular(output, err);
	result = output->only_new ? exists_already(output, err) : open_existing(output, held, err);
	close(held);
	return result;
}

static int output_begin(struct output *output, const char *path, bool only_new, struct error *err)
{
	int ret = 0;

	*output = (struct output){.path = strdup(path), .folder = -1, .only_new = only_new};
	if (!output->path)
		return error_set(err, ENOMEM, "%s: out of memory", path);
	if (!strcmp(path, "-"))
		output->file = stdout;
	else
		ret = open_named(output, err);
	if (ret)
		output_abort(output);
	return ret;
}

int output_open(struct output *output, const char *path, struct error *err)
{
	return output_begin(output, path, false, err);
}

int output_open_new(struct output *output, const char *path, struct error *err)
{
	return output_begin(output, path, true, err);
}

/* Flushes and closes; returns 0 or the errno of the first failed write. */
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

/* Some file systems, such as NFS, can't rename without replacing, but a link never replaces. */
static int rename_only_new(struct output *output)
{
	const char *name = name_of(output->path);

	if (!renameat2(output->folder, output->temporary, output->folder, name, RENAME_NOREPLACE))
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return errno;
	if (linkat(output->folder, output->temporary, output->folder, name, 0))
		return errno;
	unlinkat(output->folder, output->temporary, 0);
	return 0;
}

static int rename_replacing(struct output *output)
{
	return renameat(output->folder, output->temporary, output->folder, name_of(output->path))
		       ? errno
		       : 0;
}

static int name_set(struct output *output)
{
	int code;

	if (!output->temporary)
		return 0;
	code = output->only_new ? rename_only_new(output) : rename_replacing(output);
	if (code)
		return code;
	free(output->temporary);
	output->temporary = NULL;
	return 0;
}

int output_publish(struct output *output, struct error *err)
{
	int code = name_set(output);

	return code ? error_set(err, code, "%s: %s; nothing was written", output->path,
				strerror(code))
		    : 0;
}

int output_commit(struct output *output, struct error *err)
{
	const char *name = output->path && strcmp(output->path, "-") ? output->path : "stdout";
	int code = output->file ? output_finish(output) : EBADF;

	code = code ?: name_set(output);
	if (code)
		error_set(err, code, "%s: %s%s", name, strerror(code),
			  output->temporary ? "; nothing was written" : "");
	output_abort(output);
	return -code;
}

void output_abort(struct output *output)
{
	if (output->file && output->file != stdout)
		fclose(output->file);
	if (output->temporary)
		unlinkat(output->folder, output->temporary, 0);
	if (output->path && output->folder >= 0)
		close(output->folder);
	free(output->temporary);
	free(output->path);
	*output = (struct output){.folder = -1};
}

void output_abandon(void *output, struct error *err)
{
	(void)err;
	output_abort(output);
}
