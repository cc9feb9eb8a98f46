// SPDX-License-Identifier: Apache-2.0
/* Selects what to draw of a capture: the window and the threads. */
#include "render/text/view_pick_internal.h"

#include <stdlib.h>
#include <string.h>

#include "render/text/lanes.h"
#include "store/host.h"
#include "util/memory.h"
#include "util/units.h"

static int rank_compare(const void *left, const void *right)
{
	const struct view_ranked *a = left, *b = right;

	if (a->shown != b->shown)
		return a->shown ? -1 : 1;
	if (a->first != b->first)
		return a->first ? -1 : 1;
	if (a->span_ns != b->span_ns)
		return a->span_ns > b->span_ns ? -1 : 1;
	if (a->running_ns != b->running_ns)
		return a->running_ns > b->running_ns ? -1 : 1;
	return a->thread < b->thread ? -1 : a->thread > b->thread;
}

static int rank_interval(const struct model_interval *interval, void *arg)
{
	struct view_ranking *ranking = arg;
	struct view_ranked *ranked = &ranking->threads[interval->thread];
	uint64_t from = interval->from_ts, to = interval->to_ts;

	if (!lane_clip(ranking->from_ts, ranking->to_ts, &from, &to))
		return 0;
	ranked->shown = true;
	if (interval->state == WAFFLE_THREAD_RUNNING)
		ranked->running_ns += to - from;
	return 0;
}

static bool thread_is(const struct model *model, uint32_t thread, const char *wanted)
{
	uint64_t tid;

	if (units_parse_number(wanted, &tid) &&
	    model_pid_real(model, model->threads.data[thread].tid) == tid)
		return true;
	return !strcmp(model_thread_name(model, thread), wanted);
}

void view_rank_threads(struct view_ranking *ranking, const struct model *model,
		       const struct view_options *options, size_t *count)
{
	*count = 0;
	ranking->threads = memory_zeroed(model->threads.len + 1, sizeof(*ranking->threads));
	for (size_t i = 0; i < model->spans.len; i++) {
		const struct model_span *span = &model->spans.data[i];
		uint64_t from = span->start_ts, to = span->end_ts;

		if (!lane_clip(ranking->from_ts, ranking->to_ts, &from, &to))
			continue;
		ranking->threads[span->thread].shown = true;
		if (span->parent == MODEL_NONE)
			ranking->threads[span->thread].span_ns += to - from;
	}
	model_each_interval(model, rank_interval, ranking);
	for (uint32_t i = 0; i < model->threads.len; i++) {
		struct view_ranked *ranked = &ranking->threads[i];

		ranked->thread = i;
		ranked->first = i == ranking->first;
		ranked->shown =
			ranked->shown && (!options->thread || thread_is(model, i, options->thread));
		*count += ranked->shown;
	}
	qsort(ranking->threads, model->threads.len, sizeof(*ranking->threads), rank_compare);
}

/* The longest span of a name that is at least partly in the window. */
static uint32_t slowest_span(const struct model *model, const char *name, uint64_t from_ts,
			     uint64_t to_ts)
{
	uint32_t slowest = MODEL_NONE;
	uint64_t most = 0;

	for (uint32_t i = 0; i < model->spans.len; i++) {
		const struct model_span *span = &model->spans.data[i];
		uint64_t from = span->start_ts, to = span->end_ts, ns = to - from;

		if (lane_clip(from_ts, to_ts, &from, &to) && (slowest == MODEL_NONE || ns > most) &&
		    !strcmp(model_site(model, span->site)->name, name)) {
			slowest = i;
			most = ns;
		}
	}
	return slowest;
}

int view_find_window(const struct model *model, const struct view_options *options,
		     struct view_ranking *ranking, struct error *err)
{
	int result = model_reaches(model, options->from_ts, err);
	uint32_t index;

	if (result)
		return result;
	*ranking = (struct view_ranking){
		.first = MODEL_NONE, .from_ts = model->start_ts, .to_ts = model->end_ts};
	if (options->from_ts > ranking->from_ts)
		ranking->from_ts = options->from_ts;
	if (options->to_ts < ranking->to_ts)
		ranking->to_ts = options->to_ts;
	if (options->span) {
		const struct model_span *span;
		uint64_t margin;

		index = slowest_span(model, options->span, ranking->from_ts, ranking->to_ts);
		if (index == MODEL_NONE)
			return error_set(err, ENOENT,
					 "no span '%s' in that time; waffle-bpf report lists the "
					 "names",
					 options->span);
		span = &model->spans.data[index];
		margin = (span->end_ts - span->start_ts) / 32 + 1;
		ranking->first = span->thread;
		ranking->from_ts = span->start_ts > model->start_ts + margin
					   ? span->start_ts - margin
					   : model->start_ts;
		ranking->to_ts = span->end_ts < model->end_ts - margin ? span->end_ts + margin
								       : model->end_ts;
	}
	if (ranking->from_ts >= ranking->to_ts)
		return error_set(
			err, EINVAL,
			"nothing was recorded in that time; waffle-bpf info shows how long "
			"the capture is");
	return 0;
}
