// SPDX-License-Identifier: Apache-2.0
/* Arms files that have a page mapped twice (arming_doubled.c) when their loader is done, and those
 * that were refused (arming_refused.c) when no process keeps its mmap_lock any more. */
#include "capture/arming/arming_internal.h"
#include "util/clock.h"

/* The interval between two checks is this fraction of the time that we have waited. */
#define LOOK_SHARE 4
#define LOOK_MAX_NS 1000000000ull

/* A held program begins within this time, if its exec succeeds. */
#define EXEC_MAX_NS 2000000000ull

int file_arm_early(struct arming *arming, uint32_t index, pid_t pid, struct error *err)
{
	struct armed_file *file = &arming->files.data[index];

	if (!file->object || !file_is_doubled(file) || arming_is_everywhere(arming))
		return file_arm(arming, index, pid, err);
	/* The program executes itself again. Its present links would raise semaphores of the new
	 * one too early. */
	for (size_t i = arming->arms.len; i > 0; i--) {
		const struct arm *arm = &arming->arms.data[i - 1];

		if (arm->pid == pid && arm->file == index) {
			/* Release the link now, since the program may only continue afterwards. */
			armed_release(arm_remove(arming, i - 1));
		}
	}
	return loading_add(arming, index, pid, LOADING_AHEAD, err);
}

void arming_began(struct arming *arming, pid_t pid, uint64_t next_ns)
{
	for (size_t i = 0; i < arming->loading.len; i++) {
		struct loading *loading = &arming->loading.data[i];

		if (loading->pid == pid && loading->reason == LOADING_AHEAD &&
		    loading->begin_ns < next_ns)
			loading->reason = LOADING_LOADER;
	}
}

bool arming_is_late(const struct arming *arming, pid_t pid)
{
	for (size_t i = 0; i < arming->loading.len; i++)
		if (arming->loading.data[i].pid == pid)
			return true;
	return false;
}

int arming_loading_ms(const struct arming *arming, int most)
{
	uint64_t now = clock_monotonic_ns();

	for (size_t i = 0; i < arming->loading.len; i++) {
		const struct loading *loading = &arming->loading.data[i];
		uint64_t ts = loading->next_ns;
		uint64_t ms = ts > now ? (ts - now + 999999) / 1000000 : 0;

		if (loading->reason != LOADING_AHEAD && ms < (uint64_t)most)
			most = (int)ms;
	}
	return most;
}

void arming_loaded(struct arming *arming)
{
	struct error ignored = ERROR_INIT;

	for (size_t i = arming->loading.len; i > 0; i--) {
		struct loading *loading = &arming->loading.data[i - 1];
		const struct armed_file *file = &arming->files.data[loading->file];
		uint64_t now = clock_monotonic_ns(), gap = (now - loading->begin_ns) / LOOK_SHARE;
		struct doubled found;

		if (loading->reason == LOADING_AHEAD && now - loading->begin_ns > EXEC_MAX_NS)
			loading->reason = LOADING_LOADER; /* the exec failed */
		if (loading->reason != LOADING_LOADER || now < loading->next_ns)
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

/* If it is refused again, it gets a new row. */
static void refused_retry(struct arming *arming, size_t row)
{
	const struct loading loading = arming->loading.data[row];
	struct armed_file *file = &arming->files.data[loading.file];
	struct error ignored = ERROR_INIT;

	file->arm_count++; /* keeps the file open */
	loading_remove(arming, row);
	if (file->ino)
		file_arm(arming, loading.file, loading.pid, &ignored);
	file->arm_count--;
	file_rest(file);
}

void arming_retry(struct arming *arming, uint64_t until_ns)
{
	bool first = true;

	for (size_t i = arming->loading.len; i > 0; i--) {
		const struct loading *loading = &arming->loading.data[i - 1];
		uint64_t now = clock_monotonic_ns();

		if (loading->reason != LOADING_REFUSED || now < loading->next_ns)
			continue;
		if (!first && now >= until_ns)
			return;
		first = false;
		refused_retry(arming, i - 1);
	}
}
