// SPDX-License-Identifier: Apache-2.0
#include "target/search.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "target/loader.h"
#include "target/process.h"
#include "util/vec.h"

#define PATH_BYTES 4096
#define FOLDERS_MAX 256
#define ENTRIES_MAX 20000 /* of a folder */
#define CACHE_BYTES_MAX (4 << 20)

struct search {
	int root;
	char program[PATH_BYTES];
	VEC(char *) folders;
};

/* Where a loader without a cache looks, such as musl's. */
static const char *const system_folders[] = {"/lib", "/usr/lib", "/usr/local/lib", "/lib64",
					     "/usr/lib64"};

/* As the process would open it: absolute links are from its root on, and nothing leads out. */
static int open_in_root(const struct search *search, const char *path, int flags)
{
	struct open_how how = {.flags = (uint64_t)flags | O_CLOEXEC,
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	int fd = (int)syscall(SYS_openat2, search->root, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

int search_file(const struct search *search, const char *path)
{
	int place = open_in_root(search, path, O_PATH), fd = -EINVAL;
	char name[64];
	struct stat status;

	if (place < 0)
		return place;
	/* To open a device or a pipe would do something to it. */
	snprintf(name, sizeof(name), "/proc/self/fd/%d", place);
	if (!fstat(place, &status) && S_ISREG(status.st_mode)) {
		fd = open(name, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			fd = -errno;
	}
	close(place);
	return fd;
}

/* Calls `each` with a folder's entries whose names begin so. */
static void folder_each(const struct search *search, const char *folder, const char *prefix,
			search_each each, void *arg)
{
	int fd = open_in_root(search, folder, O_RDONLY | O_DIRECTORY);
	DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;
	char path[PATH_BYTES];

	if (!entries) {
		if (fd >= 0)
			close(fd);
		return;
	}
	for (unsigned i = 0; i < ENTRIES_MAX && (entry = readdir(entries)); i++) {
		if (entry->d_name[0] == '.' || strncmp(entry->d_name, prefix, strlen(prefix)) != 0)
			continue;
		if (snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) <
		    (int)sizeof(path))
			each(path, arg);
	}
	closedir(entries);
}

static bool has_folder(const struct search *search, const char *path)
{
	for (size_t i = 0; i < search->folders.len; i++)
		if (!strcmp(search->folders.data[i], path))
			return true;
	return false;
}

static void folder_add(struct search *search, const char *path)
{
	char *copy;

	if (path[0] != '/' || strchr(path, '$') || search->folders.len == FOLDERS_MAX ||
	    has_folder(search, path))
		return;
	copy = strdup(path);
	if (copy && !vec_push(&search->folders, copy))
		free(copy);
}

/* Adds the folders of a list as the loader reads it; $ORIGIN is the folder of the file at `path`.
 */
static void list_add(struct search *search, const char *list, const char *path)
{
	const char *slash = strrchr(path, '/');
	int origin = slash ? (int)(slash - path) : 0;

	while (*list) {
		size_t len = strcspn(list, ":;"), token = 0;
		char folder[PATH_BYTES];
		int written;

		if (!strncmp(list, "$ORIGIN", 7))
			token = 7;
		else if (!strncmp(list, "${ORIGIN}", 9))
			token = 9;
		written = snprintf(folder, sizeof(folder), "%.*s%.*s", token ? origin : 0, path,
				   (int)(len - token), list + token);
		if (written < (int)sizeof(folder))
			folder_add(search, folder);
		list += len + (list[len] != '\0');
	}
}

static void wheel_add(const char *path, void *arg)
{
	char folder[PATH_BYTES];

	if (snprintf(folder, sizeof(folder), "%s/lib", path) < (int)sizeof(folder))
		folder_add(arg, folder);
}

/* Where NVIDIA's wheels and PyTorch's have their libraries: nvidia/nccl/lib, torch/lib. */
static void packages_add(struct search *search, const char *packages)
{
	char torch[PATH_BYTES], nvidia[PATH_BYTES];

	if (snprintf(torch, sizeof(torch), "%s/torch/lib", packages) >= (int)sizeof(torch) ||
	    snprintf(nvidia, sizeof(nvidia), "%s/nvidia", packages) >= (int)sizeof(nvidia) ||
	    has_folder(search, torch))
		return;
	folder_add(search, torch);
	folder_each(search, nvidia, "", wheel_add, search);
}

static void python_add(const char *path, void *arg)
{
	static const char *const kinds[] = {"site-packages", "dist-packages"};
	char folder[PATH_BYTES];

	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (snprintf(folder, sizeof(folder), "%s/%s", path, kinds[i]) < (int)sizeof(folder))
			packages_add(arg, folder);
}

static void prefix_add(struct search *search, const char *prefix)
{
	char folder[PATH_BYTES];

	if (snprintf(folder, sizeof(folder), "%s/lib", prefix) < (int)sizeof(folder))
		folder_each(search, folder, "python3", python_add, search);
}

/* PREFIX of PREFIX/bin/python3. */
static void prefix_add_of(struct search *search, const char *program)
{
	char prefix[PATH_BYTES];

	snprintf(prefix, sizeof(prefix), "%s", program);
	for (int i = 0; i < 2; i++) {
		char *slash = strrchr(prefix, '/');

		if (!slash)
			return;
		*slash = '\0';
	}
	prefix_add(search, prefix);
}

/* The packages of an interpreter that has not mapped any of them yet. */
static void interpreter_add(struct search *search, pid_t pid, char *const *environment)
{
	const char *name = strrchr(search->program, '/');
	char argument[PATH_BYTES];

	if (!name || strncmp(name, "/python", 7) != 0)
		return;
	process_cmdline(pid, argument, sizeof(argument));
	argument[strcspn(argument, " ")] = '\0';
	if (argument[0] == '/')
		prefix_add_of(search, argument);
	for (; *environment; environment++) {
		if (!strncmp(*environment, "VIRTUAL_ENV=", 12))
			prefix_add(search, *environment + 12);
		else if (!strncmp(*environment, "HOME=", 5) && (*environment)[5] == '/') {
			snprintf(argument, sizeof(argument), "%s/.local", *environment + 5);
			prefix_add(search, argument);
		}
	}
	prefix_add_of(search, search->program);
	prefix_add(search, "/usr/local");
}

int search_open(struct search **search, pid_t pid)
{
	char path[64], *text = NULL, **environment;
	struct search *made = calloc(1, sizeof(*made));
	ssize_t len;
	int probe;

	*search = NULL;
	if (!made)
		return -ENOMEM;
	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	made->root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	probe = made->root < 0 ? -ESRCH : open_in_root(made, "/", O_PATH);
	if (probe < 0) {
		search_close(made);
		return probe;
	}
	close(probe);
	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	len = readlink(path, made->program, sizeof(made->program) - 1);
	made->program[len > 0 ? len : 0] = '\0';
	environment = process_environment(pid, &text);
	for (char **at = environment; at && *at; at++)
		if (!strncmp(*at, "LD_LIBRARY_PATH=", 16))
			list_add(made, *at + 16, made->program);
	if (environment)
		interpreter_add(made, pid, environment);
	free(environment);
	free(text);
	*search = made;
	return 0;
}

void search_close(struct search *search)
{
	if (!search)
		return;
	for (size_t i = 0; i < search->folders.len; i++)
		free(search->folders.data[i]);
	vec_free(&search->folders);
	if (search->root >= 0)
		close(search->root);
	free(search);
}

void search_add_file(struct search *search, const char *path, const char *runpath)
{
	static const char *const kinds[] = {"/site-packages/", "/dist-packages/"};

	if (runpath)
		list_add(search, runpath, path);
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const char *at = strstr(path, kinds[i]);
		char packages[PATH_BYTES];

		if (at && snprintf(packages, sizeof(packages), "%.*s",
				   (int)(at - path + (long)strlen(kinds[i]) - 1),
				   path) < (int)sizeof(packages))
			packages_add(search, packages);
	}
}

uint64_t search_hash(const struct search *search)
{
	uint64_t hash = 0xcbf29ce484222325ull; /* FNV-1a */

	for (size_t i = 0; i < search->folders.len; i++)
		for (const char *at = search->folders.data[i]; *at; at++)
			hash = (hash ^ (unsigned char)*at) * 0x100000001b3ull;
	return hash;
}

void search_own(const struct search *search, search_each each, void *arg)
{
	for (size_t i = 0; i < search->folders.len; i++)
		folder_each(search, search->folders.data[i], "", each, arg);
}

void search_system(const struct search *search, search_each each, void *arg)
{
	int fd = search_file(search, "/etc/ld.so.cache");
	struct stat status;
	char *cache = NULL;
	size_t len = 0;
	ssize_t got;

	if (fd >= 0 && !fstat(fd, &status) && status.st_size > 0 &&
	    status.st_size <= CACHE_BYTES_MAX)
		cache = malloc((size_t)status.st_size);
	while (cache && len < (size_t)status.st_size &&
	       (got = read(fd, cache + len, (size_t)status.st_size - len)) > 0)
		len += (size_t)got;
	if (cache)
		loader_cache_each(cache, len, each, arg);
	for (unsigned i = 0; !cache && i < sizeof(system_folders) / sizeof(system_folders[0]); i++)
		folder_each(search, system_folders[i], "lib", each, arg);
	free(cache);
	if (fd >= 0)
		close(fd);
}
