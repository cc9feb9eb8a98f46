// SPDX-License-Identifier: Apache-2.0
/*
 * Follows a span back from the thread that ended it: who woke that thread when it had nothing to
 * do, who woke that one, and so on until the thread that began the span. Spans of other threads
 * whose parent is this span (the program carried its context there) are part of the way.
 */
#include "analyze/why/walk/why_way_internal.h"

#include "analyze/why/lookup/why_evidence.h"
#include "analyze/why/why_walk_types.h"

/* Limit of the intervals to search for one span; beyond it the way is unknown. Between two waits a
 * thread is mostly runnable once, and runs once. */
#define WAITS_MAX (3 * 512)
/* Limit of the spans to search for those with this span as their parent. */
#define SPANS_MAX 1024
#define CHILDREN_MAX 64
/* Limit of the parents of a span to look at; a job with more spans around it is not found. */
#define PARENTS_MAX 64
/* A span that is queued waits for jobs that fill this part of the time, in percent. */
#define BUSY_PERCENT 90

/* A thread that has finished the span's job ends the span within this time. */
#define FINISH_NS 1000000u

struct finder {
	const struct why_walk *walk;
	const struct why_instance *instance;
	uint32_t waits; /* intervals that may still be searched */
	uint32_t children[CHILDREN_MAX], child_count;
	bool has_job; /* the last leg is the span's own job on the present thread */
	struct why_way *way;
};

static const struct model_span *span_at(const struct finder *finder, uint32_t span)
{
	return &finder->walk->model->spans.data[span];
}

static bool add_leg(struct finder *finder, uint32_t thread, uint64_t from, uint64_t to)
{
	struct why_way *way = finder->way;

	if (from >= to)
		return true;
	if (way->count == WHY_LEGS)
		return false;
	way->legs[way->count++] = (struct why_leg){thread, WHY_GRADE_LIKELY, false, 0, from, to};
	return true;
}

/* ---- jobs ---- */

/* The outermost span of a thread at ts that begins and ends within a time; MODEL_NONE: none. */
static uint32_t job_at(const struct finder *finder, uint32_t thread, uint64_t ts, uint64_t after_ts,
		       uint64_t before_ts)
{
	uint64_t ignored;
	uint32_t found = MODEL_NONE;
	uint32_t span = why_intervals_span(&finder->walk->intervals, thread, ts, &ignored);

	for (unsigned i = 0;
	     i < PARENTS_MAX && span != MODEL_NONE && span != finder->instance->span; i++) {
		const struct model_span *of = span_at(finder, span);

		finder->walk->why->searched++;
		if (of->thread != thread)
			break;
		if (of->start_ts > after_ts && of->end_ts < before_ts)
			found = span;
		span = of->parent;
	}
	return found;
}

/* The span's own job: the one in which the thread is at until_ts or, if it is in none, the one that
 * it has just finished. Jobs that begin before the span are others'. */
static uint32_t last_job(const struct finder *finder, uint32_t thread, uint64_t until_ts)
{
	uint64_t from_ts = finder->instance->from_ts, at = until_ts - 1, since, ignored;
	const struct why_intervals *intervals = &finder->walk->intervals;

	if (why_intervals_span(intervals, thread, at, &ignored) == MODEL_NONE) {
		since = why_intervals_span_since(intervals, thread, at);
		if (since <= from_ts || until_ts - since > FINISH_NS)
			return MODEL_NONE;
		at = since - 1;
	}
	return job_at(finder, thread, at, from_ts, UINT64_MAX);
}

/* Returns whether a wait lies in a job: then the thread did not wait for its next job. A span that
 * is open all the time is not a job. */
static bool is_in_job(const struct finder *finder, uint32_t thread, const struct why_interval *wait,
		      uint64_t until_ts)
{
	uint64_t ignored;
	uint32_t span =
		why_intervals_span(&finder->walk->intervals, thread, wait->from_ts, &ignored);

	for (unsigned i = 0;
	     i < PARENTS_MAX && span != MODEL_NONE && span != finder->instance->span;
	     i++, span = span_at(finder, span)->parent) {
		const struct model_span *of = span_at(finder, span);

		if (of->thread != thread)
			break;
		if (of->end_ts > wait->to_ts &&
		    (of->start_ts > finder->instance->from_ts || of->end_ts < until_ts))
			return true;
	}
	return false;
}

/* Returns whether a thread may wait for its next job in this way. For a lock or a device, it does
 * not. */
static bool is_idle(const struct finder *finder, uint32_t thread, const struct why_interval *wait)
{
	const struct model_wait *record;
	struct wait_facts facts = why_facts_of(finder->walk, thread, wait, &record);

	if (facts.task_state & WAFFLE_TASK_UNINTERRUPTIBLE)
		return false;
	switch (wait_kind_of(&facts)) {
	case WAIT_FUTEX:
	case WAIT_PIPE:
	case WAIT_SOCKET:
	case WAIT_POLL:
	case WAIT_SIGNAL:
	case WAIT_SLEEP:
	case WAIT_TIMER:
	case WAIT_OTHER:
		return true;
	default:
		return false;
	}
}

/* ---- who had it before ---- */

/* The last wait of a thread that ends by until_ts, and at which it may have received the span.
 * `index`: the intervals before it are searched. */
static const struct why_interval *idle_before(struct finder *finder, uint32_t thread,
					      uint64_t until_ts, size_t *index,
					      struct why_waker *waker)
{
	const struct why_walk *walk = finder->walk;
	const struct why_thread *of = &walk->intervals.threads[thread];
	uint64_t from_ts = finder->instance->from_ts;

	while (*index && of->intervals.data[--*index].to_ts > from_ts) {
		const struct why_interval *wait = &of->intervals.data[*index];

		walk->why->searched++;
		if (!finder->waits)
			return NULL;
		finder->waits--;
		if (wait->state != WAFFLE_THREAD_BLOCKED || wait->to_ts > until_ts)
			continue;
		*waker = why_waker_of(walk, thread, *index);
		/* Its own thread had it until then, whatever the other one waited for. */
		if (waker->thread == finder->instance->thread && !waker->interrupt)
			return wait;
		if (!is_in_job(finder, thread, wait, until_ts) && is_idle(finder, thread, wait))
			return wait;
	}
	return NULL;
}

static size_t intervals_until(const struct finder *finder, uint32_t thread, uint64_t ts)
{
	return ts ? why_intervals_after(&finder->walk->intervals, thread, ts - 1) +
			       (why_intervals_after(&finder->walk->intervals, thread, ts - 1) <
				finder->walk->intervals.threads[thread].intervals.len)
		  : 0;
}

static bool may_have_it(const struct finder *finder, uint32_t thread, const struct why_waker *waker)
{
	return !waker->interrupt && waker->thread != thread &&
	       model_is_traced(finder->walk->model, waker->thread);
}

#define DEPTH_MAX 8

/* Follows wake-ups back to the thread that began the span, and adds the legs. False: they do not
 * lead there. */
static bool reach(struct finder *finder, uint32_t thread, uint64_t until_ts, unsigned depth)
{
	size_t index = intervals_until(finder, thread, until_ts);
	uint32_t count = finder->way->count;
	const struct why_interval *wait;
	struct why_waker waker;

	if (thread == finder->instance->thread)
		return add_leg(finder, thread, finder->instance->from_ts, until_ts);
	if (depth == DEPTH_MAX)
		return false;
	while ((wait = idle_before(finder, thread, until_ts, &index, &waker))) {
		if (may_have_it(finder, thread, &waker) &&
		    add_leg(finder, thread, wait->to_ts, until_ts) &&
		    reach(finder, waker.thread, wait->to_ts, depth + 1))
			return true;
		finder->way->count = count;
	}
	return false;
}

/* ---- without wake-ups of its own thread ---- */

static void find_children(struct finder *finder)
{
	const struct model *model = finder->walk->model;
	uint32_t own = finder->instance->span;

	for (uint32_t i = own + 1; i < model->spans.len && i - own <= SPANS_MAX; i++) {
		const struct model_span *span = &model->spans.data[i];

		if (span->start_ts >= finder->instance->to_ts ||
		    finder->child_count == CHILDREN_MAX)
			break;
		finder->walk->why->searched++;
		if (span->parent == own && span->thread != finder->instance->thread &&
		    span->thread < model->threads.len)
			finder->children[finder->child_count++] = i;
	}
}

/* The last child on another thread that begins before ts; MODEL_NONE: none. */
static uint32_t child_before(const struct finder *finder, uint64_t ts)
{
	for (uint32_t i = finder->child_count; i--;)
		if (span_at(finder, finder->children[i])->start_ts < ts)
			return finder->children[i];
	return MODEL_NONE;
}

/* The other jobs of a thread in a time: their number, and how long they took. Stops behind `most`
 * of them. */
static uint32_t jobs_in(const struct finder *finder, uint32_t thread, uint64_t from, uint64_t to,
			uint32_t most, uint64_t *busy_ns)
{
	uint64_t at = from, until;
	uint32_t count = 0, last = MODEL_NONE;

	*busy_ns = 0;
	for (unsigned i = 0; at < to && i < SPANS_MAX && count <= most; i++, at = until) {
		uint32_t span = why_intervals_span(&finder->walk->intervals, thread, at, &until);
		uint32_t job = job_at(finder, thread, at, 0, finder->instance->to_ts);

		finder->walk->why->searched++;
		if (until > to)
			until = to;
		if (span == MODEL_NONE || job == MODEL_NONE)
			continue;
		*busy_ns += until - at;
		count += job != last;
		last = job;
	}
	return count;
}

/* When the span's own thread first waited: it may have worked for the span until then. */
static uint64_t first_wait(const struct finder *finder, uint64_t until_ts)
{
	const struct why_instance *instance = finder->instance;
	const struct why_thread *of = &finder->walk->intervals.threads[instance->thread];
	size_t i =
		why_intervals_after(&finder->walk->intervals, instance->thread, instance->from_ts);

	for (; i < of->intervals.len && of->intervals.data[i].from_ts < until_ts; i++) {
		finder->walk->why->searched++;
		if (of->intervals.data[i].state == WAFFLE_THREAD_BLOCKED)
			return of->intervals.data[i].from_ts > instance->from_ts
				       ? of->intervals.data[i].from_ts
				       : instance->from_ts;
	}
	return until_ts;
}

/* Returns whether the span's own thread waits for the other one at the end. Then the other one has
 * the span. */
static bool is_awaited(const struct finder *finder, uint32_t thread, uint64_t until_ts)
{
	const struct why_walk *walk = finder->walk;
	uint32_t own = finder->instance->thread;
	size_t i = why_intervals_after(&walk->intervals, own, until_ts - 1);
	struct why_waker waker;

	if (i >= walk->intervals.threads[own].intervals.len ||
	    walk->intervals.threads[own].intervals.data[i].from_ts >= until_ts ||
	    walk->intervals.threads[own].intervals.data[i].state != WAFFLE_THREAD_BLOCKED)
		return false;
	waker = why_waker_of(walk, own, i);
	return waker.thread == thread && !waker.interrupt;
}

/* The thread had the span at until_ts, and no record shows since when. If it was busy with other
 * jobs before, the span waited for these. */
static void add_rest(struct finder *finder, uint32_t thread, uint64_t until_ts)
{
	uint64_t own_until = first_wait(finder, until_ts), since = own_until, busy_ns;
	size_t index = intervals_until(finder, thread, until_ts);
	struct why_way *way = finder->way;
	struct why_waker waker;
	const struct why_interval *wait = idle_before(finder, thread, until_ts, &index, &waker);
	struct why_leg *leg;

	if (wait && wait->to_ts > since)
		since = wait->to_ts;
	if (since < until_ts) {
		leg = &way->legs[way->count++];
		*leg = (struct why_leg){thread, WHY_GRADE_UNKNOWN, false, 0, since, until_ts};
		leg->others = jobs_in(finder, thread, since, until_ts, UINT32_MAX - 1, &busy_ns);
		leg->queued = busy_ns >= (until_ts - since) / 100 * BUSY_PERCENT;
		if (leg->queued || is_awaited(finder, thread, until_ts))
			leg->grade = WHY_GRADE_LIKELY;
	}
	if (own_until < since)
		way->legs[way->count++] =
			(struct why_leg){MODEL_NONE, WHY_GRADE_UNKNOWN, false, 0, own_until, since};
	if (finder->instance->from_ts < own_until)
		way->legs[way->count++] =
			(struct why_leg){finder->instance->thread,  WHY_GRADE_LIKELY, false, 0,
					 finder->instance->from_ts, own_until};
}

/* Returns whether a thread has handled at most one job in a time. */
static bool has_one_job(const struct finder *finder, uint32_t thread, uint64_t from, uint64_t to)
{
	uint64_t ignored;

	return jobs_in(finder, thread, from, to, 1, &ignored) <= 1;
}

/* One leg back; false: no more is known. */
static bool go_back(struct finder *finder, uint32_t *thread, uint64_t *until_ts)
{
	size_t index = intervals_until(finder, *thread, *until_ts);
	uint32_t child = child_before(finder, *until_ts), job;
	const struct why_interval *wait;
	struct why_waker waker;

	if (child != MODEL_NONE && span_at(finder, child)->thread == *thread) {
		if (!add_leg(finder, *thread, span_at(finder, child)->start_ts, *until_ts))
			return false;
		*until_ts = span_at(finder, child)->start_ts;
		finder->has_job = true;
		return true;
	}
	wait = idle_before(finder, *thread, *until_ts, &index, &waker);
	if (wait && may_have_it(finder, *thread, &waker) &&
	    has_one_job(finder, *thread, wait->to_ts, *until_ts)) {
		if (!add_leg(finder, *thread, wait->to_ts, *until_ts))
			return false;
		*thread = waker.thread;
		*until_ts = wait->to_ts;
		finder->has_job = false;
		return true;
	}
	if (child != MODEL_NONE) {
		uint64_t end = span_at(finder, child)->end_ts;

		end = end < *until_ts ? end : *until_ts;
		if (!add_leg(finder, *thread, end, *until_ts))
			return false;
		*thread = span_at(finder, child)->thread;
		*until_ts = end;
		finder->has_job = false;
		return true;
	}
	job = finder->has_job ? MODEL_NONE : last_job(finder, *thread, *until_ts);
	if (job == MODEL_NONE ||
	    !add_leg(finder, *thread, span_at(finder, job)->start_ts, *until_ts))
		return false;
	*until_ts = span_at(finder, job)->start_ts;
	finder->has_job = true;
	return true;
}

void why_way_find(const struct why_walk *walk, const struct why_instance *instance,
		  struct why_way *way)
{
	struct finder finder = {.walk = walk, .instance = instance, .waits = WAITS_MAX, .way = way};
	uint32_t thread = instance->ended_by;
	uint64_t until_ts = instance->to_ts;

	way->count = 0;
	if (reach(&finder, thread, until_ts, 0))
		return;
	way->count = 0;
	finder.waits = WAITS_MAX;
	find_children(&finder);
	while (thread != instance->thread && until_ts > instance->from_ts &&
	       go_back(&finder, &thread, &until_ts))
		;
	if (until_ts <= instance->from_ts)
		return;
	/* Behind WHY_LEGS there is room for the rest, so that there is no gap. */
	if (thread == instance->thread)
		way->legs[way->count++] = (struct why_leg){thread, WHY_GRADE_LIKELY,  false,
							   0,      instance->from_ts, until_ts};
	else
		add_rest(&finder, thread, until_ts);
}
