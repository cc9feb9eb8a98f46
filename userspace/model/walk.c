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
#include "model/order_heap.h"
#include "model/recorded_ends_internal.h"
#include "model/sched_internal.h"
#include "util/memory.h"
#include "util/search.h"

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
	order_heap span_ends; /* of the spans that have begun; empty without `spans` */
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
		return walk->span_ends.len ? walk->span_ends.data[0].ts : UINT64_MAX;
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

	if (walk->spans) {
		order_heap_add(&walk->span_ends,
			       (struct order_item){span->end_ts, (uint32_t)index});
		walk->next_ts[STREAM_SPAN_END] = stream_ts(walk, STREAM_SPAN_END);
	}
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
	size_t at = stream == STREAM_SPAN_END ? order_heap_take(&walk->span_ends).index
					      : walk->at[stream]++;
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
		span_ends(walk, at);
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

/* The stream that comes next, of those in the list. */
static unsigned walk_first(const struct walk *walk, const unsigned *streams, unsigned count)
{
	unsigned first = 0;

	for (unsigned i = 1; i < count; i++)
		if (walk->next_ts[streams[i]] < walk->next_ts[streams[first]])
			first = i;
	return first;
}

/* Goes on until STREAM_SWITCH is at `until`; SIZE_MAX: to the end. */
static void walk_run(struct walk *walk, size_t until)
{
	unsigned streams[STREAM_COUNT], count = 0, first;

	/* Those that may have something left; ends of spans come while spans begin. */
	for (unsigned i = 0; i < STREAM_COUNT; i++) {
		walk->next_ts[i] = stream_ts(walk, i);
		if (walk->next_ts[i] != UINT64_MAX || (i == STREAM_SPAN_END && walk->spans))
			streams[count++] = i;
	}
	while (count && !walk->sched.stopped) {
		first = walk_first(walk, streams, count);
		if (walk->next_ts[streams[first]] == UINT64_MAX)
			break;
		if (streams[first] == STREAM_SWITCH && walk->at[STREAM_SWITCH] == until)
			return;
		step(walk, streams[first]);
		if (walk->next_ts[streams[first]] == UINT64_MAX &&
		    streams[first] != STREAM_SPAN_END)
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
		/* The switch-in also tells when its thread was woken. That is too late only if
		 * records were dropped in between. */
		if (walk.loss_begins.len)
			find_wakes(&walk);
		walk_run(&walk, SIZE_MAX);
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
		walk_run(&walk, SIZE_MAX);
	walk_free(&walk);
	return walk.sched.stopped;
}

/* Without wake-ups of their own, a thread's blocked time is given when it is switched in: after
 * later intervals of other threads. If its state can change in between, the wake-ups are needed. */
static void walk_init_by_thread(struct walk *walk, const struct model *model,
				model_interval_fn each, void *arg)
{
	walk_init(walk, model, each, arg);
	if (walk->loss_begins.len || walk->exits.len || walk->recorded.ends.len)
		find_wakes(walk);
}

void model_each_interval_by_thread(const struct model *model, model_interval_fn each, void *arg)
{
	struct walk walk;

	walk_init_by_thread(&walk, model, each, arg);
	if (walk.sched_from != UINT64_MAX)
		walk_run(&walk, SIZE_MAX);
	walk_free(&walk);
}

/* ---- marks ---- */

/* Limit of the states of threads in all marks. */
#define MARK_STATES_MAX (1u << 19)

/* The state of a walk before a switch. */
struct mark {
	uint64_t ts; /* of the switch: the walk is past everything that is earlier */
	size_t at[STREAM_COUNT];
	struct sched_thread *threads;
	struct sched_host *hosts;
	/* Of each thread: the interval that it is in, and if that is a blocked one, the next. */
	VEC(struct model_interval) after;
};

/* The marks that want a thread's next interval: those from `second` on as the one that it is in,
 * and those from `first` on as the one after that. */
struct mark_wants {
	uint32_t first, second;
};

struct model_marks {
	struct walk walk; /* what all marks share */
	VEC(struct mark) list;
	struct mark_wants *wants; /* of each thread, while the marks are made */
	model_interval_fn each;
	void *arg;
};

static struct sched_host *hosts_copy(const struct sched_host *hosts, uint32_t count)
{
	struct sched_host *copy = memory_get(count * sizeof(*copy));

	memcpy(copy, hosts, count * sizeof(*copy));
	for (uint32_t i = 0; i < count; i++) {
		memset(&copy[i].known, 0, sizeof(copy[i].known));
		for (size_t k = 0; k < hosts[i].known.len; k++)
			vec_add(&copy[i].known, hosts[i].known.data[k]);
	}
	return copy;
}

static struct sched_thread *threads_copy(const struct sched_thread *threads, size_t count)
{
	struct sched_thread *copy = memory_zeroed(count, sizeof(*copy));

	if (count)
		memcpy(copy, threads, count * sizeof(*copy));
	return copy;
}

static void mark_add(struct model_marks *marks)
{
	const struct walk *walk = &marks->walk;
	struct mark mark = {.ts = walk->next_ts[STREAM_SWITCH],
			    .threads = threads_copy(walk->sched.threads, walk->sched.count),
			    .hosts = hosts_copy(walk->sched.hosts, walk->sched.host_count)};

	memcpy(mark.at, walk->at, sizeof(mark.at));
	vec_add(&marks->list, mark);
}

static int mark_interval(const struct model_interval *interval, void *arg)
{
	struct model_marks *marks = arg;
	struct mark_wants *wants = &marks->wants[interval->thread];

	for (size_t i = wants->first; i < marks->list.len; i++)
		vec_add(&marks->list.data[i].after, *interval);
	wants->first = interval->state == WAFFLE_THREAD_BLOCKED ? wants->second
								: (uint32_t)marks->list.len;
	wants->second = (uint32_t)marks->list.len;
	marks->each(interval, marks->arg);
	return 0;
}

struct model_marks *model_marks_new(const struct model *model, size_t every, model_interval_fn each,
				    void *arg)
{
	struct model_marks *marks = memory_zeroed(1, sizeof(*marks));
	size_t states = model->threads.len + 1, most = MARK_STATES_MAX / states + 1;
	struct walk *walk = &marks->walk;

	if (every < model->switches.len / most)
		every = model->switches.len / most;
	marks->each = each;
	marks->arg = arg;
	marks->wants = memory_zeroed(states, sizeof(*marks->wants));
	walk_init_by_thread(walk, model, mark_interval, marks);
	/* The lists of processes that stop being recorded are not in a mark. */
	if (walk->recorded.ends.len)
		every = SIZE_MAX / 2;
	for (size_t at = every; walk->sched_from != UINT64_MAX; at += every) {
		walk_run(walk, at);
		if (walk->at[STREAM_SWITCH] != at || at >= model->switches.len)
			break;
		mark_add(marks);
	}
	free(marks->wants);
	marks->wants = NULL;
	return marks;
}

void model_marks_free(struct model_marks *marks)
{
	if (!marks)
		return;
	for (size_t i = 0; i < marks->list.len; i++) {
		struct mark *mark = &marks->list.data[i];

		for (uint32_t host = 0; host < marks->walk.sched.host_count; host++)
			vec_free(&mark->hosts[host].known);
		free(mark->hosts);
		free(mark->threads);
		vec_free(&mark->after);
	}
	vec_free(&marks->list);
	walk_free(&marks->walk);
	free(marks);
}

/* A walk from a mark on. NULL: from the begin on. */
static struct walk walk_from(const struct model_marks *marks, const struct mark *mark)
{
	struct walk walk = marks->walk;

	walk.sched.stopped = 0;
	if (mark) {
		walk.sched.threads = threads_copy(mark->threads, walk.sched.count);
		walk.sched.hosts = hosts_copy(mark->hosts, walk.sched.host_count);
		memcpy(walk.at, mark->at, sizeof(walk.at));
	} else {
		sched_init(&walk.sched, walk.model, NULL, NULL);
		recorded_ends_find(&walk.recorded, walk.model);
		memset(walk.at, 0, sizeof(walk.at));
	}
	return walk;
}

void model_marks_intervals(const struct model_marks *marks, uint64_t from_ts, uint64_t to_ts,
			   model_interval_fn each, void *arg)
{
	const struct mark *list = marks->list.data;
	size_t first = lower_bound(marks->list.len, i, list[i].ts < from_ts);
	size_t end = lower_bound(marks->list.len, i, list[i].ts <= to_ts);
	struct walk walk = walk_from(marks, first ? &list[first - 1] : NULL);

	walk.sched.each = each;
	walk.sched.arg = arg;
	if (walk.sched_from != UINT64_MAX)
		walk_run(&walk, end < marks->list.len ? list[end].at[STREAM_SWITCH] : SIZE_MAX);
	for (size_t i = 0; end < marks->list.len && i < list[end].after.len; i++)
		each(&list[end].after.data[i], arg);
	sched_free(&walk.sched);
	if (!first)
		recorded_ends_free(&walk.recorded);
}
