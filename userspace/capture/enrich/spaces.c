// SPDX-License-Identifier: Apache-2.0
#include "capture/enrich/spaces_internal.h"

#include <stdlib.h>
#include <string.h>

#include "capture/address_space/hit_image.h"
#include "target/process/address_space.h"
#include "util/clock.h"

static void told_drop(struct mappings *told, uint64_t before_ts)
{
	struct mapping *list = told->list.data;
	size_t kept = 0;

	for (size_t i = 0; i < told->list.len; i++)
		if (list[i].since < before_ts)
			free(list[i].path);
		else
			list[kept++] = list[i];
	told->list.len = kept;
}

static void space_free(struct space *space)
{
	map_free(&space->seen);
	mappings_free(&space->told);
	mappings_free(&space->mappings);
}

void spaces_free(struct spaces *spaces)
{
	for (size_t i = 0; i < spaces->list.len; i++)
		space_free(&spaces->list.data[i]);
	vec_free(&spaces->list);
	map_free(&spaces->index);
}

struct space *spaces_get(struct spaces *spaces, pid_t pid)
{
	uint32_t index = map_get(&spaces->index, (uint64_t)pid);

	if (index != MAP_NONE)
		return &spaces->list.data[index];
	if (!vec_reserve(&spaces->list, 1) ||
	    !map_set(&spaces->index, (uint64_t)pid, (uint32_t)spaces->list.len))
		return NULL;
	spaces->list.data[spaces->list.len++] = (struct space){.pid = pid};
	return &spaces->list.data[spaces->list.len - 1];
}

void spaces_forget(struct spaces *spaces, pid_t pid)
{
	uint32_t index = map_remove(&spaces->index, (uint64_t)pid);
	struct space *last;

	if (index == MAP_NONE)
		return;
	space_free(&spaces->list.data[index]);
	last = &spaces->list.data[--spaces->list.len];
	if (index == spaces->list.len)
		return;
	spaces->list.data[index] = *last;
	map_set(&spaces->index, (uint64_t)last->pid, index);
}

/* Nothing from before `ts` is valid any more. */
static void sdrain_interval_begin(struct space *space, uint64_t ts)
{
	told_drop(&space->told, ts);
	if (space->read_ts < ts) {
		mappings_free(&space->mappings);
		space->mappings = (struct mappings){0};
		space->read_ts = space->tried_ts = 0;
	}
	space->begin_ts = ts;
	space->handles = false;
}

/* The exec event precedes the events of the program's first mappings in the stream of events. But
 * the exec's record follows them in the stream of records. */
void spaces_begin(struct spaces *spaces, pid_t pid, uint64_t ts)
{
	struct space *space = spaces_get(spaces, pid);
	const struct mapping *last;

	if (!space)
		return;
	last = address_space_at(&space->told, UINT64_MAX - 1);
	sdrain_interval_begin(space, last ? last->since : ts);
}

void spaces_told(struct spaces *spaces, const struct mmap_event *event)
{
	struct mapping mapping = event->mapping;
	struct space *space;

	if (event->kind == MMAP_LOST) {
		for (size_t i = 0; i < spaces->list.len; i++)
			sdrain_interval_begin(&spaces->list.data[i], event->ts);
		return;
	}
	if (event->kind == MMAP_EXEC)
		mapping = (struct mapping){.end = UINT64_MAX, .path = (char *)""};
	mapping.since = event->ts;
	space = spaces_get(spaces, event->pid);
	if (space && !address_space_map(&space->told, &mapping))
		sdrain_interval_begin(space, event->ts);
}

void space_read(struct space *space, const struct kernel *kernel, uint64_t ts)
{
	uint64_t now = clock_monotonic_ns();
	struct mappings mappings;

	if (space->read_ts && space->told.list.len)
		return;
	space->tried_ts = now;
	if (hit_image_mappings(&mappings, kernel, space->pid, ts, false))
		return; /* it is gone, so keep the old mappings */
	mappings_free(&space->mappings);
	space->mappings = mappings;
	space->read_ts = now;
}

struct space_place space_place(const struct space *space, const struct mmap_queue *told,
			       uint64_t address)
{
	const struct mapping *mapping = address_space_at(&space->told, address);
	uint64_t since = mapping ? mapping->since : space->begin_ts;

	if (!mapping && !mmap_queue_may_change(told, space->pid, address, space->read_ts))
		mapping = address_space_at(&space->mappings, address);
	return (struct space_place){mapping && mapping->ino ? mapping : NULL, since};
}
