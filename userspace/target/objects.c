// SPDX-License-Identifier: Apache-2.0
#include "target/objects.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "target/needed.h"
#include "target/process.h"

static bool has(const struct objects *objects, const struct object *object)
{
	for (size_t i = 0; i < objects->list.len; i++)
		if (objects->list.data[i]->dev == object->dev &&
		    objects->list.data[i]->ino == object->ino)
			return true;
	return false;
}

static int add_fd(struct objects *objects, int fd, const char *path, struct error *err)
{
	struct object *object;
	int result = object_read(&object, fd, path, err);

	if (result)
		return result;
	if (has(objects, object)) {
		object_free(object);
	} else if (!vec_push(&objects->list, object)) {
		object_free(object);
		return error_set(err, ENOMEM, "out of memory");
	} else {
		objects->bad_notes += object->bad_notes;
	}
	return 0;
}

int objects_add_file(struct objects *objects, const char *path, struct error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), result;

	if (fd < 0)
		return error_set(err, errno, "%s: %s", path, strerror(errno));
	result = add_fd(objects, fd, path, err);
	close(fd);
	return result;
}

int objects_add_process(struct objects *objects, pid_t pid, struct error *err)
{
	struct mappings mappings;
	int result = process_check(pid, err) ?: process_mappings(&mappings, pid, err);

	if (result)
		return result;
	if (!mappings.list.len && geteuid() != 0)
		result = error_set(err, EPERM, "pid %d: its mappings can't be read; run as root",
				   pid);
	for (size_t i = 0; i < mappings.list.len && !result; i++) {
		struct error problem = ERROR_INIT;
		char path[4096];
		int fd = mapping_open(&mappings.list.data[i], pid, path, sizeof(path));

		if (fd < 0)
			continue;
		if (add_fd(objects, fd, mappings.list.data[i].path, &problem) == -ENOMEM)
			result = error_set(err, ENOMEM, "%s", problem.message);
		close(fd);
	}
	mappings_free(&mappings);
	return result;
}

/* What execvp() would run. */
static int command_path(const char *command, char *path, size_t size, struct error *err)
{
	const char *folders = getenv("PATH");

	if (strchr(command, '/')) {
		snprintf(path, size, "%s", command);
		return 0;
	}
	for (const char *at = folders ? folders : "/bin:/usr/bin"; at;) {
		size_t len = strcspn(at, ":");

		snprintf(path, size, "%.*s%s%s", (int)len, at, len ? "/" : "", command);
		if (!access(path, X_OK))
			return 0;
		at = at[len] ? at + len + 1 : NULL;
	}
	return error_set(err, ENOENT, "%s: not found in PATH", command);
}

static void add_needed(const char *path, void *arg)
{
	struct error ignored = ERROR_INIT;

	objects_add_file(arg, path, &ignored);
}

int objects_add_command(struct objects *objects, const char *command, struct error *err)
{
	char path[4096];
	int result = command_path(command, path, sizeof(path), err)
			     ?: objects_add_file(objects, path, err);

	if (!result)
		needed_each_of(path, environ, add_needed, objects);
	return result;
}

void objects_free(struct objects *objects)
{
	for (size_t i = 0; i < objects->list.len; i++)
		object_free(objects->list.data[i]);
	vec_free(&objects->list);
}
