// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/why_longest.h"

#include <stdlib.h>

#include "analyze/why/lookup/why_switches.h"
#include "analyze/why/walk/why_instance.h"
#include "analyze/why/walk/why_walk.h"
#include "analyze/why/why_walk_types.h"
#include "analyze/why/why_whole_internal.h"
#include "util/memory.h"

/*
 * A wait is explained by walking through the intervals of those that it waited for, so it is taken
 * to cost as much as there are switches in its time. Otherwise many idle threads that wait for one
 * busy thread would be the work of a square. A cost of 100,000 takes about 25 ms of CPU time.
 */
#define SPANS_WORK (1u << 17)
#define SPANS_SHARE 32 /* and one more for each so many switches */
#define WAITS_WORK (1u << 21)
#define WAITS_SHARE 1
#define ITEMS_MAX (1u << 16)

/* What is to be explained: spans, or waits. */
struct longest {
	VEC(struct long_item {
		struct why_long of;
		uint64_t cost;
	})
	list;
	uint64_t seen;
};

struct long_search {
	const struct model *model;
	struct longest spans, waits;
	uint64_t *blocked; /* by thread: since when; 0: it is not */
};

static int compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int by_time(const void *left, const void *right)
{
	const struct long_item *a = left, *b = right;

	return compare(a->of.from_ts, b->of.from_ts)
		       ?: compare(b->of.to_ts, a->of.to_ts)
			       ?: compare(a->of.thread, b->of.thread)
				       ?: compare(a->of.span, b->of.span);
}

static int longer(const void *left, const void *right)
{
	const struct long_item *a = left, *b = right;

	return compare(b->of.to_ts - b->of.from_ts, a->of.to_ts - a->of.from_ts)
		       ?: by_time(left, right);
}

/* Short waits have causes. Those that cost most are mostly of threads that have nothing to do. */
static int cheaper(const void *left, const void *right)
{
	const struct long_item *a = left, *b = right;

	return compare(a->cost, b->cost) ?: by_time(left, right);
}

static void sort(struct longest *longest, int (*order)(const void *, const void *))
{
	if (longest->list.len)
		qsort(longest->list.data, longest->list.len, sizeof(*longest->list.data), order);
}

static void longest_add(struct longest *longest, const struct why_long *of)
{
	if (of->to_ts < of->from_ts || of->to_ts - of->from_ts < WHY_LONG_NS)
		return;
	longest->seen++;
	vec_add(&longest->list, (struct long_item){.of = *of});
	if (longest->list.len < 2 * ITEMS_MAX)
		return;
	sort(longest, longer);
	longest->list.len = ITEMS_MAX;
}

/* Keeps the first ones, in an order, that are not too much work together. */
static void longest_limit(struct longest *longest, const struct model *model,
			  int (*order)(const void *, const void *), uint64_t work)
{
	size_t kept = 0;

	for (size_t i = 0; i < longest->list.len; i++) {
		struct long_item *item = &longest->list.data[i];

		item->cost = why_switch_after(model, item->of.to_ts) -
			     why_switch_after(model, item->of.from_ts) + 1;
	}
	sort(longest, order);
	for (size_t i = 0; i < longest->list.len && kept < ITEMS_MAX; i++) {
		struct long_item item = longest->list.data[i];

		if (item.cost > work)
			continue;
		work -= item.cost;
		longest->list.data[kept++] = item;
	}
	longest->list.len = kept;
}

/* ---- search ---- */

static void wait_end(struct long_search *search, uint32_t thread, uint64_t ts)
{
	struct why_long wait = {.from_ts = search->blocked[thread],
				.to_ts = ts,
				.span = MODEL_NONE,
				.thread = thread};

	if (wait.from_ts)
		longest_add(&search->waits, &wait);
	search->blocked[thread] = 0;
}

static void switch_see(struct long_search *search, const struct model_switch *sw)
{
	const uint16_t dead = WAFFLE_TASK_DEAD | WAFFLE_TASK_ZOMBIE;
	bool woken = sw->flags & WAFFLE_SWITCH_WOKEN;

	if (sw->next != MODEL_NONE && sw->flags & WAFFLE_SWITCH_NEXT_TRACED)
		wait_end(search, sw->next, woken ? sw->wake_ts : sw->ts);
	if (sw->prev != MODEL_NONE && sw->flags & WAFFLE_SWITCH_PREV_TRACED)
		search->blocked[sw->prev] = (sw->prev_state & 0xff) && !(sw->prev_state & dead) &&
							    !(sw->flags & WAFFLE_SWITCH_PREEMPTED)
						    ? sw->ts
						    : 0;
}

/* The walk through all intervals is exact, but takes ten times as long. So this finds candidates
 * by the switches alone, and interval_of() checks them. */
static void waits_find(struct long_search *search)
{
	const struct model *model = search->model;

	search->blocked = memory_zeroed(model->threads.len + 1, sizeof(*search->blocked));
	for (size_t i = 0; i < model->states.len; i++)
		if (!model->states.data[i].at_end &&
		    model->states.data[i].state == WAFFLE_THREAD_BLOCKED)
			search->blocked[model->states.data[i].thread] = model->states.data[i].ts;
	for (size_t i = 0; i < model->switches.len; i++)
		switch_see(search, &model->switches.data[i]);
	for (uint32_t i = 0; i < model->threads.len; i++)
		wait_end(search, i, model->end_ts);
	free(search->blocked);
}

static void spans_find(struct longest *spans, const struct model *model)
{
	for (uint32_t i = 0; i < model->spans.len; i++) {
		const struct model_span *span = &model->spans.data[i];
		struct why_long of = {.from_ts = span->start_ts,
				      .to_ts = span->end_ts,
				      .span = i,
				      .thread = span->thread};

		if (why_is_counted(model, span))
			longest_add(spans, &of);
	}
}

/* Finds the spans and waits to explain, by time, all in search->spans. */
static void search_all(struct long_search *search)
{
	const struct model *model = search->model;
	uint64_t switches = model->switches.len;

	spans_find(&search->spans, model);
	longest_limit(&search->spans, model, longer, SPANS_WORK + switches / SPANS_SHARE);
	waits_find(search);
	longest_limit(&search->waits, model, cheaper, WAITS_WORK + switches / WAITS_SHARE);
	for (size_t i = 0; i < search->waits.list.len; i++)
		vec_add(&search->spans.list, search->waits.list.data[i]);
	sort(&search->spans, by_time);
}

/* ---- explanation ---- */

/* Fills in what the thread's interval says of a wait. False: there is no such interval, since
 * records were lost or contradict each other, or the wait is shorter than it seemed. */
static bool wait_read(struct why_walk *walk, struct why_long *wait)
{
	const struct why_thread *thread = &walk->intervals.threads[wait->thread];
	size_t at = why_intervals_after(&walk->intervals, wait->thread, wait->from_ts);
	const struct why_interval *interval;

	if (at >= thread->intervals.len)
		return false;
	interval = &thread->intervals.data[at];
	if (interval->state != WAFFLE_THREAD_BLOCKED || interval->from_ts != wait->from_ts ||
	    interval->to_ts - wait->from_ts < WHY_LONG_NS)
		return false;
	wait->to_ts = interval->to_ts;
	wait->syscall = interval->syscall;
	wait->by = MODEL_NONE;
	if (at + 1 < thread->intervals.len && interval[1].state == WAFFLE_THREAD_RUNNABLE &&
	    interval[1].woken) {
		wait->by = interval[1].by;
		wait->interrupt = interval[1].interrupt;
	}
	return true;
}

static void item_explain(struct why_walk *walk, struct why_long *of, why_longest_fn each, void *arg)
{
	bool is_wait = of->span == MODEL_NONE;
	struct why_instance instance;

	if (is_wait && !wait_read(walk, of))
		return;
	instance = is_wait ? why_window_instance(of->thread, of->from_ts, of->to_ts)
			   : why_span_instance(walk->model, of->span);
	why_instance_walk(walk, &instance);
	why_instance_judge(&instance, walk);
	why_instance_parts(walk->why, walk, &instance);
	each(walk->why, &instance, of, arg);
}

static void items_explain(struct why_walk *walk, struct longest *longest, why_longest_fn each,
			  void *arg)
{
	struct windows windows = {0};

	for (size_t i = 0; i < longest->list.len; i++)
		windows_add(&windows, longest->list.data[i].of.from_ts,
			    longest->list.data[i].of.to_ts);
	windows_merge(&windows);
	why_intervals_load(&walk->intervals, &windows);
	windows_free(&windows);
	for (size_t i = 0; i < longest->list.len; i++)
		item_explain(walk, &longest->list.data[i].of, each, arg);
}

int why_longest(struct why **why, const struct model *model, const struct why_query *query,
		why_longest_fn each, void *arg, uint64_t *left_out, struct error *err)
{
	struct long_search search = {.model = model};
	struct why_walk walk;
	int result = why_start(why, &walk, model, query->names, err);

	if (result)
		return result;
	walk.no_chains = true;
	search_all(&search);
	if (search.spans.list.len) {
		why_walk_prepare(&walk, NULL, query->timeline);
		items_explain(&walk, &search.spans, each, arg);
	}
	*left_out += search.waits.seen - search.waits.list.len;
	vec_free(&search.spans.list);
	vec_free(&search.waits.list);
	why_walk_free(&walk);
	return 0;
}
