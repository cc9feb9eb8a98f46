// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/why_each_internal.h"

#include "analyze/why/lookup/why_switches.h"
#include "analyze/why/walk/why_instance.h"
#include "analyze/why/walk/why_walk.h"
#include "analyze/why/why_walk_types.h"
#include "analyze/why/why_whole_internal.h"

/* Number of switches around a slice whose intervals are loaded with it. */
#define AROUND (WHY_EACH_SWITCHES / 8)
/* Number of switches between two marks. A slice is read from the mark before it, so the time
 * between two marks is read twice. */
#define MARK_SWITCHES (WHY_EACH_SWITCHES / 4)

/* Adds the time around a slice, but none before the first slice or behind the last one. */
static void batch_widen(const struct model *model, struct why_batch *batch, bool first, bool last)
{
	size_t from = why_switch_after(model, batch->from_ts);
	size_t to = why_switch_after(model, batch->to_ts) + AROUND;

	if (!first && from >= AROUND)
		batch->from_ts = model->switches.data[from - AROUND].ts;
	if (!last && to < model->switches.len)
		batch->to_ts = model->switches.data[to].ts;
}

struct why_batch why_batch_from(const struct model *model, uint32_t first)
{
	struct why_batch batch = {.first = first, .end = first};
	uint64_t limit = UINT64_MAX;
	size_t at;

	while (batch.first < model->spans.len &&
	       !why_is_counted(model, &model->spans.data[batch.first]))
		batch.first++;
	batch.end = batch.first;
	if (batch.first == model->spans.len)
		return batch;
	batch.from_ts = model->spans.data[batch.first].start_ts;
	at = why_switch_after(model, batch.from_ts) + WHY_EACH_SWITCHES;
	if (at < model->switches.len)
		limit = model->switches.data[at].ts;
	for (; batch.end < model->spans.len; batch.end++) {
		const struct model_span *span = &model->spans.data[batch.end];

		if (!why_is_counted(model, span) || span->end_ts <= batch.to_ts)
			continue;
		if (span->start_ts > limit)
			break;
		batch.to_ts = span->end_ts;
	}
	batch_widen(model, &batch, !first, batch.end == model->spans.len);
	return batch;
}

int why_batch_explain(struct why_walk *walk, const struct model_marks *marks,
		      const struct why_batch *batch, why_each_fn each, void *arg)
{
	const struct model *model = walk->model;
	struct windows windows = {0};
	int result = 0;

	if (batch->first < batch->end) {
		windows_add(&windows, batch->from_ts, batch->to_ts);
		why_intervals_load_next(&walk->intervals, marks, &windows);
	}
	for (uint32_t i = batch->first; i < batch->end && !result; i++) {
		struct why_instance instance = why_span_instance(model, i);

		if (!why_is_counted(model, &model->spans.data[i]))
			continue;
		instance.loss = model->spans.data[i].flags & MODEL_SPAN_LOSS;
		why_instance_walk(walk, &instance);
		why_instance_parts(walk->why, walk, &instance);
		result = each(walk->why, &instance, arg);
	}
	windows_free(&windows);
	return result;
}

int why_batches_begin(struct why **why, struct why_walk *walk, struct model_marks **marks,
		      const struct model *model, struct stack_names *names,
		      const struct gpu_timeline *timeline, struct error *err)
{
	int result = why_start(why, walk, model, names, err);

	*marks = NULL;
	walk->no_chains = true;
	if (result)
		return result;
	why_walk_prepare(walk, NULL, timeline);
	*marks = model_marks_new(model, MARK_SWITCHES, why_intervals_note, &walk->intervals);
	return 0;
}

int why_each(struct why **why, const struct model *model, struct stack_names *names,
	     why_each_fn each, void *arg, struct error *err)
{
	struct model_marks *marks;
	struct why_walk walk;
	int result = why_batches_begin(why, &walk, &marks, model, names, NULL, err);

	for (uint32_t next = 0; next < model->spans.len && !result;) {
		struct why_batch batch = why_batch_from(model, next);

		result = why_batch_explain(&walk, marks, &batch, each, arg);
		next = batch.end;
	}
	model_marks_free(marks);
	why_walk_free(&walk);
	if (result < 0) {
		why_free(*why);
		*why = NULL;
	}
	return result;
}
