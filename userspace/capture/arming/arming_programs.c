// SPDX-License-Identifier: Apache-2.0
/*
 * Arms a program before it begins, and a child while its parent continues. The process waits
 * meanwhile, and most programs have nothing to arm. So the results for a program and its libraries
 * are cached until one of these files changes on disk.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/arming/arming_internal.h"
#include "target/loader/loader.h"
#include "target/loader/needed.h"
#include "target/process/execve.h"
#include "target/process/injection.h"
#include "target/process/path_at.h"
#include "target/process/root.h"
#include "util/hash.h"
#include "util/input.h"

#define PROGRAMS_MAX 4096

static uint64_t hash_file(uint64_t hash, int fd, const struct hash_secret *secret)
{
	struct stat status;

	if (fd < 0 || input_stat(fd, &status))
		return hash_word(hash, 0, secret);
	hash = hash_word(hash, status.st_dev, secret);
	hash = hash_word(hash, status.st_ino, secret);
	hash = hash_word(hash, (uint64_t)status.st_size, secret);
	return hash_keyed(hash, &status.st_ctim, sizeof(status.st_ctim), secret);
}

/* The file is mostly in the page cache, since the previous program has read it. */
static int cache_open(pid_t pid)
{
	struct root root;
	char path[64];
	int folder, fd;

	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0)
		return -errno;
	fd = path_at_cached(folder, LOADER_CACHE, 0);
	close(folder);
	if (fd != -EAGAIN || root_open(&root, pid))
		return fd;
	fd = root_file(&root, LOADER_CACHE);
	root_close(&root);
	return fd;
}

/* Hash of all that decides which files a program loads: its own file, the loader's cache, and the
 * loader's variables in its environment. Also the root, mount namespace and working directory of
 * the process: only their inodes, since the times of a directory change with its entries. */
static uint64_t program_key(pid_t pid, int fd, char *const *environment)
{
	static const char *const places[] = {"root", "ns/mnt", "cwd"};
	const struct hash_secret secret = hash_secret();
	uint64_t hash = hash_file(secret.begin, fd, &secret);
	int cache = cache_open(pid);
	char path[64];

	hash = hash_file(hash, cache, &secret);
	if (cache >= 0)
		close(cache);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct stat status = {0};

		snprintf(path, sizeof(path), "/proc/%d/%s", pid, places[i]);
		input_stat_link(path, &status);
		hash = hash_word(hash, status.st_dev, &secret);
		hash = hash_word(hash, status.st_ino, &secret);
	}
	for (; environment && *environment; environment++)
		if (!strncmp(*environment, "LD_", 3) || injection_sets(*environment))
			hash = hash_keyed(hash, *environment, strlen(*environment), &secret);
	return hash;
}

struct beginning {
	struct arming *arming;
	pid_t pid;
	struct arming_program program;
	bool any;      /* there is something to arm */
	bool complete; /* all of its files are watched for changes */
	arming_file_fn each;
	void *arg;
};

static void file_begin(struct beginning *beginning, int fd, const char *path)
{
	struct arming *arming = beginning->arming;
	struct error ignored = ERROR_INIT;
	int index = file_add(arming, fd, path, false, &ignored);
	struct armed_file *file;

	if (index < 0) {
		beginning->complete = false;
		return;
	}
	file_check(arming, (uint32_t)index, fd);
	file_arm_early(arming, (uint32_t)index, beginning->pid, &ignored);
	file = &arming->files.data[index];
	beginning->any |= file->object != NULL;
	file_rest(file);
	beginning->complete &=
		file->watch > 0 && vec_push(&beginning->program.files.list, (uint32_t)index);
	if (beginning->each)
		beginning->each(fd, path, beginning->arg);
}

static void needed_begin(int fd, const char *path, bool ours, void *arg)
{
	struct beginning *beginning = arg;

	if (ours)
		arming_watch_links(beginning->arming, path);
	file_begin(beginning, fd, path);
}

/* Arms a cached program again. False: one of its files has changed or is closed. `any`: it
 * has something to arm. */
static bool program_again(struct arming *arming, const struct arming_program *program, pid_t pid,
			  bool *any)
{
	struct error ignored = ERROR_INIT;

	for (size_t i = 0; i < program->files.list.len; i++) {
		const struct armed_file *file = &arming->files.data[program->files.list.data[i]];

		if (!file->ino || (file->object && file->fd < 0))
			return false;
		*any |= file->object != NULL;
	}
	for (size_t i = 0; i < program->files.list.len; i++)
		file_arm_early(arming, program->files.list.data[i], pid, &ignored);
	return true;
}

static struct arming_program *program_find(struct arming *arming, uint64_t key)
{
	for (size_t i = 0; i < arming->programs.len; i++)
		if (arming->programs.data[i].key == key)
			return &arming->programs.data[i];
	return NULL;
}

static void program_keep(struct beginning *beginning, struct arming_program *known)
{
	struct arming *arming = beginning->arming;
	struct arming_program *made = &beginning->program;

	if (known) {
		vec_free(&known->files.list);
		*known = arming->programs.data[--arming->programs.len];
	}
	if (!beginning->complete || arming->programs.len == PROGRAMS_MAX ||
	    !vec_push(&arming->programs, *made))
		vec_free(&made->files.list);
}

bool arming_program(struct arming *arming, pid_t pid, int fd, arming_file_fn each, void *arg)
{
	struct beginning beginning = {
		.arming = arming, .pid = pid, .complete = true, .each = each, .arg = arg};
	char link[64], path[4096], *text, **environment;
	struct arming_program *known;
	ssize_t len;

	arming_changed(arming); /* drop cached results for files that have changed */
	environment = execve_environment(pid, &text);
	beginning.program.key = program_key(pid, fd, environment);
	known = program_find(arming, beginning.program.key);
	if (!known || !program_again(arming, known, pid, &beginning.any)) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		len = readlink(link, path, sizeof(path) - 1);
		path[len > 0 ? len : 0] = '\0';
		if (arming->options->calls)
			call_set_process(arming->options->calls, pid);
		file_begin(&beginning, fd, path);
		if (environment)
			needed_each_exec(pid, fd, environment, needed_begin, &beginning);
		if (beginning.program.files.list.len > 1) /* it is not static */
			program_expect(arming, pid, path, environment, &beginning.program.files);
		beginning.complete &= arming->lack == ARMING_COMPLETE;
		program_keep(&beginning, known);
	}
	free(environment);
	free(text);
	return beginning.any;
}

bool arming_has(const struct arming *arming, pid_t pid)
{
	for (size_t i = 0; i < arming->arms.len; i++)
		if (arming->arms.data[i].pid == pid)
			return true;
	return false;
}

int arming_fork(struct arming *arming, pid_t parent, pid_t child)
{
	struct error problem = ERROR_INIT;
	int count = 0, result = 0;

	for (size_t i = arming->arms.len; i > 0 && !result; i--) {
		struct arm arm = arming->arms.data[i - 1];

		if (arm.pid != parent)
			continue;
		count++;
		result = file_arm(arming, arm.file, child, &problem);
	}
	for (size_t i = arming->loading.len; i > 0 && !result; i--) {
		struct loading loading = arming->loading.data[i - 1];

		if (loading.pid == parent && loading.reason != LOADING_AHEAD)
			result = file_arm(arming, loading.file, child, &problem);
	}
	if (!count && !process_of(arming, parent) && !arming_is_everywhere(arming))
		return -ENOENT;
	return result ?: count;
}
