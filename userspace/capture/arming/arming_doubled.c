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

int loading_add(struct arming *arming, uint32_t index, pid_t pid, enum loading_reason reason,
		struct error *err)
{
	uint64_t now = clock_monotonic_ns();
	const struct loading loading = {.pid = pid,
					.file = index,
					.reason = reason,
					.begin_ns = now,
					.next_ns = now + LOOK_MIN_NS};

	file_report(
		arming, &arming->files.data[index],
		"is armed when its loader is done, and what comes before is missing: its linker "
		"(lld) lets two segments share the page of its semaphores; link it with "
		"-Wl,-z,separate-loadable-segments");
	return loading_keep(arming, &loading, err);
}

int file_await(struct arming *arming, uint32_t index, pid_t pid, struct error *err)
{
	return loading_add(arming, index, pid, LOADING_LOADER, err);
}

bool file_is_ahead(const struct arming *arming, uint32_t index, pid_t pid)
{
	for (size_t i = 0; i < arming->loading.len; i++) {
		const struct loading *loading = &arming->loading.data[i];

		if (loading->pid == pid && loading->file == index &&
		    loading->reason == LOADING_AHEAD)
			return true;
	}
	return false;
}
