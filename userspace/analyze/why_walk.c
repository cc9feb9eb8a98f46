// SPDX-License-Identifier: Apache-2.0
#include "analyze/why_walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void why_walk_free(struct why_walk *walk)
{
	why_gpu_free(&walk->gpu);
	why_intervals_free(&walk->intervals);
	windows_free(&walk->losses);
	map_free(&walk->kernel_hints);
	map_free(&walk->kernel_symbols);
	map_free(&walk->stack_at);
	vec_free(&walk->stacks);
	map_free(&walk->pythons);
	map_free(&walk->told);
	map_free(&walk->goes);
	map_free(&walk->peers);
	map_free(&walk->cgroups);
	free(walk->by_pid);
	vec_free(&walk->sums);
	vec_free(&walk->chains);
}

/* ---- sums ---- */

/* Sets the times of the interval that a step is a part of. */
static void set_switches(struct why_step *step, const struct why_interval *interval)
{
	uint64_t end = interval->open ? 0 : interval->to_ts;

	switch (interval->state) {
	case WAFFLE_THREAD_RUNNING:
		step->in_ts = interval->from_ts;
		step->out_ts = end;
		step->cpu = interval->cpu;
		break;
	case WAFFLE_THREAD_RUNNABLE:
		*(interval->woken ? &step->wake_ts : &step->out_ts) = interval->from_ts;
		step->in_ts = end;
		break;
	case WAFFLE_THREAD_BLOCKED:
		step->out_ts = interval->from_ts;
		step->wake_ts = end;
		break;
	}
}

struct why_step *why_walk_push(struct why_walk *walk, uint32_t thread,
			       enum waffle_thread_state state, uint64_t from, uint64_t to)
{
	struct why_step *step = &walk->path[walk->depth++];

	*step = (struct why_step){
		.from_ts = from,
		.to_ts = to,
		.thread = thread,
		.state = state,
		.syscall = -1,
		.args = MODEL_NONE,
		.span = why_intervals_span(&walk->intervals, thread, from, &walk->span_until),
		.by = MODEL_NONE,
		.wait = MODEL_NONE,
		.cpu = MODEL_CPU_NONE,
		.from_cpu = MODEL_CPU_NONE,
		.preemptor = MODEL_NONE,
		.behind = MODEL_NONE,
		.call_thread = MODEL_NONE,
		.call_span = MODEL_NONE,
	};
	if (walk->interval && state && !walk->no_chains)
		set_switches(step, walk->interval);
	return step;
}

static bool sum_is(const struct why_sum *sum, const struct why_part *part, uint32_t site)
{
	return sum->part.cause == part->cause && sum->part.thread == part->thread &&
	       sum->part.object == part->object && sum->site == site;
}

/* Fibonacci hashing: Knuth, The Art of Computer Programming, 6.4. */
static uint32_t sum_hash(const struct why_part *part, uint32_t site)
{
	uint64_t hash = part->cause + ((uint64_t)part->thread << 5) +
			((uint64_t)part->object << 20) + ((uint64_t)site << 40);

	return (uint32_t)(hash * 0x9e3779b97f4a7c15ull >> (64 - WHY_SUM_BITS));
}

/* Returns an existing sum. Otherwise MODEL_NONE, and *slot is the free slot for it; NULL: no slot
 * is free nearby. */
static uint32_t sum_look_up(struct why_walk *walk, const struct why_part *part, uint32_t site,
			    struct why_sum_slot **slot)
{
	uint32_t hash = sum_hash(part, site);

	for (uint32_t i = 0; i < WHY_SUM_PROBES; i++) {
		*slot = &walk->slots[(hash + i) % (1u << WHY_SUM_BITS)];
		if ((*slot)->instance != walk->instances)
			return MODEL_NONE;
		if (sum_is(&walk->sums.data[(*slot)->sum], part, site))
			return (*slot)->sum;
	}
	*slot = NULL;
	for (uint32_t i = 0; i < walk->sums.len; i++)
		if (sum_is(&walk->sums.data[i], part, site))
			return i;
	return MODEL_NONE;
}

static struct why_sum *sum_find(struct why_walk *walk, const struct why_part *part, uint32_t site)
{
	struct why_sum_slot *slot;
	uint32_t found = sum_look_up(walk, part, site, &slot);

	if (found != MODEL_NONE)
		return &walk->sums.data[found];
	walk->chains.len = walk->sums.len;
	if (!vec_reserve(&walk->sums, 1) || (!walk->no_chains && !vec_reserve(&walk->chains, 1)))
		return NULL;
	found = (uint32_t)walk->sums.len++;
	if (slot)
		*slot = (struct why_sum_slot){walk->instances, found};
	walk->sums.data[found] = (struct why_sum){.part = *part, .site = site, .chain = found};
	return &walk->sums.data[found];
}

/* Whether the chain goes through a Go program. Records belong to threads and spans to goroutines,
 * so such a chain is not certain. */
static bool is_of_goroutines(const struct why_walk *walk)
{
	for (uint32_t i = 0; walk->has_go && i < walk->depth; i++)
		if (why_is_go(walk, walk->path[i].thread))
			return true;
	return false;
}

int why_walk_add_in(struct why_walk *walk, enum why_cause cause, enum why_grade grade,
		    uint32_t thread, uint32_t span, uint32_t object)
{
	const struct why_step *last = &walk->path[walk->depth - 1];
	struct why_part part = {.cause = cause,
				.grade = grade,
				.thread = thread,
				.threads = thread != MODEL_NONE,
				.span = span,
				.object = object};
	uint64_t ns = last->to_ts - last->from_ts;
	uint32_t site = MODEL_NONE;
	struct why_sum *sum;

	if (object == STRTAB_NONE)
		return -ENOMEM;
	if (part.span != MODEL_NONE) {
		site = walk->model->spans.data[part.span].site;
		if (why_intervals_left(walk->model, part.span))
			grade = why_grade_least(grade, WHY_GRADE_LIKELY);
	}
	if (is_of_goroutines(walk))
		grade = why_grade_least(grade, WHY_GRADE_LIKELY);
	sum = sum_find(walk, &part, site);
	if (!sum)
		return -ENOMEM;
	sum->part.ns += ns;
	sum->part.stretches++;
	sum->grade_ns[grade] += ns;
	if (ns > sum->longest_ns) {
		sum->longest_ns = ns;
		sum->part.span = part.span;
		if (walk->no_chains)
			return 0;
		sum->part.step_count = walk->depth;
		memcpy(walk->chains.data[sum->chain].steps, walk->path,
		       walk->depth * sizeof(*walk->path));
	}
	return 0;
}

int why_walk_add(struct why_walk *walk, enum why_cause cause, enum why_grade grade, uint32_t thread,
		 uint32_t object)
{
	const struct why_step *last = &walk->path[walk->depth - 1];
	uint64_t until;
	uint32_t span = thread == last->thread ? last->span
					       : why_intervals_span(&walk->intervals, thread,
								    last->from_ts, &until);

	return why_walk_add_in(walk, cause, grade, thread, span, object);
}

int why_walk_leaf(struct why_walk *walk, uint32_t thread, enum waffle_thread_state state,
		  uint64_t from, uint64_t to, enum why_cause cause, enum why_grade grade,
		  uint32_t object)
{
	int result;

	if (from >= to)
		return 0;
	why_walk_push(walk, thread, state, from, to)->object = object;
	result = why_walk_add(walk, cause, grade, thread, object);
	walk->depth--;
	return result;
}

/* ---- runnable ---- */

size_t why_switch_after(const struct model *model, uint64_t ts)
{
	size_t low = 0, high = model->switches.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (model->switches.data[middle].ts < ts)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The same, searched from the last result: most look-ups are close in time. */
static size_t switch_near(struct why_walk *walk, uint64_t ts)
{
	const struct model_switch *switches = walk->model->switches.data;
	size_t count = walk->model->switches.len, low = 0, high, step = 1;

	if (walk->switch_found < count && switches[walk->switch_found].ts < ts) {
		low = walk->switch_found + 1;
		for (; low + step <= count && switches[low + step - 1].ts < ts; step *= 2)
			low += step;
		high = low + step < count ? low + step : count;
	} else {
		high = walk->switch_found < count ? walk->switch_found : count;
		for (; step <= high && switches[high - step].ts >= ts; step *= 2)
			high -= step;
		low = step < high ? high - step : 0;
	}
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (switches[middle].ts < ts)
			low = middle + 1;
		else
			high = middle;
	}
	walk->switch_found = low;
	return low;
}

const struct model_switch *why_switch_in(const struct model *model, size_t first, uint32_t thread,
					 uint64_t ts)
{
	for (size_t i = first; i < model->switches.len && model->switches.data[i].ts == ts; i++)
		if (model->switches.data[i].next == thread)
			return &model->switches.data[i];
	return NULL;
}

/* Limit of the switches to search for the previous thread on a CPU. */
#define LOOK_BACK 4096

/* The thread on the CPU at ts, before the switch with index `before`: the last one switched in
 * there, unless records were dropped since. */
static uint32_t on_cpu_at(const struct why_walk *walk, uint16_t cpu, uint64_t ts, size_t before,
			  uint32_t *behind)
{
	const struct model *model = walk->model;
	size_t stop = before > LOOK_BACK ? before - LOOK_BACK : 0;

	while (before-- > stop) {
		const struct model_switch *sw = &model->switches.data[before];

		if (sw->cpu != cpu)
			continue;
		if (windows_touch(&walk->losses, sw->ts, ts))
			break;
		*behind = (uint32_t)before;
		return sw->next;
	}
	return MODEL_NONE;
}

/* A stretch of waiting for a CPU, and the thread that had it since switch `behind`. */
struct stretch {
	uint32_t thread, culprit, behind;
	uint16_t cpu;
	const struct why_interval *interval;
	uint64_t from, to;
	enum why_grade grade;
	bool idle; /* the CPU was idle, by the switch that brought the thread in */
};

/* The CPU was idle and woke up late, or the thread was moved there late. */
#define IDLE_TEXT "the CPU was idle: woken late"

static int add_contention(struct why_walk *walk, const struct stretch *stretch)
{
	const struct why_interval *interval = stretch->interval;
	uint32_t culprit = stretch->culprit == stretch->thread ? MODEL_NONE : stretch->culprit;
	uint32_t object = 0;
	struct why_step *step;
	int result;

	if (stretch->from >= stretch->to)
		return 0;
	if (stretch->idle)
		object = strtab_add(walk->why->texts, IDLE_TEXT, strlen(IDLE_TEXT));
	step = why_walk_push(walk, stretch->thread, WAFFLE_THREAD_RUNNABLE, stretch->from,
			     stretch->to);
	step->by = culprit;
	step->behind = culprit == MODEL_NONE ? MODEL_NONE : stretch->behind;
	step->cpu = stretch->cpu;
	step->object = object;
	if (interval->cpu != stretch->cpu)
		step->from_cpu = interval->cpu;
	if (!interval->woken && stretch->from == interval->from_ts)
		step->preemptor = interval->by;
	if (model_is_own(walk->model, culprit))
		object = walk->own_text;
	result = why_walk_add(walk, WHY_CPU_CONTENTION,
			      why_grade_least(stretch->grade, culprit == MODEL_NONE
								      ? WHY_GRADE_LIKELY
								      : WHY_GRADE_CERTAIN),
			      culprit, object);
	walk->depth--;
	return result;
}

/* The switch that brings the thread in shows who had the CPU until then. If that is not the
 * culprit, it becomes the culprit: some switches in between were not recorded. */
static void set_last(struct stretch *stretch, const struct model_switch *in)
{
	stretch->idle = in->prev == MODEL_NONE;
	if (stretch->culprit == in->prev)
		return;
	stretch->culprit = in->prev;
	stretch->behind = MODEL_NONE;
	stretch->grade = why_grade_least(stretch->grade, WHY_GRADE_LIKELY);
}

/* Adds the threads that ran on the awaited CPU, one after the other. */
static int walk_contention(struct why_walk *walk, uint32_t thread,
			   const struct why_interval *interval, uint64_t from, uint64_t to,
			   enum why_grade grade)
{
	const struct model *model = walk->model;
	const struct model_switch *in =
		why_switch_in(model, switch_near(walk, interval->to_ts), thread, interval->to_ts);
	struct stretch stretch = {.thread = thread,
				  .culprit = MODEL_NONE,
				  .behind = MODEL_NONE,
				  .cpu = in ? in->cpu : interval->cpu,
				  .interval = interval,
				  .from = from,
				  .to = to,
				  .grade = grade};
	size_t i = switch_near(walk, from);
	int result = 0;

	if (stretch.cpu == MODEL_CPU_NONE)
		return add_contention(walk, &stretch);
	if (from > interval->from_ts || interval->woken || stretch.cpu != interval->cpu)
		stretch.culprit = on_cpu_at(walk, stretch.cpu, from, i, &stretch.behind);
	else
		stretch.culprit = interval->by;
	for (; i < model->switches.len && model->switches.data[i].ts < to && !result; i++) {
		const struct model_switch *sw = &model->switches.data[i];

		if (sw->cpu != stretch.cpu || sw->next == stretch.culprit)
			continue;
		stretch.to = sw->ts;
		stretch.idle = stretch.culprit == MODEL_NONE && sw->prev == MODEL_NONE;
		result = add_contention(walk, &stretch);
		stretch.from = sw->ts;
		stretch.culprit = sw->next;
		stretch.behind = (uint32_t)i;
	}
	stretch.to = to;
	stretch.idle = false;
	if (in && to == interval->to_ts)
		set_last(&stretch, in);
	return result ? result : add_contention(walk, &stretch);
}

/* The throttled time of a runnable interval, and the text of its cgroup. */
static uint64_t throttled_ns(struct why_walk *walk, uint32_t thread,
			     const struct why_interval *interval, uint32_t *object)
{
	const struct model *model = walk->model;
	uint64_t length = interval->to_ts - interval->from_ts, sum = 0;
	size_t low = why_quota_after(model, thread, interval->from_ts);

	*object = 0;
	for (; low < model->quotas.len; low++) {
		const struct model_quota *quota = &model->quotas.data[low];

		if (quota->thread != thread || quota->ts > interval->to_ts)
			break;
		sum += quota->throttled_ns;
		*object = why_cgroup(walk, quota->cgroup);
	}
	return sum < length ? sum : length;
}

/* The kernel dequeues a throttled thread and queues it again later. So the throttled time comes
 * first. */
static int walk_runnable(struct why_walk *walk, uint32_t thread,
			 const struct why_interval *interval, uint64_t from, uint64_t to,
			 const struct why_link *link)
{
	enum why_grade grade = link ? link->grade : WHY_GRADE_CERTAIN;
	uint32_t object;
	uint64_t until = interval->from_ts + throttled_ns(walk, thread, interval, &object);
	int result = 0;

	if (until > to)
		until = to;
	if (until > from) {
		result = why_walk_leaf(walk, thread, WAFFLE_THREAD_RUNNABLE, from, until,
				       WHY_CPU_QUOTA, grade, object);
		from = until;
	}
	return result || from >= to ? result
				    : walk_contention(walk, thread, interval, from, to, grade);
}

/* ---- all of it ---- */

uint64_t *why_walk_state(struct why_instance *instance, unsigned state)
{
	switch (state) {
	case WAFFLE_THREAD_RUNNING:
		return &instance->running_ns;
	case WAFFLE_THREAD_RUNNABLE:
		return &instance->runnable_ns;
	case WAFFLE_THREAD_BLOCKED:
		return &instance->blocked_ns;
	}
	return &instance->unknown_ns;
}

static int walk_unknown(struct why_walk *walk, uint32_t thread, uint64_t from, uint64_t to)
{
	bool traced = model_is_traced(walk->model, thread);

	if (from < to && !walk->depth)
		walk->instance->unknown_ns += to - from;
	walk->interval = NULL;
	return why_walk_leaf(walk, thread, 0, from, to, traced ? WHY_UNKNOWN : WHY_NOT_RECORDED,
			     WHY_GRADE_UNKNOWN, 0);
}

static int walk_interval(struct why_walk *walk, uint32_t thread, size_t index, uint64_t from,
			 uint64_t to, const struct why_link *link, const struct why_await *await)
{
	const struct why_interval *interval =
		&walk->intervals.threads[thread].intervals.data[index];

	walk->interval = interval;
	if (!walk->depth)
		*why_walk_state(walk->instance, interval->state) += to - from;
	switch (interval->state) {
	case WAFFLE_THREAD_RUNNING:
		return why_walk_running(walk, thread, interval, from, to, link, await);
	case WAFFLE_THREAD_RUNNABLE:
		return walk_runnable(walk, thread, interval, from, to, link);
	}
	return why_walk_blocked(walk, thread, index, from, to, link, await);
}

/* Splits a stretch of an interval by what the enclosing GPU calls wait for. */
static int walk_stretch(struct why_walk *walk, uint32_t thread, size_t index, uint64_t from,
			uint64_t to, const struct why_link *link)
{
	int result = 0;

	while (from < to && !result) {
		struct why_await await;
		uint64_t until = why_gpu_cut(walk, thread, from, to, &await);

		if (!until)
			return -ENOMEM;
		result = walk_interval(walk, thread, index, from, until, link, &await);
		from = until;
	}
	return result;
}

int why_walk_time(struct why_walk *walk, uint32_t thread, uint64_t from, uint64_t to,
		  const struct why_link *link)
{
	int result = 0;

	for (size_t i = why_intervals_after(&walk->intervals, thread, from);
	     i < walk->intervals.threads[thread].intervals.len && from < to && !result; i++) {
		const struct why_interval *interval =
			&walk->intervals.threads[thread].intervals.data[i];
		uint64_t until = interval->to_ts < to ? interval->to_ts : to;

		if (interval->from_ts >= to)
			break;
		if (interval->from_ts > from) {
			result = walk_unknown(walk, thread, from, interval->from_ts);
			from = interval->from_ts;
		}
		if (!result && until > from)
			result = walk_stretch(walk, thread, i, from, until, link);
		from = until;
	}
	return result ? result : walk_unknown(walk, thread, from, to);
}
