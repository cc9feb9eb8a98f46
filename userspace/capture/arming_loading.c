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

#include "capture/arming_internal.h"
#include "capture/drain.h"

/* The interval between two checks is the time waited so far, divided by this. */
#define LOOK_SHARE 4
#define LOOK_MIN_NS 1000000ull
#define LOOK_MAX_NS 1000000000ull

/* A held program begins within this time, if its exec succeeds. */
#define EXEC_MAX_NS 2000000000ull

bool file_is_doubled(const struct file *file)
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

/* How often a process has mapped the page. */
struct doubled {
	uint32_t mappings, writable;
};

static struct doubled doubled_look(const struct file *file, pid_t pid)
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

static bool doubled_is_loaded(const struct file *file, struct doubled found)
{
	return found.mappings >= file->object->doubled.mappings && found.writable == 1;
}

bool file_is_loaded(const struct file *file, pid_t pid)
{
	return doubled_is_loaded(file, doubled_look(file, pid));
}

static int loading_add(struct arming *arming, uint32_t index, pid_t pid, bool ahead,
		       struct error *err)
{
	uint64_t now = clock_monotonic_ns();
	struct loading loading = {.pid = pid,
				  .file = index,
				  .ahead = ahead,
				  .begin_ns = now,
				  .next_ns = now + LOOK_MIN_NS};

	for (size_t i = 0; i < arming->loading.len; i++)
		if (arming->loading.data[i].pid == pid && arming->loading.data[i].file == index &&
		    arming->loading.data[i].ahead == ahead) {
			arming->loading.data[i].begin_ns = now;
			return 0;
		}
	file_tell(arming, &arming->files.data[index],
		  "is armed when its loader is done, and what comes before is missing: its linker "
		  "(lld) lets two segments share the page of its semaphores; link it with "
		  "-Wl,-z,separate-loadable-segments");
	if (!vec_push(&arming->loading, loading))
		return error_set(err, ENOMEM, "out of memory");
	arming->files.data[index].arm_count++; /* keeps the file open */
	return 0;
}

int file_await(struct arming *arming, uint32_t index, pid_t pid, struct error *err)
{
	return loading_add(arming, index, pid, false, err);
}

int file_arm_ahead(struct arming *arming, uint32_t index, pid_t pid, struct error *err)
{
	struct file *file = &arming->files.data[index];

	if (!file->object || !file_is_doubled(file) || arming->options.everywhere)
		return file_arm(arming, index, pid, err);
	/* A program that executes itself again: its present links would raise semaphores too
	 * early. */
	for (size_t i = arming->arms.len; i > 0; i--) {
		const struct arm *arm = &arming->arms.data[i - 1];

		if (arm->pid == pid && arm->file == index) {
			/* Release the link now, since the program may only continue afterwards. */
			armed_release(arm_remove(arming, i - 1));
		}
	}
	return loading_add(arming, index, pid, true, err);
}

static void loading_remove(struct arming *arming, size_t row)
{
	struct file *file = &arming->files.data[arming->loading.data[row].file];

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

void arming_began(struct arming *arming, pid_t pid)
{
	for (size_t i = 0; i < arming->loading.len; i++)
		if (arming->loading.data[i].pid == pid)
			arming->loading.data[i].ahead = false;
}

bool arming_is_late(const struct arming *arming, pid_t pid)
{
	for (size_t i = 0; i < arming->loading.len; i++)
		if (arming->loading.data[i].pid == pid)
			return true;
	return false;
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

int arming_loading_ms(const struct arming *arming, int most)
{
	uint64_t now = clock_monotonic_ns();

	for (size_t i = 0; i < arming->loading.len; i++) {
		const struct loading *loading = &arming->loading.data[i];
		uint64_t ts = loading->next_ns;
		uint64_t ms = ts > now ? (ts - now + 999999) / 1000000 : 0;

		if (!loading->ahead && ms < (uint64_t)most)
			most = (int)ms;
	}
	return most;
}

void arming_loaded(struct arming *arming)
{
	struct error ignored = ERROR_INIT;

	for (size_t i = arming->loading.len; i > 0; i--) {
		struct loading *loading = &arming->loading.data[i - 1];
		const struct file *file = &arming->files.data[loading->file];
		uint64_t now = clock_monotonic_ns(), gap = (now - loading->begin_ns) / LOOK_SHARE;
		struct doubled found;

		if (loading->ahead && now - loading->begin_ns > EXEC_MAX_NS)
			loading->ahead = false; /* the exec failed */
		if (loading->ahead || now < loading->next_ns)
			continue;
		found = file->ino ? doubled_look(file, loading->pid) : (struct doubled){0};
		gap = gap < LOOK_MIN_NS ? LOOK_MIN_NS : gap > LOOK_MAX_NS ? LOOK_MAX_NS : gap;
		loading->next_ns = now + gap;
		if (found.mappings && !doubled_is_loaded(file, found))
			continue;
		/* If it is unmapped now, a later scan finds it when it is mapped again. */
		if (found.mappings)
			file_arm(arming, loading->file, loading->pid, &ignored);
		loading_remove(arming, i - 1);
	}
}
