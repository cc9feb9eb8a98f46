// SPDX-License-Identifier: Apache-2.0
/*
 * Arms libraries before a process maps them. A uprobe belongs to a file: the kernel inserts it when
 * the file is mapped, before any of its code can run. So a library armed here is recorded from its
 * first call on. It costs nothing in a process that never opens it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/input.h"

#include "capture/arming/arming_internal.h"
#include "target/loader/needed.h"
#include "target/loader/search.h"
#include "target/process/injection.h"
#include "target/worker/worker_queue.h"

#define EXPECTED_MAX 32 /* limit per session */

struct expecting {
	struct arming *arming;
	pid_t pid;
	const struct loader_search *search;
	const struct call_library *libraries;
	const bool *missing; /* per library: the process has not mapped it */
	size_t count;
	bool system; /* searching the libraries of the system now */
	rlim_t files_max;
	struct file_list *files; /* before an exec: receives the files found; NULL: it is running */
};

/* The first record of a file that was armed ahead: its sites are written now. */
static void site_mapped(struct arming *arming, uint32_t site)
{
	struct error ignored = ERROR_INIT; /* the writer keeps the error */

	for (size_t i = 0; i < arming->files.len; i++) {
		struct armed_file *file = &arming->files.data[i];

		if (file->object && site >= file->first_site &&
		    site - file->first_site < file->object->sites.len)
			file_mapped(arming, file, &ignored);
	}
}

uint32_t arming_number(struct arming *arming, uint32_t site)
{
	if (site >= arming->sites.len)
		return WAFFLE_SITE_UNKNOWN;
	if (arming->sites.data[site].number == WAFFLE_SITE_UNKNOWN)
		site_mapped(arming, site);
	return arming->sites.data[site].number;
}

/* Whether a process has mapped a file of that library. */
static bool has_library(const struct arming *arming, pid_t pid, const struct call_library *library)
{
	for (size_t i = 0; i < arming->files.len; i++) {
		const struct armed_file *file = &arming->files.data[i];

		if (file->object && file->mapped && call_library_is(library, file->object->path) &&
		    file_is_armed(arming, pid, (uint32_t)i))
			return true;
	}
	return false;
}

static uint64_t gpu_calls(const struct armed_counts *counts)
{
	return counts->cuda + counts->hip + counts->nccl;
}

/*
 * Whether to arm a library of the system, which any program may open, in this process. A library
 * that the user requested is armed. One of a table is armed if that does not cost others anything.
 * Otherwise (all processes are armed, or each probe needs its own link) it is only armed if CUDA or
 * NCCL calls are known already.
 */
static bool system_has(const struct arming *arming, const struct call_library *library)
{
	bool cheap =
		!arming->options->kernel.config.follow_children && kernel_arms_many(arming->kernel);
	uint64_t known = gpu_calls(&arming->counts) + gpu_calls(&arming->expected);

	return cheap || library->asked || (library->table && known);
}

static bool is_wanted(const struct expecting *expecting, const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash || !strstr(slash, ".so"))
		return false;
	for (size_t i = 0; i < expecting->count; i++)
		if (expecting->missing[i] && call_library_is(&expecting->libraries[i], path) &&
		    (!expecting->system || system_has(expecting->arming, &expecting->libraries[i])))
			return true;
	return false;
}

static size_t expected_count(const struct arming *arming)
{
	size_t count = 0;

	for (size_t i = 0; i < arming->files.len; i++)
		count += arming->files.data[i].expected;
	return count;
}

/* Returns the index of a file that is armed ahead, or a negative number. */
static int expected_add(struct arming *arming, int fd, const char *path)
{
	struct error ignored = ERROR_INIT;
	struct stat status;
	uint64_t key[2];
	bool quiet;
	int index;

	if (input_stat(fd, &status))
		return -ENOENT;
	key[0] = status.st_dev;
	key[1] = status.st_ino;
	if (keymap_get(&arming->dismissed, key, sizeof(key)) != MAP_NONE)
		return -ENOENT;
	index = file_find(arming, status.st_dev, status.st_ino);
	if (index >= 0)
		return index;
	if (expected_count(arming) == EXPECTED_MAX)
		return -E2BIG;
	quiet = worker_queue_quiet(true);
	index = file_add(arming, fd, path, true, &ignored);
	worker_queue_quiet(quiet);
	if (index == -EAGAIN)
		return index;
	if (index < 0) {
		if (!keymap_set(&arming->dismissed, key, sizeof(key), 1))
			return -ENOMEM;
		return index;
	}
	for (size_t i = 0; i < arming->files.data[index].object->sites.len; i++)
		armed_count(&arming->expected, &arming->files.data[index].object->sites.data[i]);
	return index;
}

static void path_expect(const char *path, void *arg)
{
	const struct expecting *expecting = arg;
	struct error ignored = ERROR_INIT;
	char link[64], real[4096];
	int fd, index = -1;
	ssize_t len;

	if (!is_wanted(expecting, path))
		return;
	fd = search_file(expecting->search, path);
	if (fd < 0)
		return;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, real, sizeof(real) - 1);
	real[len > 0 ? len : 0] = '\0';
	/* The lowest free descriptor shows how many are open. Some are reserved for files that are
	 * mapped. */
	if ((rlim_t)fd < expecting->files_max &&
	    call_set_wants(expecting->arming->options->calls, real))
		index = expected_add(expecting->arming, fd, real);
	if (index >= 0)
		file_open(&expecting->arming->files.data[index], fd);
	if (index >= 0 && expecting->files)
		file_arm_early(expecting->arming, (uint32_t)index, expecting->pid, &ignored);
	else if (index >= 0)
		file_arm(expecting->arming, (uint32_t)index, expecting->pid, &ignored);
	if (index >= 0)
		file_rest(&expecting->arming->files.data[index]);
	if (index >= 0 && expecting->files)
		(void)!vec_push(&expecting->files->list, (uint32_t)index);
	close(fd);
}

/* Searches libraries with a path in their description first, then the process's own directories,
 * then those of the system. The process's own libraries show whether it uses CUDA or NCCL. */
static void libraries_expect(struct expecting *expecting)
{
	for (size_t i = 0; i < expecting->count; i++)
		if (expecting->libraries[i].name[0] == '/')
			path_expect(expecting->libraries[i].name, expecting);
	search_own(expecting->search, path_expect, expecting);
	expecting->system = true;
	search_system(expecting->search, path_expect, expecting);
}

static void folders_add(const struct arming *arming, const struct file_list *files,
			struct loader_search *search)
{
	for (size_t i = 0; i < files->list.len; i++) {
		const struct armed_file *file = &arming->files.data[files->list.data[i]];

		search_add_file(search, file->path, file->runpath);
	}
}

/* One entry per library. NULL: none is missing. */
static bool *missing_libraries(const struct arming *arming, pid_t pid,
			       const struct call_library *libraries, size_t count)
{
	bool *missing = calloc(count + 1, sizeof(*missing)), any = false;

	for (size_t i = 0; missing && i < count; i++) {
		missing[i] = !has_library(arming, pid, &libraries[i]);
		any |= missing[i];
	}
	if (any)
		return missing;
	free(missing);
	return NULL;
}

/* Takes ownership of the search. `folders`: hash of the directories searched before, or NULL. */
static void search_expect(struct arming *arming, pid_t pid, struct loader_search *search,
			  const struct file_list *mapped, uint64_t *folders,
			  struct file_list *files)
{
	struct expecting expecting = {
		.arming = arming, .pid = pid, .search = search, .files = files};
	enum arming_lack lack = arming_left_out(arming);
	bool warned = arming->warning[0];
	struct rlimit limit;

	expecting.count = call_set_libraries(arming->options->calls, &expecting.libraries);
	expecting.missing = missing_libraries(arming, pid, expecting.libraries, expecting.count);
	if (expecting.missing && !getrlimit(RLIMIT_NOFILE, &limit)) {
		expecting.files_max = limit.rlim_cur / 2;
		call_set_process(arming->options->calls, pid);
		folders_add(arming, mapped, search);
		if (!folders || *folders != search_hash(search))
			libraries_expect(&expecting);
		if (folders)
			*folders = arming->lack ? 0 : search_hash(search);
	}
	if (lack > arming->lack)
		arming->lack = lack;
	/* Problems of a file are reported when it is mapped. */
	if (!warned)
		arming->warning[0] = '\0';
	search_close(search);
	free((void *)(uintptr_t)expecting.missing);
}

struct injected {
	struct arming *arming;
	pid_t pid;
	bool pending;
};

static void injected_arm(int fd, const char *path, bool ours, void *arg)
{
	struct injected *injected = arg;
	struct error ignored = ERROR_INIT;
	int index;

	(void)ours;
	if (!injection_is_ours(path))
		return;
	index = file_add(injected->arming, fd, path, false, &ignored);
	injected->pending |= index == -EAGAIN;
	if (index < 0)
		return;
	file_arm(injected->arming, (uint32_t)index, injected->pid, &ignored);
	file_rest(&injected->arming->files.data[index]);
}

/* CUDA's driver and others load libwaffle-gpu when the process first uses them. */
static void injected_expect(struct arming *arming, struct arming_process *process)
{
	struct injected injected = {.arming = arming, .pid = process->pid};
	bool filtered = arming->plan && !arming->plan->is_static;

	if (process->injected || !arming->transport)
		return;
	needed_injected(process->pid, injected_arm, &injected);
	/* Later the place of a filter can't change without a loss (transport_keeps_kernel()). */
	process->injected = !injected.pending || filtered;
}

void arming_expect(struct arming *arming, pid_t pid)
{
	struct arming_process *process = process_of(arming, pid);
	struct loader_search *search;

	if (process)
		injected_expect(arming, process);
	if (arming->options->calls && arming->changes >= 0 && process && !search_open(&search, pid))
		search_expect(arming, pid, search, &process->files, &process->folders, NULL);
}

void program_expect(struct arming *arming, pid_t pid, const char *path, char *const *environment,
		    struct file_list *files)
{
	struct file_list mapped = {0}; /* a copy, since `files` grows meanwhile */
	struct loader_search *search;

	for (size_t i = 0; i < files->list.len; i++)
		(void)!vec_push(&mapped.list, files->list.data[i]);
	if (arming->options->calls && arming->changes >= 0 &&
	    !search_open_exec(&search, pid, path, environment))
		search_expect(arming, pid, search, &mapped, NULL, files);
	vec_free(&mapped.list);
}
