// SPDX-License-Identifier: Apache-2.0
#include "analyze/why_walk.h"

#include <errno.h>
#include <string.h>

void why_walk_free(struct why_walk *walk)
{
	why_intervals_free(&walk->intervals);
	map_free(&walk->kernel_hints);
	map_free(&walk->pythons);
	map_free(&walk->peers);
	map_free(&walk->cgroups);
	vec_free(&walk->sums);
}

/* ---- sums ---- */

struct why_step *why_walk_push(struct why_walk *walk, uint32_t thread,
			       enum waffle_thread_state state, uint64_t from, uint64_t to)
{
	struct why_step *step = &walk->path[walk->depth++];
	uint64_t until;

	*step = (struct why_step){
		.from_ts = from,
		.to_ts = to,
		.thread = thread,
		.state = state,
		.syscall = -1,
		.args = MODEL_NONE,
		.span = why_intervals_span(&walk->intervals, thread, from, &until),
		.by = MODEL_NONE,
		.wait = MODEL_NONE,
	};
	return step;
}

static struct why_sum *sum_find(struct why_walk *walk, const struct why_part *part, uint32_t site)
{
	struct why_sum *sum;

	for (size_t i = 0; i < walk->sums.len; i++) {
		sum = &walk->sums.data[i];
		if (sum->part.cause == part->cause && sum->part.thread == part->thread &&
		    sum->part.object == part->object && sum->site == site)
			return sum;
	}
	if (!vec_reserve(&walk->sums, 1))
		return NULL;
	sum = &walk->sums.data[walk->sums.len++];
	*sum = (struct why_sum){.part = *part, .site = site};
	return sum;
}

int why_walk_add(struct why_walk *walk, enum why_cause cause, enum why_grade grade, uint32_t thread,
		 uint32_t object)
{
	const struct why_step *last = &walk->path[walk->depth - 1];
	struct why_part part = {.cause = cause, .grade = grade, .thread = thread, .object = object};
	uint64_t ns = last->to_ts - last->from_ts, until;
	uint32_t site = MODEL_NONE;
	struct why_sum *sum;

	if (object == STRTAB_NONE)
		return -ENOMEM;
	part.span = why_intervals_span(&walk->intervals, thread, last->from_ts, &until);
	if (part.span != MODEL_NONE)
		site = walk->model->spans.data[part.span].site;
	sum = sum_find(walk, &part, site);
	if (!sum)
		return -ENOMEM;
	sum->part.ns += ns;
	sum->part.stretches++;
	sum->grade_ns[grade] += ns;
	if (ns > sum->longest_ns) {
		sum->longest_ns = ns;
		sum->part.span = part.span;
		sum->part.step_count = walk->depth;
		memcpy(sum->chain, walk->path, walk->depth * sizeof(*walk->path));
	}
	return 0;
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

/* The CPU that a thread was brought in on at ts; else where it ran last. */
static uint16_t cpu_waited_for(const struct model *model, uint32_t thread,
			       const struct why_interval *interval)
{
	for (size_t i = why_switch_after(model, interval->to_ts);
	     i < model->switches.len && model->switches.data[i].ts == interval->to_ts; i++)
		if (model->switches.data[i].next == thread)
			return model->switches.data[i].cpu;
	return interval->cpu;
}

/* Switches that are looked at for who was on a CPU before. */
#define LOOK_BACK 4096

/* Who was on the CPU at ts: the last one that was brought in there. */
static uint32_t on_cpu_at(const struct model *model, uint16_t cpu, size_t before)
{
	size_t stop = before > LOOK_BACK ? before - LOOK_BACK : 0;

	while (before-- > stop)
		if (model->switches.data[before].cpu == cpu)
			return model->switches.data[before].next;
	return MODEL_NONE;
}

static int add_contention(struct why_walk *walk, uint32_t thread, uint32_t culprit, uint64_t from,
			  uint64_t to, enum why_grade grade)
{
	int result;

	if (from >= to)
		return 0;
	if (culprit == thread)
		culprit = MODEL_NONE;
	why_walk_push(walk, thread, WAFFLE_THREAD_RUNNABLE, from, to)->by = culprit;
	result = why_walk_add(walk, WHY_CPU_CONTENTION,
			      why_grade_least(grade, culprit == MODEL_NONE ? WHY_GRADE_LIKELY
									   : WHY_GRADE_CERTAIN),
			      culprit, 0);
	walk->depth--;
	return result;
}

/* Who ran on the CPU that the thread waited for, one after the other. */
static int walk_contention(struct why_walk *walk, uint32_t thread,
			   const struct why_interval *interval, uint64_t from, uint64_t to,
			   enum why_grade grade)
{
	const struct model *model = walk->model;
	uint16_t cpu = cpu_waited_for(model, thread, interval);
	size_t i = why_switch_after(model, from);
	uint32_t culprit = MODEL_NONE;
	int result = 0;

	if (cpu == MODEL_CPU_NONE)
		return add_contention(walk, thread, MODEL_NONE, from, to, grade);
	if (from > interval->from_ts || interval->woken || cpu != interval->cpu)
		culprit = on_cpu_at(model, cpu, i);
	else
		culprit = interval->by;
	for (; i < model->switches.len && model->switches.data[i].ts < to && !result; i++) {
		const struct model_switch *sw = &model->switches.data[i];

		if (sw->cpu != cpu || sw->next == culprit)
			continue;
		result = add_contention(walk, thread, culprit, from, sw->ts, grade);
		from = sw->ts;
		culprit = sw->next;
	}
	return result ? result : add_contention(walk, thread, culprit, from, to, grade);
}

/* The time of a runnable interval that was quota, and the cgroup's text. */
static uint64_t throttled_ns(struct why_walk *walk, uint32_t thread,
			     const struct why_interval *interval, uint32_t *object)
{
	const struct model *model = walk->model;
	uint64_t length = interval->to_ts - interval->from_ts, sum = 0;
	size_t low = 0, high = model->quotas.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct model_quota *quota = &model->quotas.data[middle];

		if (quota->thread < thread ||
		    (quota->thread == thread && quota->ts <= interval->from_ts))
			low = middle + 1;
		else
			high = middle;
	}
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

/* The thread was put aside when the quota was used up, and queued again after: throttled first. */
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

static uint64_t *state_sum(struct why_instance *instance, unsigned state)
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
	bool traced = thread < walk->model->threads.len && walk->model->threads.data[thread].traced;

	if (from < to && !walk->depth)
		walk->instance->unknown_ns += to - from;
	return why_walk_leaf(walk, thread, 0, from, to, traced ? WHY_UNKNOWN : WHY_NOT_RECORDED,
			     WHY_GRADE_UNKNOWN, 0);
}

static int walk_interval(struct why_walk *walk, uint32_t thread, size_t index, uint64_t from,
			 uint64_t to, const struct why_link *link)
{
	const struct why_interval *interval =
		&walk->intervals.threads[thread].intervals.data[index];

	if (!walk->depth)
		*state_sum(walk->instance, interval->state) += to - from;
	switch (interval->state) {
	case WAFFLE_THREAD_RUNNING:
		return why_walk_running(walk, thread, interval, from, to, link);
	case WAFFLE_THREAD_RUNNABLE:
		return walk_runnable(walk, thread, interval, from, to, link);
	}
	return why_walk_blocked(walk, thread, index, from, to, link);
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
			result = walk_interval(walk, thread, i, from, until, link);
		from = until;
	}
	return result ? result : walk_unknown(walk, thread, from, to);
}
