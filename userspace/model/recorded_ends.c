// SPDX-License-Identifier: Apache-2.0
#include "model/recorded_ends_internal.h"

#include <stdlib.h>

#include "model/captures_internal.h"
#include "util/memory.h"

/* Adds the ends of the process whose entries begin at `first`. The end of a capture is none while
 * another capture still records the process. Returns the index behind its last entry. */
static size_t process_ends(struct recorded_ends *ends, const struct model *model, size_t first)
{
	const struct model_recorded *all = model->recorded.data;
	size_t at = first;

	for (; at < model->recorded.len && all[at].pid == all[first].pid; at++) {
		bool last = at + 1 == model->recorded.len || all[at + 1].pid != all[first].pid;

		if (all[at].latest_ts < model->threads_end_ts &&
		    (last || all[at + 1].from_ts > all[at].latest_ts))
			vec_add(&ends->ends,
				(struct order_item){all[at].latest_ts, (uint32_t)first});
	}
	return at;
}

static void lists_make(struct recorded_ends *ends, const struct model *model)
{
	size_t threads = model->threads.len;

	ends->process = memory_get(threads * sizeof(*ends->process));
	ends->next = memory_get(threads * sizeof(*ends->next));
	ends->listed = memory_zeroed(threads, sizeof(*ends->listed));
	ends->first = memory_get(model->recorded.len * sizeof(*ends->first));
	for (size_t i = 0; i < model->recorded.len; i++)
		ends->first[i] = MODEL_NONE;
	for (size_t i = 0; i < model->threads.len; i++) {
		const struct model_thread *thread = &model->threads.data[i];
		size_t count;
		const struct model_recorded *of =
			thread->traced ? captures_of(model, thread->pid, &count) : NULL;

		ends->process[i] = of ? (uint32_t)(of - model->recorded.data) : MODEL_NONE;
	}
}

void recorded_ends_find(struct recorded_ends *ends, const struct model *model)
{
	*ends = (struct recorded_ends){0};
	for (size_t at = 0; at < model->recorded.len;)
		at = process_ends(ends, model, at);
	if (!ends->ends.len)
		return;
	lists_make(ends, model);
	order_sort(ends->ends.data, ends->ends.len);
}

void recorded_ends_free(struct recorded_ends *ends)
{
	vec_free(&ends->ends);
	free(ends->process);
	free(ends->next);
	free(ends->first);
	free(ends->listed);
}

/* A state that began at this very moment is not of the capture that ends, so its thread stays in
 * the list. */
void recorded_ends_apply(struct recorded_ends *ends, size_t at, struct sched *sched)
{
	const struct order_item *end = &ends->ends.data[at];
	uint32_t thread = ends->first[end->index], next;

	ends->first[end->index] = MODEL_NONE;
	for (; thread != MODEL_NONE; thread = next) {
		next = ends->next[thread];
		sched_unrecorded(sched, thread, end->ts);
		ends->listed[thread] = false;
		if (sched->threads[thread].state)
			recorded_ends_touch(ends, thread);
	}
}
