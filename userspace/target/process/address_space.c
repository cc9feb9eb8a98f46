// SPDX-License-Identifier: Apache-2.0
#include "target/process/address_space.h"

#include <stdlib.h>
#include <string.h>

#include "util/search.h"

size_t address_space_after(const struct mappings *space, uint64_t address)
{
	return lower_bound(space->list.len, i, space->list.data[i].end <= address);
}

const struct mapping *address_space_at(const struct mappings *space, uint64_t address)
{
	size_t at = address_space_after(space, address);

	if (at == space->list.len || address < space->list.data[at].start)
		return NULL;
	return &space->list.data[at];
}

/* The part of a mapping in [start, end), with its own copy of the path. False: out of memory. */
static bool mapping_part(struct mapping *part, const struct mapping *of, uint64_t start,
			 uint64_t end)
{
	*part = *of;
	part->start = start;
	part->end = end;
	part->offset += start - of->start;
	part->path = strdup(of->path);
	return part->path;
}

/* Inserts a mapping in place of whatever it overlaps. False: out of memory. */
static bool mapping_insert(struct mappings *space, const struct mapping *mapping)
{
	struct mapping parts[3];
	struct mapping *list;
	size_t from = address_space_after(space, mapping->start), to, count = 0;
	bool done = vec_reserve(&space->list, 2);

	list = space->list.data;
	for (to = from; to < space->list.len && list[to].start < mapping->end;)
		to++;
	if (done && from < to && list[from].start < mapping->start)
		done = mapping_part(&parts[count], &list[from], list[from].start, mapping->start) &&
		       ++count;
	if (done)
		done = mapping_part(&parts[count], mapping, mapping->start, mapping->end) &&
		       ++count;
	if (done && from < to && list[to - 1].end > mapping->end)
		done = mapping_part(&parts[count], &list[to - 1], mapping->end, list[to - 1].end) &&
		       ++count;
	for (size_t i = 0; !done && i < count; i++)
		free(parts[i].path);
	if (!done)
		return false;
	for (size_t i = from; i < to; i++)
		free(list[i].path);
	if (to != from + count)
		memmove(list + from + count, list + to, (space->list.len - to) * sizeof(*list));
	memcpy(list + from, parts, count * sizeof(*list));
	space->list.len += count - (to - from);
	return true;
}

static bool is_same(const struct mapping *a, const struct mapping *b)
{
	return a && a->start == b->start && a->end == b->end && a->offset == b->offset &&
	       a->ino == b->ino && a->dev == b->dev && a->executable == b->executable &&
	       a->since == b->since;
}

bool address_space_map(struct mappings *space, const struct mapping *mapping)
{
	return is_same(address_space_at(space, mapping->start), mapping) ||
	       (space->list.len < ADDRESS_SPACE_MAX && mapping_insert(space, mapping));
}
