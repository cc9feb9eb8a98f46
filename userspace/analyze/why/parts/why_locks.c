// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/parts/why_locks.h"

#include <stdlib.h>

#include "util/memory.h"

/* The first lock of the chain; 0: none. */
static uint32_t lock_awaited(const struct why_walk *walk, const struct why_verdict *verdict)
{
	for (uint32_t i = 0; i < walk->depth; i++)
		if (walk->path[i].lock)
			return walk->path[i].lock;
	return verdict->cause == WHY_LOCK || verdict->cause == WHY_GIL ? verdict->object : 0;
}

void why_locks_add(struct why_walk *walk, const struct why_verdict *verdict, uint64_t ns)
{
	uint32_t lock = lock_awaited(walk, verdict), i = 0;

	if (!lock)
		return;
	while (i < walk->lock_count && walk->locks[i].lock != lock)
		i++;
	if (i == WHY_LOCKS_MAX)
		return;
	if (i == walk->lock_count)
		walk->locks[walk->lock_count++] = (struct why_lock_time){.lock = lock};
	walk->locks[i].ns += ns;
}

static int by_time(const void *left, const void *right)
{
	const struct why_lock_time *a = left, *b = right;

	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	return a->lock < b->lock ? -1 : a->lock > b->lock;
}

void why_locks_take(struct why *why, struct why_walk *walk, struct why_instance *instance)
{
	qsort(walk->locks, walk->lock_count, sizeof(*walk->locks), by_time);
	instance->lock = (uint32_t)why->locks.len;
	instance->lock_count =
		walk->lock_count < WHY_LOCKS_LISTED ? walk->lock_count : WHY_LOCKS_LISTED;
	for (uint32_t i = 0; i < instance->lock_count; i++)
		vec_add(&why->locks, walk->locks[i]);
}
