// SPDX-License-Identifier: Apache-2.0
/* Examines a file, and arms it in a process. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/arming/arming_internal.h"
#include "target/elf/object_read.h"
#include "target/loader/loader.h"
#include "target/worker/worker_queue.h"
#include "util/input.h"
#include "util/units.h"

/* Returns the index of the file, or -1: out of memory. */
static int file_keep(struct arming *arming, const struct armed_file *file)
{
	const uint64_t key[] = {file->dev, file->ino};

	/* A retired file leaves its key to the new file. */
	if (!vec_reserve(&arming->files, 1) ||
	    !keymap_set(&arming->file_at, key, sizeof(key), (uint32_t)arming->files.len))
		return -1;
	arming->files.data[arming->files.len] = *file;
	return (int)arming->files.len++;
}

/* Applies the plan to each site of a file and loads the BPF programs that this requires. */
static int file_plan(struct arming *arming, struct armed_file *file, struct error *err)
{
	struct plan *plan = arming->plan;
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
		file->matching += !result && use->use == PLAN_MATCHES &&
				  !site_is_counter(&object->sites.data[i]);
	}
	return result ?: arming_classes(arming, err);
}

/* A late library stays dormant if the programs for its filter cannot be made. */
static int file_plan_late(struct arming *arming, struct armed_file *file, struct error *err)
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

/* Chooses the sites that record stacks. For calls the fetch programs request them. */
static int file_choose(struct arming *arming, struct armed_file *file, struct error *err)
{
	struct object *object = file->object;

	if (!arming->options->stacks)
		return 0;
	file->stacks = calloc(object->sites.len, sizeof(*file->stacks));
	if (!file->stacks)
		return error_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < object->sites.len; i++)
		file->stacks[i] = stack_choice_has(arming->options->stacks, &object->sites.data[i]);
	for (size_t i = 0; i < object->calls.len; i++) {
		struct object_call *call = &object->calls.data[i];

		if (file->stacks[call->site])
			call->fetch_program.flags |= WAFFLE_CALL_STACK;
	}
	return 0;
}

/* Numbers the sites of a file. */
static int file_register(struct arming *arming, struct armed_file *file, struct error *err)
{
	struct object *object = file->object;
	size_t call = 0;

	file->first_site = (uint32_t)arming->sites.len;
	for (size_t i = 0; i < object->sites.len; i++) {
		const struct waffle_fetch_program *fetch_program = NULL;
		int result;

		if (call < object->calls.len && object->calls.data[call].site == i)
			fetch_program = &object->calls.data[call++].fetch_program;
		result = arming_register(arming, &object->sites.data[i], fetch_program, err);
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
static int file_read(struct arming *arming, struct armed_file *file, int fd, const char *shown_path,
		     struct error *err)
{
	struct call_set *calls = arming->options->calls;
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
	if (!(arming->options->sources & CAPTURE_SPANS))
		object->sites.len = object->probes.len = 0;
	if (calls && call_set_wants(calls, shown_path))
		result = file->expected ? call_set_find_pending(calls, object, fd, &file->pending,
								&problem)
					: call_set_find(calls, object, fd, &problem);
	if (result == -ENOMEM)
		error_set(err, ENOMEM, "%s", problem.message);
	else if (result && result != -EAGAIN && !arming->warning[0])
		snprintf(arming->warning, sizeof(arming->warning), "%s: %s", shown_path,
			 problem.message);
	if (result == -ENOMEM || result == -EAGAIN ||
	    (!object->probes.len && !object->transport.version))
		object_free(object);
	else
		file->object = object;
	return result == -ENOMEM || result == -EAGAIN ? result : 0;
}

void file_free(struct armed_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	object_free(file->object);
	call_pending_free(file->pending);
	free(file->uses);
	free(file->stacks);
	free(file->runpath);
	free(file->path);
	map_free(&file->by_offset);
}

/* Prepares a file up to its kernel programs. */
static int file_make(struct arming *arming, struct armed_file *file, int fd, const char *shown_path,
		     struct error *err)
{
	size_t first = arming->sites.len;
	int result = file_read(arming, file, fd, shown_path, err);

	/* Keep nothing of such a file: it is examined again when a process maps it. */
	if (!result && file->expected &&
	    (!file->pending || !file->object ||
	     arming->sites.len + file->object->sites.len > WAFFLE_FETCH_PROGRAMS_MAX / 2))
		return -ENOENT;
	if (!result && file->object)
		result = file_choose(arming, file, err)
				 ?: file_register(arming, file, err)
				 ?: file_plan_late(arming, file, err)
				 ?: arming_fetch_programs(arming, file, err);
	if (!result && !file->expected)
		result = file_mapped(arming, file, err);
	if (result)
		arming->sites.len = first;
	return result;
}

int file_add(struct arming *arming, int fd, const char *shown_path, bool expected,
	     struct error *err)
{
	struct armed_file file = {.fd = -1, .expected = expected};
	struct stat status;
	int index, result = 0;

	if (input_stat(fd, &status))
		return -errno;
	index = file_find(arming, status.st_dev, status.st_ino);
	if (index >= 0 && !expected)
		result = file_mapped(arming, &arming->files.data[index], err);
	if (index >= 0 && !result)
		file_open(&arming->files.data[index], fd);
	if (index >= 0)
		return result ? result : index;
	file.dev = status.st_dev;
	file.ino = status.st_ino;
	file.path = strdup(shown_path);
	if (!file.path)
		return error_set(err, ENOMEM, "out of memory");
	result = file_watch(arming, &file, fd);
	if (result && expected) {
		file_free(&file);
		return result;
	}
	/* A file that is not ELF or has no sites also gets an entry, so that it is not examined
	 * again. */
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
static struct arm_request file_request(const struct armed_file *file, pid_t pid, char path[64])
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
	struct armed_file *file = &arming->files.data[index];
	struct error ignored = ERROR_INIT;
	struct arm_request request;
	struct armed *armed = NULL;
	struct stat status;
	char path[64];
	void *memory;

	if (file->checked || !file->object || !file->object->calls.len || input_stat(fd, &status))
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
 * such as malloc(). So those stay dormant, unless the user agreed to slow down all programs.
 * `*widened`: the caller has to arm it. Else nothing changed.
 */
static int file_widen(struct arming *arming, uint32_t index, pid_t pid, bool *widened,
		      struct error *err)
{
	struct armed_file *file = &arming->files.data[index];
	struct error problem = ERROR_INIT;
	int result;

	if (file->object->calls.len && !arming->options->machine_wide) {
		file_report(
			arming, file,
			"stays dormant in a process whose main thread has exited: the kernel can't "
			"filter by process there; --machine-wide arms it in all of them");
		return 0;
	}
	result = kernel_locks_check(arming->kernel, file->object->path, &problem);
	if (result)
		return file_arm_failed(arming, index, pid, result, &problem, err);
	file_report(
		arming, file,
		"is armed in all processes that run it, since the kernel can't filter by process "
		"where the main thread has exited");
	kernel_probes_widen(arming->kernel);
	for (size_t i = arming->arms.len; i > 0; i--) {
		const struct arm *arm = &arming->arms.data[i - 1];

		if (arm->file != index || arm->control)
			continue;
		/* If it is refused now, each process waits for itself: this one may end before. */
		result = result ?: loading_add_refused(arming, index, arm->pid, err);
		armed_release(arm_remove(arming, i - 1));
	}
	*widened = true;
	return result;
}

/* Reserves some descriptors for other uses. The lowest free number shows how many are open. */
static bool has_room(const struct armed_file *file)
{
	int lowest = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
	struct rlimit limit;

	if (lowest >= 0)
		close(lowest);
	return lowest >= 0 &&
	       (getrlimit(RLIMIT_NOFILE, &limit) || (rlim_t)lowest < limit.rlim_cur / 8 * 7);
}

/* Arms the sites of a file in a process or, if `everywhere`, in all. `pid` is for messages then. */
static int sites_arm(struct arming *arming, uint32_t index, pid_t pid, bool everywhere,
		     struct error *err)
{
	struct armed_file *file = &arming->files.data[index];
	struct arm arm = {.pid = everywhere ? -1 : pid, .file = index};
	struct error problem = ERROR_INIT;
	struct arm_request request;
	char path[64];
	int result;

	request = file_request(file, arm.pid, path);
	request.unfiltered = arm.unfiltered = !everywhere && control_filters(arming, pid);
	result = kernel_arm(arming->kernel, &arm.armed, &request, &problem);
	if (result)
		return file_arm_failed(arming, index, pid, result, &problem, err);
	warn_left_out(arming, file->object, arm.armed);
	if (arm.armed)
		arming->reported_holder = 0; /* no lock is kept now */
	file->armed_everywhere = everywhere;
	if (arm.armed && !vec_push(&arming->arms, arm)) {
		armed_release(arm.armed);
		return error_set(err, ENOMEM, "out of memory");
	}
	file->arm_count += arm.armed != NULL;
	arming->arm_count += arm.armed != NULL;
	return 0;
}

/* Arms the sites again that were armed before it was known that the process has rings: those of a
 * program that is about to begin. */
static int sites_arm_unfiltered(struct arming *arming, pid_t pid, struct error *err)
{
	int result = 0;

	for (size_t i = 0; !result && i < arming->arms.len; i++) {
		const struct arm *arm = &arming->arms.data[i];
		struct armed_file *file = &arming->files.data[arm->file];
		uint32_t index = arm->file;
		int fd;

		if (arm->pid != pid || arm->control || arm->unfiltered)
			continue;
		fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0); /* arm_remove() may close the file */
		armed_release(arm_remove(arming, i--));
		file_open(file, fd);
		close(fd);
		result = sites_arm(arming, index, pid, false, err);
	}
	return result;
}

/* Arms libwaffle's own probes, if they are in this file. */
static int libwaffle_arm(struct arming *arming, uint32_t index, pid_t pid, struct error *err)
{
	bool before = control_filters(arming, pid);
	char path[64];
	int result = control_arm(arming, index, file_request(&arming->files.data[index], pid, path),
				 err);

	return result || before || !control_filters(arming, pid)
		       ? result
		       : sites_arm_unfiltered(arming, pid, err);
}

int file_arm(struct arming *arming, uint32_t index, pid_t pid, struct error *err)
{
	struct armed_file *file = &arming->files.data[index];
	bool everywhere = arming_is_everywhere(arming);
	int result;

	if (!file->object ||
	    (file_is_armed(arming, pid, index) && control_is_armed(arming, pid, index)))
		return 0;
	if (everywhere && file_is_doubled(file))
		file_report(
			arming, file,
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
		result = file_widen(arming, index, pid, &everywhere, err);
		if (result || !everywhere)
			return result;
	}
	if (!has_room(file)) {
		if (!arming->warning[0])
			snprintf(arming->warning, sizeof(arming->warning),
				 "arming %s: too many open files; its sites stay dormant in some "
				 "processes; raise 'ulimit -n', or arm all with --machine-wide",
				 file->path);
		return 0;
	}
	result = libwaffle_arm(arming, index, pid, err);
	return result || file_is_armed(arming, pid, index)
		       ? result
		       : sites_arm(arming, index, pid, everywhere, err);
}
