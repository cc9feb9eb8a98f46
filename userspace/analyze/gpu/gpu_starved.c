// SPDX-License-Identifier: Apache-2.0
#include "analyze/gpu/gpu_starved.h"

#include <stdlib.h>

#include "util/memory.h"

int gpu_starved_explain(struct why **why, const struct gpu_report *report,
			struct stack_names *names, struct error *err)
{
	const struct gpu_timeline *timeline = report->timeline;
	VEC(struct why_window) windows = {0};
	struct why_query query = {.names = names, .timeline = timeline};
	int result = 0;

	*why = NULL;
	for (size_t i = 0; i < timeline->devices.len && timeline->model->sched; i++) {
		const struct gpu_device_report *device = &report->devices[i];

		for (size_t k = 0; k < device->starved.len; k++) {
			const struct gpu_stretch *at = &device->starved.data[k];

			if (model_is_traced(timeline->model, at->thread))
				vec_add(&windows,
					(struct why_window){at->from_ts, at->to_ts, at->thread});
		}
	}
	query.windows = windows.data;
	query.window_count = windows.len;
	if (windows.len)
		result = why_new(why, timeline->model, &query, err);
	vec_free(&windows);
	return result;
}

static int larger(const void *left, const void *right)
{
	const struct gpu_cause *a = left, *b = right;

	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	return a->cause < b->cause ? -1 : a->cause > b->cause;
}

void gpu_starved_causes(const struct why *why, gpu_causes *sums)
{
	for (size_t i = 0; i < why->instances.len; i++) {
		const struct why_instance *instance = &why->instances.data[i];

		for (uint32_t k = instance->part; k < instance->part + instance->part_count; k++) {
			const struct why_part *part = &why->parts.data[k];
			size_t at = 0;

			while (at < sums->len && sums->data[at].cause != part->cause)
				at++;
			if (at == sums->len)
				vec_add(sums, (struct gpu_cause){part->cause, 0, k});
			sums->data[at].ns += part->ns;
			if (part->ns > why->parts.data[sums->data[at].part].ns)
				sums->data[at].part = k;
		}
	}
	if (sums->len)
		qsort(sums->data, sums->len, sizeof(*sums->data), larger);
}
