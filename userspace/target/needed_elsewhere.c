// SPDX-License-Identifier: Apache-2.0
/*
 * The libraries of a program that has another root or mount namespace, as one in a container: its
 * loader is not to be run out of that, so its libraries are looked for as a loader does it
 * (ld.so(8)). What is found and not loaded then costs nothing; what is not found is armed when it
 * is mapped.
 */
#include "target/needed_elsewhere.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "target/loader.h"
#include "target/process.h"
#include "target/root.h"
#include "util/vec.h"

#define LIBRARIES_MAX 256

struct library {
	char *path; /* as the process sees it */
	struct loader_file file;
};

struct looking {
	struct root root;
	uint16_t machine;             /* the program's */
	const char *environment_path; /* LD_LIBRARY_PATH; NULL: none */
	char *cache;                  /* the loader's; NULL: there is none */
	size_t cache_bytes;
	VEC(char *) names; /* each is looked for once */
	VEC(struct library) libraries;
	needed_each_fn each;
	void *arg;
};

/* Whether it is one that the program can load; then it is told of, and will be read. */
static bool take(struct looking *looking, const char *path)
{
	struct library library = {0};
	int fd = root_file(&looking->root, path);
	char name[32];
	bool is;

	if (fd < 0)
		return false;
	is = loader_file_read(&library.file, fd) && library.file.machine == looking->machine;
	if (is) {
		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		looking->each(name, path, looking->arg);
		library.path = strdup(path);
	}
	close(fd);
	if (!library.path || !vec_push(&looking->libraries, library)) {
		loader_file_free(&library.file);
		free(library.path);
	}
	return is;
}

struct asked {
	struct looking *looking;
	const char *name;
	bool found;
};

static bool take_from(const char *folder, void *arg)
{
	struct asked *asked = arg;
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/%s", folder, asked->name) < (int)sizeof(path))
		asked->found = take(asked->looking, path);
	return asked->found;
}

/* The cache has variants of a library for kinds of processors, behind one another: all are. */
static void take_cached(const char *path, void *arg)
{
	struct asked *asked = arg;

	if (!strcmp(strrchr(path, '/') + 1, asked->name) && take(asked->looking, path))
		asked->found = true;
}

/* The order of ld.so(8). `by` asks for it, and is at `origin`. */
static void look_in_folders(struct looking *looking, const char *name, const struct loader_file *by,
			    const char *origin)
{
	const char *const lists[] = {by->runpath ? NULL : by->rpath, looking->environment_path,
				     by->runpath};
	struct loader_base base = {origin, looking->root.folder};
	struct asked asked = {looking, name, false};

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		if (lists[i] && loader_folders_each(lists[i], &base, take_from, &asked))
			return;
	if (looking->cache)
		loader_cache_each(looking->cache, looking->cache_bytes, take_cached, &asked);
	if (!asked.found)
		loader_folders_each(loader_usual, &base, take_from, &asked);
}

static void look_for(struct looking *looking, const char *name, const struct loader_file *by,
		     const char *origin)
{
	char *copy, path[PATH_MAX];

	for (size_t i = 0; i < looking->names.len; i++)
		if (!strcmp(looking->names.data[i], name))
			return;
	copy = looking->names.len < LIBRARIES_MAX ? strdup(name) : NULL;
	if (!copy || !vec_push(&looking->names, copy)) {
		free(copy);
		return;
	}
	if (!strchr(name, '/'))
		look_in_folders(looking, name, by, origin);
	else if (snprintf(path, sizeof(path), "%s%s%s", name[0] == '/' ? "" : looking->root.folder,
			  name[0] == '/' ? "" : "/", name) < (int)sizeof(path))
		take(looking, path);
}

static void look_for_preloaded(struct looking *looking, const char *list)
{
	const struct loader_file nobody = {0};

	while (list && *list) {
		size_t len = strcspn(list, ": ");
		char library[PATH_MAX];

		if (len && len < sizeof(library)) {
			snprintf(library, sizeof(library), "%.*s", (int)len, list);
			look_for(looking, library, &nobody, "");
		}
		list += len + (list[len] != '\0');
	}
}

static void look_for_all(struct looking *looking, const struct loader_file *by, const char *path)
{
	for (size_t i = 0; i < by->needed.len; i++)
		look_for(looking, by->needed.data[i], by, path);
}

static void look(struct looking *looking, pid_t pid, char **environment)
{
	struct loader_file program = {0};
	char link[64];
	int fd;

	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	fd = open(link, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && loader_file_read(&program, fd)) {
		looking->machine = program.machine;
		looking->environment_path = environment_value(environment, "LD_LIBRARY_PATH");
		looking->cache = root_read(&looking->root, LOADER_CACHE, LOADER_CACHE_MAX,
					   &looking->cache_bytes);
		look_for_preloaded(looking, environment_value(environment, "LD_PRELOAD"));
		look_for_all(looking, &program, looking->root.program);
		for (size_t i = 0; i < looking->libraries.len; i++) {
			/* They grow, and move, meanwhile. */
			struct library library = looking->libraries.data[i];

			look_for_all(looking, &library.file, library.path);
		}
	}
	loader_file_free(&program);
	if (fd >= 0)
		close(fd);
}

void needed_elsewhere(pid_t pid, char **environment, needed_each_fn each, void *arg)
{
	struct looking looking = {.each = each, .arg = arg};

	if (root_open(&looking.root, pid))
		return;
	look(&looking, pid, environment);
	for (size_t i = 0; i < looking.names.len; i++)
		free(looking.names.data[i]);
	for (size_t i = 0; i < looking.libraries.len; i++) {
		free(looking.libraries.data[i].path);
		loader_file_free(&looking.libraries.data[i].file);
	}
	vec_free(&looking.names);
	vec_free(&looking.libraries);
	free(looking.cache);
	root_close(&looking.root);
}
