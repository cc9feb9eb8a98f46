// SPDX-License-Identifier: Apache-2.0
#include "target/elf/object_read.h"
#include "target/elf/objects.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "target/loader/needed.h"
#include "target/process/mapping_file.h"
#include "target/process/process.h"
#include "util/input.h"

#define SCRIPT_LINE_BYTES 257 /* as many as the kernel reads of the line, and a NUL */

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
		return 0;
	}
	result = objects->more ? objects->more(object, fd, objects->arg, err) : 0;
	if (result) {
		object_free(object);
	} else if (!vec_push(&objects->list, object)) {
		object_free(object);
		result = error_set(err, ENOMEM, "out of memory");
	} else {
		objects->bad_notes += object->bad_notes;
	}
	return result;
}

int objects_add_file(struct objects *objects, const char *path, struct error *err)
{
	int fd = input_open(path), result;

	if (fd < 0)
		return error_set(err, -fd, "%s: %s", path, input_error(-fd));
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
		result = error_set(err, EPERM,
				   "pid %d: its mappings can't be read; that needs CAP_SYS_PTRACE",
				   pid);
	for (size_t i = 0; i < mappings.list.len && !result; i++) {
		struct error problem = ERROR_INIT;
		char path[4096];
		int fd = mapping_open(&mappings.list.data[i], pid, path, sizeof(path));

		if (fd == -EACCES || fd == -EPERM)
			error_set(&objects->denied, -fd,
				  "%s: %s; its sites could not be read; that needs %s",
				  mappings.list.data[i].path, strerror(-fd),
				  mapping_open_needs(pid));
		if (fd < 0)
			continue;
		if (add_fd(objects, fd, mappings.list.data[i].path, &problem) == -ENOMEM)
			result = error_set(err, ENOMEM, "%s", problem.message);
		close(fd);
	}
	mappings_free(&mappings);
	return result;
}

/* Finds the file that execvp() would run. */
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

static void add_needed(int fd, const char *path, bool ours, void *arg)
{
	struct error ignored = ERROR_INIT;

	(void)ours;
	add_fd(arg, fd, path, &ignored);
}

/* Resolves the path to the form that the kernel will show in the mappings of the process. The field
 * `lib` of filters and the library of a description are compared with that. */
static int command_resolve(const char *command, char path[PATH_MAX], struct error *err)
{
	char typed[PATH_MAX];
	int result = command_path(command, typed, sizeof(typed), err);

	if (!result && !realpath(typed, path))
		result = error_set(err, errno, "%s: %s", command, strerror(errno));
	return result;
}

/* Replaces the path of a script by that of the interpreter in its first line. False: not a
 * script. */
static bool interpreter_resolve(char path[PATH_MAX])
{
	char line[SCRIPT_LINE_BYTES], found[PATH_MAX], *name;
	int fd = input_open(path);
	ssize_t len;

	if (fd < 0)
		return false;
	len = read(fd, line, sizeof(line) - 1);
	close(fd);
	if (len < 2 || memcmp(line, "#!", 2))
		return false;
	line[len] = '\0';
	name = line + 2 + strspn(line + 2, " \t");
	name[strcspn(name, " \t\n")] = '\0';
	if (!*name || !realpath(name, found))
		return false;
	memcpy(path, found, sizeof(found));
	return true;
}

int objects_add_command(struct objects *objects, const char *command, struct error *err)
{
	char path[PATH_MAX];
	int result = command_resolve(command, path, err);

	if (!result) {
		interpreter_resolve(path);
		result = objects_add_file(objects, path, err);
	}
	if (!result)
		needed_each_of(path, environ, add_needed, objects);
	return result;
}

bool objects_command_is_script(const char *command)
{
	struct error ignored = ERROR_INIT;
	char path[PATH_MAX];

	return !command_resolve(command, path, &ignored) && interpreter_resolve(path);
}

void objects_free(struct objects *objects)
{
	for (size_t i = 0; i < objects->list.len; i++)
		object_free(objects->list.data[i]);
	vec_free(&objects->list);
}
