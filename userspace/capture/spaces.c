// SPDX-License-Identifier: Apache-2.0
#include "capture/spaces.h"

#include <stdlib.h>
#include <string.h>

#include "capture/drain.h"

#define TOLD_MAX 16384 /* limit per process */

static void told_drop(struct space *space, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(space->told.data[i].mapping.path);
	space->told.len -= count;
	if (space->told.len)
		memmove(space->told.data, space->told.data + count,
			space->told.len * sizeof(*space->told.data));
}

static void space_free(struct space *space)
{
	told_drop(space, space->told.len);
	vec_free(&space->told);
	map_free(&space->seen);
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

static void space_begin(struct space *space, uint64_t ts)
{
	size_t old = 0;

	while (old < space->told.len && space->told.data[old].ts < ts)
		old++;
	told_drop(space, old);
	if (space->read_ts < ts) {
		mappings_free(&space->mappings);
		space->mappings = (struct mappings){0};
		space->read_ts = 0;
	}
	space->begin_ts = ts;
	space->handles = false;
}

/* The exec event precedes the events of the program's first mappings in the stream of events. But
 * the exec's record follows them in the stream of records. */
void spaces_begin(struct spaces *spaces, pid_t pid, uint64_t ts)
{
	struct space *space = spaces_get(spaces, pid);
	uint64_t begin_ts = ts;

	if (!space)
		return;
	for (size_t i = 0; i < space->told.len && space->told.data[i].ts <= ts; i++)
		if (space->told.data[i].mapping.end == UINT64_MAX)
			begin_ts = space->told.data[i].ts;
	space_begin(space, begin_ts);
}

static void told_insert(struct space *space, struct code_told one)
{
	size_t at = space->told.len;

	one.mapping.path = one.mapping.path ? strdup(one.mapping.path) : NULL;
	if (!vec_push(&space->told, one)) {
		free(one.mapping.path);
		return;
	}
	for (; at && space->told.data[at - 1].ts > one.ts; at--)
		space->told.data[at] = space->told.data[at - 1];
	space->told.data[at] = one;
}

void spaces_told(struct spaces *spaces, const struct mmap_event *event)
{
	struct code_told one = {event->ts, event->mapping};
	struct space *space;

	if (event->ts > spaces->told_ts)
		spaces->told_ts = event->ts;
	if (event->kind == MMAP_LOST) {
		for (size_t i = 0; i < spaces->list.len; i++)
			space_begin(&spaces->list.data[i], event->ts);
		return;
	}
	if (event->kind == MMAP_EXEC)
		one.mapping = (struct mapping){.end = UINT64_MAX};
	space = spaces_get(spaces, event->pid);
	if (space && space->told.len >= TOLD_MAX)
		space_begin(space, event->ts);
	if (space)
		told_insert(space, one);
}

void space_read(struct space *space)
{
	struct error ignored = ERROR_INIT;
	uint64_t now = clock_monotonic_ns();
	struct mappings mappings;

	if (space->read_ts && space->told.len)
		return;
	space->read_ts = now;
	if (process_mappings(&mappings, space->pid, &ignored))
		return; /* it is gone, so keep the old mappings */
	mappings_free(&space->mappings);
	space->mappings = mappings;
}

static bool is_in(const struct mapping *mapping, uint64_t address)
{
	return address >= mapping->start && address < mapping->end;
}

struct place space_place(const struct space *space, uint64_t address, uint64_t ts)
{
	struct place place = {NULL, space->begin_ts};
	bool read_later = false; /* the mapping there has changed between `ts` and the reading */

	for (size_t i = space->told.len; i-- > 0;) {
		const struct code_told *told = &space->told.data[i];

		if (!is_in(&told->mapping, address))
			continue;
		if (told->ts <= ts)
			return (struct place){told->mapping.ino ? &told->mapping : NULL, told->ts};
		read_later |= told->ts <= space->read_ts;
	}
	for (size_t i = 0; i < space->mappings.list.len && !place.mapping && !read_later; i++)
		if (is_in(&space->mappings.list.data[i], address) &&
		    space->mappings.list.data[i].ino)
			place.mapping = &space->mappings.list.data[i];
	return place;
}
