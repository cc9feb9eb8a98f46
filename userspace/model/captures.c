// SPDX-License-Identifier: Apache-2.0
#include "model/captures_internal.h"

#include <stdlib.h>

#include "util/memory.h"
#include "util/search.h"

static int recorded_compare(const void *left, const void *right)
{
	const struct model_recorded *a = left, *b = right;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	if (a->from_ts != b->from_ts)
		return a->from_ts < b->from_ts ? -1 : 1;
	return (a->capture > b->capture) - (a->capture < b->capture);
}

/* The reader lists a process once for each program that it ran; we want it once for each
 * capture. */
static void drop_repeated(struct model *model)
{
	struct model_recorded *all = model->recorded.data;
	size_t kept = 0;

	for (size_t i = 0; i < model->recorded.len; i++)
		if (!kept || all[kept - 1].pid != all[i].pid ||
		    all[kept - 1].capture != all[i].capture)
			all[kept++] = all[i];
	model->recorded.len = kept;
}

/* Sets latest_ts, which never decreases from one entry of a process to the next. So captures_at()
 * can use a binary search although captures may overlap. */
static void find_latest(struct model *model)
{
	struct model_recorded *all = model->recorded.data;

	for (size_t i = 0; i < model->recorded.len; i++) {
		all[i].latest_ts = all[i].to_ts;
		if (i && all[i - 1].pid == all[i].pid && all[i - 1].latest_ts > all[i].to_ts)
			all[i].latest_ts = all[i - 1].latest_ts;
	}
}

void captures_add(struct model *model, const struct store_reader *reader)
{
	uint32_t count = store_reader_capture_count(reader);

	for (uint32_t i = 0; count > 1 && i < count; i++) {
		const struct store_capture *capture = store_reader_capture(reader, i);
		struct model_recorded recorded = {.from_ts = capture->start_ts, .capture = i};

		recorded.to_ts =
			capture->end_ts > capture->last_ts ? capture->end_ts : capture->last_ts;
		recorded.sched_ts = capture->sched ? capture->start_ts : UINT64_MAX;
		for (uint32_t at = 0; at < capture->process_count; at++) {
			recorded.pid =
				store_reader_process(reader, capture->first_process + at)->pid;
			vec_add(&model->recorded, recorded);
		}
	}
	if (model->recorded.len)
		qsort(model->recorded.data, model->recorded.len, sizeof(*model->recorded.data),
		      recorded_compare);
	drop_repeated(model);
	find_latest(model);
}

const struct model_recorded *captures_of(const struct model *model, uint32_t pid, size_t *count)
{
	const struct model_recorded *all = model->recorded.data;
	size_t first, end;

	*count = 0;
	if (!model->recorded.len)
		return NULL;
	first = lower_bound(model->recorded.len, i, all[i].pid < pid);
	end = lower_bound_in(first, model->recorded.len, i, all[i].pid == pid);
	*count = end - first;
	return *count ? &all[first] : NULL;
}

const struct model_recorded *captures_at(const struct model *model, uint32_t thread, uint64_t ts)
{
	size_t count;
	const struct model_recorded *all =
		thread < model->threads.len && model->recorded.len
			? captures_of(model, model->threads.data[thread].pid, &count)
			: NULL;

	return all ? &all[lower_bound(count - 1, i, all[i].latest_ts < ts)] : NULL;
}

void captures_find_sched(struct model *model)
{
	uint32_t count = 0;
	uint64_t *first; /* time of a capture's first state; 0: it has none */

	for (size_t i = 0; i < model->recorded.len; i++)
		if (model->recorded.data[i].capture >= count)
			count = model->recorded.data[i].capture + 1;
	first = memory_zeroed(count, sizeof(*first));
	for (size_t i = 0; i < model->states.len; i++) {
		const struct model_state *state = &model->states.data[i];
		const struct model_recorded *of = captures_at(model, state->thread, state->ts);

		if (of && !state->at_end && (!first[of->capture] || state->ts < first[of->capture]))
			first[of->capture] = state->ts;
	}
	for (size_t i = 0; i < model->recorded.len; i++) {
		struct model_recorded *recorded = &model->recorded.data[i];

		if (recorded->sched_ts != UINT64_MAX && first[recorded->capture])
			recorded->sched_ts = first[recorded->capture];
	}
	free(first);
}
