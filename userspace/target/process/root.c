// SPDX-License-Identifier: Apache-2.0
#include "target/process/root.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target/process/mounts.h"
#include "target/process/opener.h"
#include "target/process/path_at.h"
#include "target/process/process.h"
#include "util/input.h"
#include "util/wire.h"

const char *root_inside(const struct root *root, const char *path)
{
	return root->prefix && !strncmp(path, root->path, root->prefix) && path[root->prefix] == '/'
		       ? path + root->prefix
		       : path;
}

static void path_go_inside(const struct root *root, char *path)
{
	const char *inside = root_inside(root, path);

	memmove(path, inside, strlen(inside) + 1);
}

int root_open(struct root *root, pid_t pid)
{
	char path[64];
	int probe;

	*root = (struct root){0};
	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	root->fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root->fd < 0)
		return errno == EACCES ? -EACCES : -ESRCH;
	probe = path_at_open(root->fd, "/", O_PATH);
	if (probe < 0) {
		root_close(root);
		return probe;
	}
	close(probe);
	root->local = mounts_are_local(pid, MOUNTS_ANY);
	process_link(pid, "root", root->path);
	root->prefix = strcmp(root->path, "/") != 0 ? strlen(root->path) : 0;
	process_link(pid, "exe", root->program);
	process_link(pid, "cwd", root->folder);
	path_go_inside(root, root->program);
	path_go_inside(root, root->folder);
	return 0;
}

void root_close(struct root *root)
{
	if (root->fd >= 0)
		close(root->fd);
	root->fd = -1;
}

bool root_follow(const struct root *root, const char *path, char real[PATH_MAX])
{
	return root->local ? path_at_follow(root->fd, path, real)
			   : opener_follow(root->fd, path, real);
}

int root_file(const struct root *root, const char *path)
{
	return root->local ? path_at_file(root->fd, path) : opener_file(root->fd, path);
}

char *root_read(const struct root *root, const char *path, size_t max, size_t *bytes)
{
	int fd = root_file(root, path);
	struct stat status;
	char *text = NULL;
	ssize_t got;

	*bytes = 0;
	if (fd >= 0 && !input_stat(fd, &status) && status.st_size > 0 &&
	    (size_t)status.st_size <= max)
		text = malloc((size_t)status.st_size);
	while (text && *bytes < (size_t)status.st_size &&
	       (got = read(fd, text + *bytes, (size_t)status.st_size - *bytes)) > 0)
		*bytes += (size_t)got;
	if (fd >= 0)
		close(fd);
	return text;
}

/* Returns the names in the form of path_at_list(). */
static char *names_of(const struct root *root, const char *folder, const char *prefix,
		      size_t *bytes)
{
	struct wire_out names = {0};

	if (!root->local)
		return opener_list(root->fd, folder, prefix, bytes);
	path_at_list(root->fd, folder, prefix, &names);
	*bytes = names.bytes.len;
	return (char *)names.bytes.data;
}

void root_folder_each(const struct root *root, const char *folder, const char *prefix,
		      root_each each, void *arg)
{
	size_t bytes;
	char *names = names_of(root, folder, prefix, &bytes), path[PATH_MAX];

	for (size_t at = 0; names && at < bytes; at += strlen(names + at) + 1)
		if (snprintf(path, sizeof(path), "%s/%s", folder, names + at) < (int)sizeof(path))
			each(path, arg);
	free(names);
}
