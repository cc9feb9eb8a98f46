// SPDX-License-Identifier: Apache-2.0
#include "capture/arming.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/arming_internal.h"
#include "target/loader.h"
#include "target/mapping_file.h"
#include "target/needed.h"
#include "target/worker_queue.h"
#include "util/hash.h"
#include "util/near.h"
#include "util/units.h"

int arming_open(struct arming **arming, struct kernel *kernel, struct store_writer *writer,
		const struct arming_options *options, struct error *err)
{
	*arming = calloc(1, sizeof(**arming));
	if (!*arming)
		return error_set(err, ENOMEM, "out of memory");
	(*arming)->kernel = kernel;
	(*arming)->writer = writer;
	(*arming)->options = *options;
	(*arming)->changes = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	return 0;
}

uint64_t file_hash(dev_t dev, ino_t ino)
{
	return hash_bytes(hash_bytes(HASH_BEGIN, &dev, sizeof(dev)), &ino, sizeof(ino));
}

int file_find(const struct arming *arming, dev_t dev, ino_t ino)
{
	uint32_t index;

	for (uint64_t key = file_hash(dev, ino);
	     (index = map_get(&arming->file_at, key)) != MAP_NONE; key++)
		if (arming->files.data[index].ino == ino && arming->files.data[index].dev == dev)
			return (int)index;
	return -1;
}

/* Returns the index of the file, or -1: out of memory. */
static int file_keep(struct arming *arming, const struct file *file)
{
	uint64_t key = file_hash(file->dev, file->ino);
	uint32_t other;

	/* A retired file (ino 0) leaves its key to the new file. */
	while ((other = map_get(&arming->file_at, key)) != MAP_NONE &&
	       arming->files.data[other].ino)
		key++;
	if (!vec_reserve(&arming->files, 1) ||
	    !map_set(&arming->file_at, key, (uint32_t)arming->files.len))
		return -1;
	arming->files.data[arming->files.len] = *file;
	return (int)arming->files.len++;
}

/* Applies the plan to each site of a file and loads the BPF programs that this requires. */
static int file_plan(struct arming *arming, struct file *file, struct error *err)
{
	struct plan *plan = arming->options.plan;
	struct object *object = file->object;
	int result = 0;

	if (!plan) {
		file->matching = object->sites.len;
		return 0;
	}
	file->uses = calloc(object->sites.len + 1, sizeof(*file->uses));
	if (!file->uses)
		return error_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; !result && i < object->sites.len; i++) {
		struct arm_use *use = &file->uses[i];

		result = plan_site(plan, &object->sites.data[i], &use->use, &use->class, err);
		file->matching += !result && use->use == PLAN_MATCHES;
	}
	return result ?: arming_classes(arming, err);
}

/* A late library stays dormant if the programs for its filter cannot be made. */
static int file_plan_late(struct arming *arming, struct file *file, struct error *err)
{
	struct error problem = ERROR_INIT;
	int result = file_plan(arming, file, &problem);

	if (!result)
		return 0;
	if ((!arming->arms.len && !file->expected) || !file->uses)
		return error_set(err, -result, "%s", problem.message);
	memset(file->uses, 0, file->object->sites.len * sizeof(*file->uses));
	if (!arming->warning[0])
		snprintf(arming->warning, sizeof(arming->warning), "%s: %s", file->object->path,
			 problem.message);
	return 0;
}

/* Chooses the sites that record stacks. For calls the recipes request them. */
static int file_choose(struct arming *arming, struct file *file, struct error *err)
{
	struct object *object = file->object;

	if (!arming->options.stacks)
		return 0;
	file->stacks = calloc(object->sites.len, sizeof(*file->stacks));
	if (!file->stacks)
		return error_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < object->sites.len; i++)
		file->stacks[i] = stack_choice_has(arming->options.stacks, &object->sites.data[i]);
	for (size_t i = 0; i < object->calls.len; i++) {
		struct object_call *call = &object->calls.data[i];

		if (file->stacks[call->site])
			call->recipe.flags |= WAFFLE_CALL_STACK;
	}
	return 0;
}

/* Numbers the sites of a file. */
static int file_register(struct arming *arming, struct file *file, struct error *err)
{
	struct object *object = file->object;
	size_t call = 0;

	file->first_site = (uint32_t)arming->sites.len;
	for (size_t i = 0; i < object->sites.len; i++) {
		const struct waffle_recipe *recipe = NULL;
		int result;

		if (call < object->calls.len && object->calls.data[call].site == i)
			recipe = &object->calls.data[call++].recipe;
		result = arming_register(arming, &object->sites.data[i], recipe, err);
		if (result)
			return result;
	}
	for (size_t i = 0; i < object->probes.len; i++) {
		const struct object_probe *probe = &object->probes.data[i];

		if (probe->site != OBJECT_SPAN_END && probe->type == OBJECT_PROBE_SITE &&
		    !map_set(&file->by_offset, probe->offset, file->first_site + probe->site))
			return error_set(err, ENOMEM, "out of memory");
	}
	return 0;
}

/* Reads the sites and calls of a file. An unreadable file has none. Calls that cannot be found have
 * none either, and the reason is reported. Errors are -ENOMEM, and -EAGAIN: it is still being
 * parsed. */
static int file_read(struct arming *arming, struct file *file, int fd, const char *shown_path,
		     struct error *err)
{
	struct call_set *calls = arming->options.calls;
	struct error problem = ERROR_INIT;
	struct object *object;
	int result = object_read(&object, fd, shown_path, &problem);

	if (result == -EAGAIN)
		return result;
	file->runpath = calls ? loader_runpath(fd) : NULL;
	if (result == -ENOTSUP && !arming->warning[0])
		snprintf(arming->warning, sizeof(arming->warning), "%s", problem.message);
	if (result)
		return result == -ENOMEM ? error_set(err, ENOMEM, "%s", problem.message) : 0;
	if (!arming->options.sites)
		object->sites.len = object->probes.len = 0;
	if (calls && call_set_wants(calls, shown_path))
		result = file->expected
				 ? call_set_find_ahead(calls, object, fd, &file->ahead, &problem)
				 : call_set_find(calls, object, fd, &problem);
	if (result == -ENOMEM)
		error_set(err, ENOMEM, "%s", problem.message);
	else if (result && result != -EAGAIN && !arming->warning[0])
		snprintf(arming->warning, sizeof(arming->warning), "%s: %s", shown_path,
			 problem.message);
	if (result == -ENOMEM || result == -EAGAIN || !object->probes.len)
		object_free(object);
	else
		file->object = object;
	return result == -ENOMEM || result == -EAGAIN ? result : 0;
}

static void file_free(struct file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	object_free(file->object);
	call_ahead_free(file->ahead);
	free(file->uses);
	free(file->stacks);
	free(file->runpath);
	free(file->path);
	map_free(&file->by_offset);
}

/* Prepares a file up to its kernel programs. */
static int file_make(struct arming *arming, struct file *file, int fd, const char *shown_path,
		     struct error *err)
{
	size_t first = arming->sites.len;
	int result = file_read(arming, file, fd, shown_path, err);

	/* Keep nothing of such a file: it is examined again when a process maps it. */
	if (!result && file->expected &&
	    (!file->ahead || !file->object ||
	     arming->sites.len + file->object->sites.len > WAFFLE_RECIPES_MAX / 2))
		return -ENOENT;
	if (!result && file->object)
		result = file_choose(arming, file, err)
				 ?: file_register(arming, file, err)
				 ?: file_plan_late(arming, file, err)
				 ?: arming_recipes(arming, file, err);
	if (!result && !file->expected)
		result = file_came(arming, file, err);
	if (result)
		arming->sites.len = first;
	return result;
}

void file_open(struct file *file, int fd)
{
	if (file->object && file->fd < 0)
		file->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

void file_rest(struct file *file)
{
	if (file->fd >= 0 && !file->arm_count)
		file->fd = (close(file->fd), -1);
}

int file_add(struct arming *arming, int fd, const char *shown_path, bool expected,
	     struct error *err)
{
	struct file file = {.fd = -1, .expected = expected};
	struct stat status;
	int index, result = 0;

	if (fstat(fd, &status))
		return -errno;
	index = file_find(arming, status.st_dev, status.st_ino);
	if (index >= 0 && !expected)
		result = file_came(arming, &arming->files.data[index], err);
	if (index >= 0 && !result)
		file_open(&arming->files.data[index], fd);
	if (index >= 0)
		return result ? result : index;
	file.dev = status.st_dev;
	file.ino = status.st_ino;
	file.change = status.st_ctim;
	file.path = strdup(shown_path);
	if (!file.path)
		return error_set(err, ENOMEM, "out of memory");
	result = file_watch(arming, &file, fd);
	if (result && expected) {
		file_free(&file);
		return result;
	}
	/* A file that is not ELF, or has no sites, is remembered as such. */
	result = file_make(arming, &file, fd, shown_path, err);
	if (result != -EAGAIN)
		worker_queue_forget(fd);
	else if (!expected)
		arming->lack = ARMING_LACKS_FILES;
	else if (arming->lack == ARMING_COMPLETE)
		arming->lack = ARMING_LACKS_EXPECTED;
	file_open(&file, fd);
	if (!result && !file.object)
		file_watch_less(arming, &file, fd);
	if (!result && !expected)
		file_replaces(arming, shown_path);
	index = result ? -1 : file_keep(arming, &file);
	if (index >= 0)
		return index;
	if (result != -EAGAIN) /* -EAGAIN: the watch stays */
		file_unwatch(arming, &file);
	file_free(&file);
	return result ? result : error_set(err, ENOMEM, "out of memory");
}

bool file_is_armed(const struct arming *arming, pid_t pid, uint32_t file)
{
	if (arming->files.data[file].armed_everywhere)
		return true;
	for (size_t i = 0; i < arming->arms.len; i++)
		if (arming->arms.data[i].pid == pid && arming->arms.data[i].file == file)
			return true;
	return false;
}

/* Name of the function or site that is probed at an offset of the file. */
static const char *probe_name(const struct object *object, uint64_t offset)
{
	for (size_t i = 0; i < object->probes.len; i++) {
		const struct object_probe *probe = &object->probes.data[i];

		if (probe->offset == offset && probe->site != OBJECT_SPAN_END)
			return object->sites.data[probe->site].func;
	}
	return "one";
}

/* Warns of probes that the kernel rejected. */
static void warn_left_out(struct arming *arming, const struct object *object,
			  const struct armed *armed)
{
	struct armed_unsupported unsupported = armed_unsupported(armed);
	char others[UNITS_TEXT];

	if (arming->warning[0])
		return;
	if (unsupported.count)
		snprintf(arming->warning, sizeof(arming->warning),
			 "arming %s: %s%s can't be probed: the kernel sets no probe at such an "
			 "instruction; all others are armed",
			 object->path, probe_name(object, unsupported.first),
			 units_format_more(others, unsupported.count - 1));
	else if (armed_refused(armed))
		snprintf(arming->warning, sizeof(arming->warning),
			 "arming %s: %zu of %zu probes stay dormant: another tracer probes them "
			 "with other semaphores (as bpftrace does); end it and attach again",
			 object->path, armed_refused(armed), object->probes.len);
}

/* A request to arm a file in `pid`. It uses the path of our descriptor, since any other path may
 * lead to another file by now. */
static struct arm_request file_request(const struct file *file, pid_t pid, char path[64])
{
	snprintf(path, 64, "/proc/self/fd/%d", file->fd);
	return (struct arm_request){
		.object = file->object,
		.path = path,
		.pid = pid,
		.first_site = file->first_site,
		.uses = file->uses,
		.stacks = file->stacks,
	};
}

void file_check(struct arming *arming, uint32_t index, int fd)
{
	struct file *file = &arming->files.data[index];
	struct error ignored = ERROR_INIT;
	struct arm_request request;
	struct armed *armed = NULL;
	struct stat status;
	char path[64];
	void *memory;

	if (file->checked || !file->object || !file->object->calls.len || fstat(fd, &status))
		return;
	file->checked = true;
	memory = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (memory == MAP_FAILED)
		return;
	request = file_request(file, getpid(), path);
	if (!kernel_arm(arming->kernel, &armed, &request, &ignored) && armed)
		warn_left_out(arming, file->object, armed);
	munmap(memory, (size_t)status.st_size);
	if (armed)
		kernel_disarm_later(arming->kernel, &armed, 1);
}

/*
 * Arms a file, so far armed in single processes, in all processes instead, so that no process has
 * its probes twice. Only related programs contain such sites. But any program may run functions
 * such as malloc(). So those stay dormant, unless the user agreed to slow down all programs. False:
 * nothing changed.
 */
static bool file_widen(struct arming *arming, uint32_t index)
{
	struct file *file = &arming->files.data[index];
	int fd;

	if (file->object->calls.len && !arming->options.may_widen) {
		file_tell(arming, file,
			  "stays dormant in a process whose main thread has exited: there the "
			  "kernel can't tell its calls from those of other processes; "
			  "--machine-wide arms it in all of them");
		return false;
	}
	file_tell(arming, file,
		  "is armed in all processes that run it: of one whose main thread has exited, the "
		  "kernel can't tell the probes from those of others");
	fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0); /* arm_remove() may close the file */

	kernel_probes_widen(arming->kernel);
	for (size_t i = arming->arms.len; i > 0; i--)
		if (arming->arms.data[i - 1].file == index)
			armed_release(arm_remove(arming, i - 1));
	file_open(file, fd);
	close(fd);
	return true;
}

/* Reserves some descriptors for other uses. The lowest free number shows how many are open. */
static bool has_room(const struct file *file)
{
	int lowest = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
	struct rlimit limit;

	if (lowest >= 0)
		close(lowest);
	return lowest >= 0 &&
	       (getrlimit(RLIMIT_NOFILE, &limit) || (rlim_t)lowest < limit.rlim_cur / 8 * 7);
}

int file_arm(struct arming *arming, uint32_t index, pid_t pid, struct error *err)
{
	struct file *file = &arming->files.data[index];
	bool everywhere = arming->options.everywhere;
	struct error problem = ERROR_INIT;
	struct arm_request request;
	struct arm arm;
	char path[64];
	int result;

	if (!file->object || file_is_armed(arming, pid, index))
		return 0;
	if (everywhere && file_is_doubled(file))
		file_tell(arming, file,
			  "records nothing in programs that begin later: its linker (lld) lets two "
			  "segments share the page of its semaphores; link it with "
			  "-Wl,-z,separate-loadable-segments, or leave out --machine-wide");
	if (!everywhere && file_is_doubled(file)) {
		/* The currently mapped program is about to be replaced by another one. */
		if (file_is_ahead(arming, index, pid))
			return 0;
		if (!file_is_loaded(file, pid))
			return file_await(arming, index, pid, err);
	}
	if (!everywhere && process_live_task(pid) != pid) {
		if (!file_widen(arming, index))
			return 0;
		everywhere = true;
	}
	if (!has_room(file)) {
		if (!arming->warning[0])
			snprintf(arming->warning, sizeof(arming->warning),
				 "arming %s: too many open files; its sites stay dormant in some "
				 "processes; raise 'ulimit -n', or arm all with --machine-wide",
				 file->path);
		return 0;
	}
	arm = (struct arm){.pid = everywhere ? -1 : pid, .file = index};
	request = file_request(file, arm.pid, path);
	result = kernel_arm(arming->kernel, &arm.armed, &request, &problem);
	if (result == -ESRCH || (result && kill(pid, 0) && errno == ESRCH))
		return error_set(err, ESRCH, "pid %d: it exited while being armed", pid);
	if (result) {
		if (!arming->warning[0])
			snprintf(arming->warning, sizeof(arming->warning), "%s", problem.message);
		return 0;
	}
	warn_left_out(arming, file->object, arm.armed);
	file->armed_everywhere = everywhere;
	if (arm.armed && !vec_push(&arming->arms, arm)) {
		armed_release(arm.armed);
		return error_set(err, ENOMEM, "out of memory");
	}
	file->arm_count += arm.armed != NULL;
	arming->arm_count += arm.armed != NULL;
	return 0;
}

struct armed *arm_remove(struct arming *arming, size_t row)
{
	struct arm *arm = &arming->arms.data[row];
	struct armed *armed = arm->armed;
	struct file *file = &arming->files.data[arm->file];

	*arm = arming->arms.data[--arming->arms.len];
	file->arm_count--;
	file_rest(file);
	return armed;
}

struct memory *memory_of(struct arming *arming, pid_t pid)
{
	for (size_t i = 0; i < arming->memories.len; i++)
		if (arming->memories.data[i].pid == pid)
			return &arming->memories.data[i];
	return NULL;
}

static void memory_free(struct memory *memory)
{
	mappings_free(&memory->mappings);
	vec_free(&memory->files.list);
	map_free(&memory->addresses);
}

/* Stores the mappings, with their files, for arming_site_at(), and takes ownership of them. */
static void memory_keep(struct arming *arming, struct memory *seen)
{
	struct memory *memory = memory_of(arming, seen->pid);

	if (memory) {
		seen->folders = memory->folders;
		memory_free(memory);
		*memory = *seen;
	} else if (!vec_push(&arming->memories, *seen)) {
		memory_free(seen);
	}
}

/* Reads the current mappings of a process, to look up addresses. */
static void memory_refresh(struct arming *arming, pid_t pid)
{
	struct memory *memory = memory_of(arming, pid), seen = {.pid = pid};
	struct error ignored = ERROR_INIT;

	if (process_mappings(&seen.mappings, pid, &ignored))
		return; /* the process is gone, so its addresses stay unknown */
	if (!memory) {
		memory_keep(arming, &seen);
		return;
	}
	mappings_free(&memory->mappings);
	map_free(&memory->addresses);
	memory->mappings = seen.mappings;
}

/* Resolves the paths of descriptions as this process sees them. */
static void look_at(struct arming *arming, pid_t pid)
{
	if (arming->options.calls)
		call_set_process(arming->options.calls, pid);
}

/* Records that a file could not be read, which does not mean that it has no sites. */
static void denied_note(struct arming *arming, const struct mapping *mapping, pid_t pid, int code)
{
	arming->denied = true;
	if (!arming->warning[0])
		snprintf(arming->warning, sizeof(arming->warning),
			 "%s: %s; its sites could not be read and are not armed; that needs %s",
			 mapping->path, strerror(code), mapping_open_needs(pid));
}

int arming_scan(struct arming *arming, pid_t pid, struct error *err)
{
	struct memory seen = {.pid = pid};
	int result = process_mappings(&seen.mappings, pid, err);

	look_at(arming, pid);
	for (size_t i = 0; !result && i < seen.mappings.list.len; i++) {
		const struct mapping *mapping = &seen.mappings.list.data[i];
		char path[4096];
		int fd = mapping_open(mapping, pid, path, sizeof(path)), index;

		if (fd == -EACCES || fd == -EPERM)
			denied_note(arming, mapping, pid, -fd);
		if (fd < 0)
			continue; /* unmapped meanwhile, or inaccessible */
		index = file_add(arming, fd, mapping->path, false, err);
		if (index != -EAGAIN)
			result = index < 0 ? index : file_arm(arming, (uint32_t)index, pid, err);
		if (index >= 0)
			file_rest(&arming->files.data[index]);
		close(fd);
		if (index >= 0 && !result && !vec_push(&seen.files.list, (uint32_t)index))
			result = error_set(err, ENOMEM, "out of memory");
	}
	if (result) {
		memory_free(&seen);
		return result;
	}
	arming_warn_moved(arming, &seen);
	memory_keep(arming, &seen);
	return 0;
}

static void arm_needed(int fd, const char *path, bool ours, void *arg)
{
	const struct {
		struct arming *arming;
		pid_t pid;
	} *context = arg;
	struct error ignored = ERROR_INIT;
	int index;

	if (ours)
		arming_watch_links(context->arming, path);
	index = file_add(context->arming, fd, path, false, &ignored);
	if (index >= 0)
		file_arm_ahead(context->arming, (uint32_t)index, context->pid, &ignored);
	if (index >= 0)
		file_rest(&context->arming->files.data[index]);
}

void arming_scan_needed(struct arming *arming, pid_t pid)
{
	struct {
		struct arming *arming;
		pid_t pid;
	} context = {arming, pid};

	look_at(arming, pid);
	needed_each(pid, arm_needed, &context);
}

enum arming_lack arming_left_out(struct arming *arming)
{
	enum arming_lack lack = arming->lack;

	arming->lack = ARMING_COMPLETE;
	return lack;
}

void arming_forget(struct arming *arming, pid_t pid)
{
	struct memory *memory = memory_of(arming, pid);
	VEC(struct armed *) list = {0};

	loading_forget(arming, pid);
	if (memory) {
		memory_free(memory);
		*memory = arming->memories.data[--arming->memories.len];
	}
	for (size_t i = arming->arms.len; i > 0; i--) {
		struct armed *armed;

		if (arming->arms.data[i - 1].pid != pid)
			continue;
		armed = arm_remove(arming, i - 1);
		if (!vec_push(&list, armed))
			armed_release(armed);
	}
	kernel_disarm_later(arming->kernel, list.data, list.len);
	vec_free(&list);
}

uint64_t arming_arm_count(const struct arming *arming)
{
	return arming->arm_count;
}

void arming_release(struct arming *arming)
{
	VEC(struct armed *) list = {0};

	for (size_t i = 0; i < arming->arms.len; i++)
		if (!vec_push(&list, arming->arms.data[i].armed))
			armed_release(arming->arms.data[i].armed);
	armed_release_all(list.data, list.len);
	vec_free(&list);
	vec_free(&arming->arms);
}

void arming_close(struct arming *arming)
{
	if (!arming)
		return;
	arming_release(arming);
	for (size_t i = 0; i < arming->files.len; i++)
		file_free(&arming->files.data[i]);
	for (size_t i = 0; i < arming->memories.len; i++)
		memory_free(&arming->memories.data[i]);
	programs_forget(arming);
	vec_free(&arming->programs);
	if (arming->changes >= 0)
		close(arming->changes);
	for (size_t i = 0; i < arming->notices.len; i++)
		free(arming->notices.data[i]);
	vec_free(&arming->notices);
	map_free(&arming->dismissed);
	map_free(&arming->file_at);
	vec_free(&arming->files);
	vec_free(&arming->memories);
	vec_free(&arming->loading);
	for (size_t i = 0; i < arming->sites.len; i++)
		free(arming->sites.data[i].kept);
	vec_free(&arming->sites);
	free(arming);
}

/* Looks up an address in the last known mappings. */
static uint32_t site_lookup(struct arming *arming, pid_t pid, uint64_t addr)
{
	const struct memory *memory = memory_of(arming, pid);

	for (size_t i = 0; memory && i < memory->mappings.list.len; i++) {
		const struct mapping *mapping = &memory->mappings.list.data[i];

		if (addr < mapping->start || addr >= mapping->end)
			continue;
		for (size_t f = 0; f < arming->files.len; f++) {
			const struct file *file = &arming->files.data[f];

			if (file->object && file->ino == mapping->ino &&
			    !strcmp(file->object->path, mapping->path)) {
				uint32_t site = map_get(&file->by_offset,
							addr - mapping->start + mapping->offset);

				return site == MAP_NONE ? WAFFLE_SITE_UNKNOWN : site;
			}
		}
	}
	return WAFFLE_SITE_UNKNOWN;
}

uint32_t arming_site_at(struct arming *arming, pid_t pid, uint64_t probe_addr)
{
	struct memory *memory = memory_of(arming, pid);
	uint32_t site = memory ? map_get(&memory->addresses, probe_addr) : MAP_NONE;

	if (site != MAP_NONE)
		return site;
	site = site_lookup(arming, pid, probe_addr);
	/* This may be a child that was not scanned yet, or a file that was armed before it was
	 * mapped. */
	if (site == WAFFLE_SITE_UNKNOWN && (!memory || arming->announced < arming->sites.len)) {
		memory_refresh(arming, pid);
		site = site_lookup(arming, pid, probe_addr);
	}
	memory = memory_of(arming, pid);
	if (site != WAFFLE_SITE_UNKNOWN && memory)
		map_set(&memory->addresses, probe_addr, site);
	return site;
}

uint64_t arming_site_count(const struct arming *arming)
{
	return arming->announced;
}

const struct arming_site *arming_site(const struct arming *arming, uint32_t number)
{
	return number < arming->sites.len ? &arming->sites.data[number] : NULL;
}

bool arming_concerns_functions(const struct arming *arming)
{
	return arming->concerns_functions;
}

struct armed_counts arming_counts(const struct arming *arming)
{
	return arming->counts;
}

uint64_t arming_match_count(const struct arming *arming)
{
	return arming->matching;
}

void arming_names(const struct arming *arming, const char *near, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < arming->sites.len; i++) {
		const struct arming_site *site = &arming->sites.data[i];
		const char *name = site->info->name;
		char quoted[200];
		int len = snprintf(quoted, sizeof(quoted), "'%s'", name);

		if (len < 0 || site->number == WAFFLE_SITE_UNKNOWN ||
		    (near && !near_name(near, name)) || strstr(text, quoted))
			continue;
		if (used + (size_t)len + sizeof(", , …") > size) {
			snprintf(text + used, size - used, "%s", used ? ", …" : "");
			return;
		}
		used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "",
					 quoted);
	}
}

bool arming_denied(const struct arming *arming)
{
	return arming->denied;
}

const char *arming_warning(const struct arming *arming)
{
	return arming->warning[0] ? arming->warning : NULL;
}
