// SPDX-License-Identifier: Apache-2.0
/*
 * Handles files with a page that two writable segments map (struct object_page), as lld makes them.
 * The kernel raises semaphores in the first mapping of the page that is writable:
 *
 *	mapped         first: writable   second: writable   raised in the first (wrong)
 *	loader done    first: read-only  second: writable   raised in the second (correct)
 *
 * A semaphore raised in the first mapping is never lowered in the second, and the breakpoints stay
 * for good. So nothing is armed before the loader has finished. No event reports that, so we check
 * the mappings repeatedly, at growing intervals.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "capture/arming/arming_internal.h"
#include "util/clock.h"

bool file_is_doubled(const struct armed_file *file)
{
	const struct object *object = file->object;
	uint64_t size = (uint64_t)sysconf(_SC_PAGESIZE);

	for (size_t i = 0; object->doubled.mappings && i < object->probes.len; i++) {
		uint64_t semaphore = object->probes.data[i].semaphore_offset;

		if (semaphore && semaphore / size == object->doubled.offset / size)
			return true;
	}
	return false;
}

struct doubled doubled_look(const struct armed_file *file, pid_t pid)
{
	const struct object_page *page = &file->object->doubled;
	struct error ignored = ERROR_INIT;
	struct doubled found = {0};
	struct mappings mappings;

	if (process_mappings_all(&mappings, pid, &ignored))
		return found;
	for (size_t i = 0; i < mappings.list.len; i++) {
		const struct mapping *mapping = &mappings.list.data[i];

		if (mapping->ino != file->ino || page->offset < mapping->offset ||
		    page->offset - mapping->offset >= mapping->end - mapping->start)
			continue;
		found.mappings++;
		found.writable += mapping->writable;
	}
	mappings_free(&mappings);
	return found;
}

bool doubled_is_loaded(const struct armed_file *file, struct doubled found)
{
	return found.mappings >= file->object->doubled.mappings && found.writable == 1;
}

bool file_is_loaded(const struct armed_file *file, pid_t pid)
{
	return doubled_is_loaded(file, doubled_look(file, pid));
}

/* A row for the same replaces the one that is there. */
static int loading_keep(struct arming *arming, const struct loading *loading, struct error *err)
{
	for (size_t i = 0; i < arming->loading.len; i++) {
		struct loading *row = &arming->loading.data[i];

		if (row->pid == loading->pid && row->file == loading->file &&
		    row->ahead == loading->ahead && row->refused == loading->refused) {
			*row = *loading;
			return 0;
		}
	}
	if (!vec_push(&arming->loading, *loading))
		return error_set(err, ENOMEM, "out of memory");
	arming->files.data[loading->file].arm_count++; /* keeps the file open */
	return 0;
}

int loading_add(struct arming *arming, uint32_t index, pid_t pid, bool ahead, struct error *err)
{
	uint64_t now = clock_monotonic_ns();
	const struct loading loading = {.pid = pid,
					.file = index,
					.ahead = ahead,
					.begin_ns = now,
					.next_ns = now + LOOK_MIN_NS};

	file_report(
		arming, &arming->files.data[index],
		"is armed when its loader is done, and what comes before is missing: its linker "
		"(lld) lets two segments share the page of its semaphores; link it with "
		"-Wl,-z,separate-loadable-segments");
	return loading_keep(arming, &loading, err);
}

/* Adds a wait until no process keeps its mmap_lock. */
static int loading_add_refused(struct arming *arming, uint32_t index, pid_t pid, struct error *err)
{
	const struct loading loading = {.pid = pid,
					.file = index,
					.refused = true,
					.next_ns = kernel_locks_look_ts(arming->kernel)};

	return loading_keep(arming, &loading, err);
}

int file_arm_failed(struct arming *arming, uint32_t index, pid_t pid, int result,
		    const struct error *problem, struct error *err)
{
	if (result == -ESRCH || (kill(pid, 0) && errno == ESRCH))
		return error_set(err, ESRCH, "pid %d: it exited while being armed", pid);
	if (result != -EAGAIN && !arming->warning[0])
		snprintf(arming->warning, sizeof(arming->warning), "%s", problem->message);
	return result == -EAGAIN || result == -EBUSY ? loading_add_refused(arming, index, pid, err)
						     : 0;
}

int file_await(struct arming *arming, uint32_t index, pid_t pid, struct error *err)
{
	return loading_add(arming, index, pid, false, err);
}

void loading_remove(struct arming *arming, size_t row)
{
	struct armed_file *file = &arming->files.data[arming->loading.data[row].file];

	arming->loading.data[row] = arming->loading.data[--arming->loading.len];
	file->arm_count--;
	file_rest(file);
}

void loading_forget(struct arming *arming, pid_t pid)
{
	for (size_t i = arming->loading.len; i > 0; i--)
		if (arming->loading.data[i - 1].pid == pid)
			loading_remove(arming, i - 1);
}

bool file_is_ahead(const struct arming *arming, uint32_t index, pid_t pid)
{
	for (size_t i = 0; i < arming->loading.len; i++) {
		const struct loading *loading = &arming->loading.data[i];

		if (loading->pid == pid && loading->file == index && loading->ahead)
			return true;
	}
	return false;
}
