// SPDX-License-Identifier: Apache-2.0
#include "target/loader/search.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/loader/loader.h"
#include "target/process/image.h"
#include "target/process/process.h"
#include "target/process/root.h"
#include "util/hash.h"
#include "util/vec.h"

#define FOLDERS_MAX 256

struct loader_search {
	struct root root;
	VEC(char *) folders;
};

int search_file(const struct loader_search *search, const char *path)
{
	return root_file(&search->root, path);
}

static bool has_folder(const struct loader_search *search, const char *path)
{
	for (size_t i = 0; i < search->folders.len; i++)
		if (!strcmp(search->folders.data[i], path))
			return true;
	return false;
}

static void folder_add(struct loader_search *search, const char *path)
{
	char *copy;

	if (path[0] != '/' || search->folders.len == FOLDERS_MAX || has_folder(search, path))
		return;
	copy = strdup(path);
	if (copy && !vec_push(&search->folders, copy))
		free(copy);
}

static bool list_folder_add(const char *path, void *arg)
{
	folder_add(arg, path);
	return false;
}

/* Adds the directories of a list that the file at `path`, or the environment, names. */
static void list_add(struct loader_search *search, const char *list, const char *path)
{
	const struct loader_base base = {path, search->root.folder, NULL};

	loader_folders_each(list, &base, list_folder_add, search);
}

static void wheel_add(const char *path, void *arg)
{
	char folder[PATH_MAX];

	if (snprintf(folder, sizeof(folder), "%s/lib", path) < (int)sizeof(folder))
		folder_add(arg, folder);
}

/* Adds the library directories of NVIDIA's and PyTorch's wheels: nvidia/nccl/lib, torch/lib. */
static void packages_add(struct loader_search *search, const char *packages)
{
	char torch[PATH_MAX], nvidia[PATH_MAX];

	if (snprintf(torch, sizeof(torch), "%s/torch/lib", packages) >= (int)sizeof(torch) ||
	    snprintf(nvidia, sizeof(nvidia), "%s/nvidia", packages) >= (int)sizeof(nvidia) ||
	    has_folder(search, torch))
		return;
	folder_add(search, torch);
	root_folder_each(&search->root, nvidia, "", wheel_add, search);
}

static void python_add(const char *path, void *arg)
{
	static const char *const kinds[] = {"site-packages", "dist-packages"};
	char folder[PATH_MAX];

	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (snprintf(folder, sizeof(folder), "%s/%s", path, kinds[i]) < (int)sizeof(folder))
			packages_add(arg, folder);
}

static void prefix_add(struct loader_search *search, const char *prefix)
{
	char folder[PATH_MAX];

	if (snprintf(folder, sizeof(folder), "%s/lib", prefix) < (int)sizeof(folder))
		root_folder_each(&search->root, folder, "python3", python_add, search);
}

/* Adds PREFIX of PREFIX/bin/python3. */
static void prefix_add_of(struct loader_search *search, const char *program)
{
	char prefix[PATH_MAX];

	snprintf(prefix, sizeof(prefix), "%s", program);
	for (int i = 0; i < 2; i++) {
		char *slash = strrchr(prefix, '/');

		if (!slash)
			return;
		*slash = '\0';
	}
	prefix_add(search, prefix);
}

/* Adds the package directories of an interpreter that has not mapped a package yet. */
static void interpreter_add(struct loader_search *search, pid_t pid, char *const *environment)
{
	const char *name = strrchr(search->root.program, '/');
	char argument[PATH_MAX];
	const char *value;

	if (!name || strncmp(name, "/python", 7) != 0)
		return;
	process_cmdline(pid, argument, sizeof(argument));
	argument[strcspn(argument, " ")] = '\0';
	if (argument[0] == '/')
		prefix_add_of(search, argument);
	value = environment_value(environment, "VIRTUAL_ENV");
	if (value)
		prefix_add(search, value);
	value = environment_value(environment, "HOME");
	if (value && value[0] == '/') {
		snprintf(argument, sizeof(argument), "%s/.local", value);
		prefix_add(search, argument);
	}
	prefix_add_of(search, search->root.program);
	prefix_add(search, "/usr/local");
}

int search_open_exec(struct loader_search **search, pid_t pid, const char *program,
		     char *const *environment)
{
	struct loader_search *made = calloc(1, sizeof(*made));
	const char *list;
	int result;

	*search = NULL;
	if (!made)
		return -ENOMEM;
	result = root_open(&made->root, pid);
	if (result) {
		free(made);
		return result;
	}
	if (program)
		snprintf(made->root.program, sizeof(made->root.program), "%s",
			 root_inside(&made->root, program));
	list = environment ? environment_value(environment, "LD_LIBRARY_PATH") : NULL;
	if (list)
		list_add(made, list, made->root.program);
	if (environment)
		interpreter_add(made, pid, environment);
	*search = made;
	return 0;
}

int search_open(struct loader_search **search, pid_t pid)
{
	char *text = NULL, **environment = NULL;
	struct image image;
	int result;

	if (!image_open(&image, pid)) {
		environment = image_environment(&image, &text);
		image_close(&image);
	}
	result = search_open_exec(search, pid, NULL, environment);
	free(environment);
	free(text);
	return result;
}

void search_close(struct loader_search *search)
{
	if (!search)
		return;
	for (size_t i = 0; i < search->folders.len; i++)
		free(search->folders.data[i]);
	vec_free(&search->folders);
	root_close(&search->root);
	free(search);
}

void search_add_file(struct loader_search *search, const char *path, const char *runpath)
{
	static const char *const kinds[] = {"/site-packages/", "/dist-packages/"};

	path = root_inside(&search->root, path);
	if (runpath)
		list_add(search, runpath, path);
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const char *at = strstr(path, kinds[i]);
		char packages[PATH_MAX];

		if (at && snprintf(packages, sizeof(packages), "%.*s",
				   (int)(at - path + (long)strlen(kinds[i]) - 1),
				   path) < (int)sizeof(packages))
			packages_add(search, packages);
	}
}

uint64_t search_hash(const struct loader_search *search)
{
	uint64_t hash = HASH_BEGIN;

	for (size_t i = 0; i < search->folders.len; i++)
		hash = hash_text(hash, search->folders.data[i]);
	return hash;
}

void search_own(const struct loader_search *search, search_each each, void *arg)
{
	for (size_t i = 0; i < search->folders.len; i++)
		root_folder_each(&search->root, search->folders.data[i], "", each, arg);
}

struct listing {
	const struct loader_search *search;
	search_each each;
	void *arg;
};

static bool folder_list(const char *folder, void *arg)
{
	const struct listing *listing = arg;

	root_folder_each(&listing->search->root, folder, "lib", listing->each, listing->arg);
	return false;
}

void search_system(const struct loader_search *search, search_each each, void *arg)
{
	struct listing listing = {search, each, arg};
	const struct loader_base none = {"", "", NULL};
	size_t bytes;
	char *cache = root_read(&search->root, LOADER_CACHE, LOADER_CACHE_MAX, &bytes);

	if (cache)
		loader_cache_each(cache, bytes, each, arg);
	else
		loader_folders_each(loader_usual, &none, folder_list, &listing);
	free(cache);
}
