// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/why_varied_internal.h"

#include <stdlib.h>

#include "util/memory.h"

static uint64_t length_of(const struct why_instance *instance)
{
	return instance->to_ts - instance->from_ts;
}

/* Whether two instances have the same largest cause, of a culprit with the same name. */
static bool is_alike(const struct why *why, const struct why_instance *a,
		     const struct why_instance *b)
{
	const struct why_part *of_a, *of_b;
	bool own;

	if (!a->part_count || !b->part_count)
		return true;
	of_a = &why->parts.data[a->part];
	of_b = &why->parts.data[b->part];
	own = of_a->thread == a->thread;
	return of_a->cause == of_b->cause && own == (of_b->thread == b->thread) &&
	       (own || model_thread_kind_name(why->model, of_a->thread) ==
			       model_thread_kind_name(why->model, of_b->thread));
}

/* Whether an instance is nearly as slow as the first one, and shows something new beside those that
 * are kept. */
static bool is_new(const struct why *why, const bool *kept, size_t index)
{
	const struct why_instance *all = why->instances.data, *instance = &all[index];

	if (instance->ranks_behind != all->ranks_behind || instance->once != all->once ||
	    length_of(instance) < length_of(all) / 2)
		return false;
	for (size_t i = 0; i < index; i++)
		if (kept[i] && is_alike(why, &all[i], instance))
			return false;
	return true;
}

void why_varied_keep(struct why *why, uint32_t count)
{
	struct why_instance *all = why->instances.data;
	bool *kept = memory_zeroed(why->instances.len + 1, sizeof(*kept));
	size_t left = count, len = 0;

	for (size_t i = 0; i < why->instances.len && left; i++) {
		kept[i] = is_new(why, kept, i);
		left -= kept[i];
	}
	for (size_t i = 0; i < why->instances.len && left; i++) {
		left -= !kept[i];
		kept[i] = true;
	}
	for (size_t i = 0; i < why->instances.len; i++)
		if (kept[i])
			all[len++] = all[i];
	why->instances.len = len;
	free(kept);
}
