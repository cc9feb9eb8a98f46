// SPDX-License-Identifier: Apache-2.0
#include "model/recorded_ends_internal.h"

#include <stdlib.h>

#include "model/captures_internal.h"

/* Ends of captures of the process whose entries begin at `first`. While another capture goes on,
 * the process is still recorded. Returns the index behind its last entry. */
static size_t process_ends(struct recorded_ends *ends, const struct model *model, size_t first,
			   bool *good)
{
	const struct model_recorded *all = model->recorded.data;
	size_t at = first;

	for (; at < model->recorded.len && all[at].pid == all[first].pid; at++) {
		bool last = at + 1 == model->recorded.len || all[at + 1].pid != all[first].pid;

		if (all[at].latest_ts < model->end_ts &&
		    (last || all[at + 1].from_ts > all[at].latest_ts))
			*good = *good &&
				vec_push(&ends->ends,
					 (struct order_item){all[at].latest_ts, (uint32_t)first});
	}
	return at;
}

static bool lists_make(struct recorded_ends *ends, const struct model *model)
{
	size_t threads = model->threads.len + 1;

	ends->process = malloc(threads * sizeof(*ends->process));
	ends->next = malloc(threads * sizeof(*ends->next));
	ends->listed = calloc(threads, sizeof(*ends->listed));
	ends->first = malloc((model->recorded.len + 1) * sizeof(*ends->first));
	if (!ends->process || !ends->next || !ends->listed || !ends->first)
		return false;
	for (size_t i = 0; i < model->recorded.len; i++)
		ends->first[i] = MODEL_NONE;
	for (size_t i = 0; i < model->threads.len; i++) {
		const struct model_thread *thread = &model->threads.data[i];
		size_t count;
		const struct model_recorded *of =
			thread->traced ? captures_of(model, thread->pid, &count) : NULL;

		ends->process[i] = of ? (uint32_t)(of - model->recorded.data) : MODEL_NONE;
	}
	return true;
}

bool recorded_ends_find(struct recorded_ends *ends, const struct model *model)
{
	bool good = true;

	*ends = (struct recorded_ends){0};
	for (size_t at = 0; good && at < model->recorded.len;)
		at = process_ends(ends, model, at, &good);
	if (!good || !ends->ends.len)
		return good;
	return lists_make(ends, model) && order_sort(ends->ends.data, ends->ends.len);
}

void recorded_ends_free(struct recorded_ends *ends)
{
	vec_free(&ends->ends);
	free(ends->process);
	free(ends->next);
	free(ends->first);
	free(ends->listed);
}

/* A state that began only at this moment stays until the next end. */
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
