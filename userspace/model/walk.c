// SPDX-License-Identifier: Apache-2.0
/*
 * Merges everything that affects thread states in order of time, and feeds the state machine
 * (sched_internal.h). At equal times the order of enum stream_kind decides: switches and wake-ups
 * first, then what threads did, then losses. So a window of dropped records excludes its first
 * moment and includes its last one.
 */
#include <stdlib.h>
#include <string.h>

#include "model/build.h"
#include "model/captures_internal.h"
#include "model/order.h"
#include "model/recorded_ends_internal.h"
#include "model/sched_internal.h"
#include "util/memory.h"

enum stream_kind {
	STREAM_SWITCH,
	STREAM_WAKE, /* may have the time of the switch by which its thread left the CPU */
	STREAM_STATE,
	STREAM_SPAN_BEGIN,
	STREAM_EVENT,
	STREAM_SPAN_END,
	STREAM_EXIT,
	STREAM_EXEC,       /* after the exit of the tid that the thread takes over */
	STREAM_UNRECORDED, /* the thread's capture ends before others do */
	STREAM_LOSS_BEGIN, /* before its end: a window may be one moment */
	STREAM_LOSS_END,
	STREAM_COUNT
};

struct walk {
	const struct model *model;
	struct model_span *spans; /* where to write their times; NULL: not wanted */
	struct sched sched;
	/* Where losses begin and end; `index` is the host. */
	VEC(struct order_item) loss_begins;
	VEC(struct order_item) loss_ends;
	uint64_t sched_from; /* when scheduler records begin */
	VEC(struct order_item) wakes;
	VEC(struct order_item) span_ends;
	VEC(struct order_item) exits;
	VEC(struct order_item) execs;
	struct recorded_ends recorded;
	size_t at[STREAM_COUNT];
	uint64_t next_ts[STREAM_COUNT]; /* UINT64_MAX: none left */
};

/* ---- losses ---- */

static bool is_wanted(const struct model_loss *loss, bool only_sched)
{
	return loss->count && (!only_sched || loss->source == WAFFLE_SOURCE_SCHED);
}

void model_losses(struct windows *losses, const struct model *model, bool only_sched)
{
	*losses = (struct windows){0};
	for (size_t i = 0; i < model->losses.len; i++)
		if (is_wanted(&model->losses.data[i], only_sched))
			windows_add(losses, model->losses.data[i].from_ts,
				    model->losses.data[i].to_ts);
	windows_merge(losses);
}

static void add_losses(struct walk *walk, const struct windows *losses, uint32_t host)
{
	for (size_t i = 0; i < losses->list.len; i++) {
		struct window lost = losses->list.data[i];

		vec_add(&walk->loss_begins, (struct order_item){lost.from_ts, host});
		vec_add(&walk->loss_ends, (struct order_item){lost.to_ts, host});
	}
}

static void find_losses(struct walk *walk)
{
	const struct model *model = walk->model;
	struct windows *of_host = memory_zeroed(model->host_count, sizeof(*of_host));

	for (size_t i = 0; i < model->losses.len; i++) {
		const struct model_loss *loss = &model->losses.data[i];

		if (is_wanted(loss, true))
			windows_add(&of_host[model_host_of_cpu(model, loss->cpu)], loss->from_ts,
				    loss->to_ts);
	}
	for (uint32_t host = 0; host < model->host_count; host++) {
		windows_merge(&of_host[host]);
		add_losses(walk, &of_host[host], host);
		windows_free(&of_host[host]);
	}
	free(of_host);
	order_sort(walk->loss_begins.data, walk->loss_begins.len);
	order_sort(walk->loss_ends.data, walk->loss_ends.len);
}

/* ---- streams ---- */

static uint64_t stream_ts(const struct walk *walk, unsigned stream)
{
	const struct model *model = walk->model;
	size_t at = walk->at[stream];

#define HEAD(array, field) (at < (array).len ? (array).data[at].field : UINT64_MAX)
	switch (stream) {
	case STREAM_LOSS_END:
		return HEAD(walk->loss_ends, ts);
	case STREAM_LOSS_BEGIN:
		return HEAD(walk->loss_begins, ts);
	case STREAM_WAKE:
		return HEAD(walk->wakes, ts);
	case STREAM_SWITCH:
		return HEAD(model->switches, ts);
	case STREAM_STATE:
		return HEAD(model->states, ts);
	case STREAM_SPAN_BEGIN:
		return HEAD(model->spans, start_ts);
	case STREAM_EVENT:
		return HEAD(model->events, ts);
	case STREAM_SPAN_END:
		return HEAD(walk->span_ends, ts);
	case STREAM_EXEC:
		return HEAD(walk->execs, ts);
	case STREAM_UNRECORDED:
		return HEAD(walk->recorded.ends, ts);
	default:
		return HEAD(walk->exits, ts);
	}
#undef HEAD
}

/* The thread ran its own code. Before the scheduler was recorded that says nothing about what
 * follows. */
static void hit(struct walk *walk, uint32_t thread, uint64_t ts)
{
	const struct model_recorded *recorded = captures_at(walk->model, thread, ts);

	if (model_is_track(walk->model, thread))
		return;
	if (ts >= (recorded ? recorded->sched_ts : walk->sched_from))
		sched_hit(&walk->sched, thread, ts);
	recorded_ends_touch(&walk->recorded, thread);
}

static void span_begins(struct walk *walk, size_t index)
{
	const struct model_span *span = &walk->model->spans.data[index];
	const struct sched_thread *thread = &walk->sched.threads[span->thread];

	if (span->flags & MODEL_SPAN_BEGUN_BEFORE)
		return;
	hit(walk, span->thread, span->start_ts);
	if (!walk->spans)
		return;
	/* Until the end of the span, these hold the thread's totals at its begin. */
	walk->spans[index].running_ns = sched_sum(thread, WAFFLE_THREAD_RUNNING, span->start_ts);
	walk->spans[index].runnable_ns = sched_sum(thread, WAFFLE_THREAD_RUNNABLE, span->start_ts);
}

static void span_ends(struct walk *walk, size_t index)
{
	struct model_span *span = &walk->spans[index];
	const struct sched_thread *thread = &walk->sched.threads[span->thread];
	const uint32_t other = MODEL_SPAN_BEGUN_BEFORE | MODEL_SPAN_MOVED;
	uint64_t running, runnable;

	if (span->flags & other || !sched_known(thread, span->start_ts)) {
		span->running_ns = 0;
		span->runnable_ns = 0;
		return;
	}
	running = sched_sum(thread, WAFFLE_THREAD_RUNNING, span->end_ts);
	runnable = sched_sum(thread, WAFFLE_THREAD_RUNNABLE, span->end_ts);
	span->running_ns = running - span->running_ns;
	span->runnable_ns = runnable - span->runnable_ns;
	span->flags |= MODEL_SPAN_HAS_SCHED;
}

static void step(struct walk *walk, unsigned stream)
{
	const struct model *model = walk->model;
	size_t at = walk->at[stream]++;
	uint64_t ts = walk->next_ts[stream];

	walk->next_ts[stream] = stream_ts(walk, stream);
	switch (stream) {
	case STREAM_LOSS_END:
		sched_loss_end(&walk->sched, walk->loss_ends.data[at].index, ts);
		break;
	case STREAM_LOSS_BEGIN:
		sched_loss_begin(&walk->sched, walk->loss_begins.data[at].index, ts);
		break;
	case STREAM_WAKE:
		sched_wake(&walk->sched, &model->switches.data[walk->wakes.data[at].index]);
		break;
	case STREAM_SWITCH:
		sched_switch(&walk->sched, &model->switches.data[at]);
		recorded_ends_touch(&walk->recorded, model->switches.data[at].prev);
		recorded_ends_touch(&walk->recorded, model->switches.data[at].next);
		break;
	case STREAM_STATE:
		sched_state(&walk->sched, &model->states.data[at]);
		recorded_ends_touch(&walk->recorded, model->states.data[at].thread);
		break;
	case STREAM_SPAN_BEGIN:
		span_begins(walk, at);
		break;
	case STREAM_EVENT:
		hit(walk, model->events.data[at].thread, ts);
		break;
	case STREAM_SPAN_END:
		span_ends(walk, walk->span_ends.data[at].index);
		break;
	case STREAM_EXEC:
		hit(walk, model->execs.data[walk->execs.data[at].index].thread, ts);
		break;
	case STREAM_UNRECORDED:
		recorded_ends_apply(&walk->recorded, at, &walk->sched);
		break;
	default:
		sched_exit(&walk->sched, walk->exits.data[at].index, ts);
		break;
	}
}

static void walk_run(struct walk *walk)
{
	unsigned streams[STREAM_COUNT], count = 0; /* those that have something left */

	for (unsigned i = 0; i < STREAM_COUNT; i++) {
		walk->next_ts[i] = stream_ts(walk, i);
		if (walk->next_ts[i] != UINT64_MAX)
			streams[count++] = i;
	}
	while (count && !walk->sched.stopped) {
		unsigned first = 0;

		for (unsigned i = 1; i < count; i++)
			if (walk->next_ts[streams[i]] < walk->next_ts[streams[first]])
				first = i;
		step(walk, streams[first]);
		if (walk->next_ts[streams[first]] == UINT64_MAX)
			memmove(&streams[first], &streams[first + 1],
				(--count - first) * sizeof(*streams));
	}
	if (!walk->sched.stopped)
		sched_finish(&walk->sched, walk->model->threads_end_ts);
}

/* ---- before and after a walk ---- */

static void walk_free(struct walk *walk)
{
	sched_free(&walk->sched);
	vec_free(&walk->loss_begins);
	vec_free(&walk->loss_ends);
	vec_free(&walk->wakes);
	vec_free(&walk->span_ends);
	vec_free(&walk->exits);
	vec_free(&walk->execs);
	recorded_ends_free(&walk->recorded);
}

/* Threads whose end is known only from an exit record. */
static void find_exits(struct walk *walk)
{
	const struct model *model = walk->model;

	for (size_t i = 0; i < model->threads.len; i++) {
		const struct model_thread *thread = &model->threads.data[i];

		if (thread->exit_ts && !thread->gone)
			vec_add(&walk->exits, (struct order_item){thread->exit_ts, (uint32_t)i});
	}
	order_sort(walk->exits.data, walk->exits.len);
}

static void find_execs(struct walk *walk)
{
	const struct model *model = walk->model;

	for (size_t i = 0; i < model->execs.len; i++)
		vec_add(&walk->execs, (struct order_item){model->execs.data[i].ts, (uint32_t)i});
	order_sort(walk->execs.data, walk->execs.len);
}

static void find_wakes(struct walk *walk)
{
	const struct model *model = walk->model;

	for (size_t i = 0; i < model->switches.len; i++) {
		const struct model_switch *sw = &model->switches.data[i];

		if (sw->flags & WAFFLE_SWITCH_WOKEN)
			vec_add(&walk->wakes, (struct order_item){sw->wake_ts, (uint32_t)i});
	}
	order_sort(walk->wakes.data, walk->wakes.len);
}

static void find_span_ends(struct walk *walk)
{
	const struct model *model = walk->model;

	vec_need(&walk->span_ends, model->spans.len);
	for (size_t i = 0; i < model->spans.len; i++)
		walk->span_ends.data[walk->span_ends.len++] =
			(struct order_item){model->spans.data[i].end_ts, (uint32_t)i};
	order_sort(walk->span_ends.data, walk->span_ends.len);
}

static uint64_t first_sched_ts(const struct model *model)
{
	uint64_t ts = model->switches.len ? model->switches.data[0].ts : UINT64_MAX;

	/* If the scheduler was not recorded, the states at the begin do not tell what came after
	 * them. */
	if (!model->sched)
		return UINT64_MAX;
	for (size_t i = 0; i < model->states.len; i++)
		if (!model->states.data[i].at_end && model->states.data[i].ts < ts)
			ts = model->states.data[i].ts;
	return ts;
}

static void walk_init(struct walk *walk, const struct model *model, model_interval_fn each,
		      void *arg)
{
	*walk = (struct walk){.model = model, .sched_from = first_sched_ts(model)};
	sched_init(&walk->sched, model, each, arg);
	find_losses(walk);
	find_exits(walk);
	find_execs(walk);
	recorded_ends_find(&walk->recorded, model);
}

void walk_account(struct model *model)
{
	struct walk walk;

	walk_init(&walk, model, NULL, NULL);
	if (walk.sched_from != UINT64_MAX) {
		walk.spans = model->spans.data;
		find_span_ends(&walk);
		/* The switch-in also tells when its thread was woken. That is too late only if
		 * records were dropped in between. */
		if (walk.loss_begins.len)
			find_wakes(&walk);
		walk_run(&walk);
	}
	for (size_t i = 0; i < model->threads.len; i++) {
		const struct sched_thread *from = &walk.sched.threads[i];
		struct model_thread *thread = &model->threads.data[i];

		thread->has_sched = from->ever_known;
		thread->running_ns = from->sum[WAFFLE_THREAD_RUNNING];
		thread->runnable_ns = from->sum[WAFFLE_THREAD_RUNNABLE];
		thread->blocked_ns = from->sum[WAFFLE_THREAD_BLOCKED];
	}
	walk_free(&walk);
}

int model_each_interval(const struct model *model, model_interval_fn each, void *arg)
{
	struct walk walk;

	walk_init(&walk, model, each, arg);
	find_wakes(&walk);
	if (walk.sched_from != UINT64_MAX)
		walk_run(&walk);
	walk_free(&walk);
	return walk.sched.stopped;
}
