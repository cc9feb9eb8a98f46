// SPDX-License-Identifier: Apache-2.0
/* Why a runnable thread did not run: who had its CPU, or that its cgroup's time was used up. */
#include "analyze/why_internal.h"

/* Nothing is known of who had a CPU; MODEL_NONE is the idle thread. */
#define OCCUPANT_UNKNOWN (MODEL_NONE - 1)

/* The kernel tells of a quota a moment after the switch. */
#define QUOTA_LATE_NS 1000000

/* ---- quota ---- */

uint64_t why_throttled_ns(const struct why_data *data, uint32_t thread,
			  const struct why_interval *interval, const struct model_quota **quota)
{
	const struct model *model = data->model;
	size_t low = 0, high = model->quotas.len;
	uint64_t length = interval->to_ts - interval->from_ts;
	uint64_t late = interval->to_ts + QUOTA_LATE_NS;

	*quota = NULL;
	/* The first one of the thread after the interval's begin. */
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct model_quota *at = &model->quotas.data[middle];

		if (at->thread < thread || (at->thread == thread && at->ts <= interval->from_ts))
			low = middle + 1;
		else
			high = middle;
	}
	if (low == model->quotas.len || model->quotas.data[low].thread != thread ||
	    model->quotas.data[low].ts > late)
		return 0;
	*quota = &model->quotas.data[low];
	return (*quota)->throttled_ns < length ? (*quota)->throttled_ns : length;
}

/* ---- who had the CPU ---- */

static uint16_t cpu_waited_for(const struct why_data *data, uint32_t thread, size_t index)
{
	const struct why_interval *interval = why_interval_get(data, thread, index);
	const struct why_interval *next = why_interval_get(data, thread, index + 1);

	/* A preempted thread waits where it was, until it is moved; one that was woken waits where
	 * it was put, which only shows when it runs. */
	if (interval->flags & WHY_INTERVAL_WOKEN && next && next->from_ts == interval->to_ts &&
	    next->state == WAFFLE_THREAD_RUNNING)
		return next->cpu;
	return interval->cpu;
}

static const struct model_switch *switch_at(const struct why_data *data, uint16_t cpu, size_t at)
{
	if (cpu >= data->cpu_count || at >= data->cpus[cpu].switches.len)
		return NULL;
	return &data->model->switches.data[data->cpus[cpu].switches.data[at]];
}

/*
 * One came in with the switch before, another left with the one behind: there were switches between
 * them that concern no traced thread. Half of the time for each, or all for the one who is not
 * idle.
 */
static void split(struct why_occupant *occupant, uint32_t first, uint32_t last, uint64_t begin_ts)
{
	uint64_t end_ts = occupant->to_ts;
	uint64_t middle_ts = begin_ts + (end_ts - begin_ts) / 2;

	occupant->certain = false;
	occupant->thread = last;
	if (last == MODEL_NONE || last == OCCUPANT_UNKNOWN) {
		occupant->thread = first;
	} else if (first != MODEL_NONE && first != OCCUPANT_UNKNOWN &&
		   occupant->from_ts < middle_ts) {
		occupant->thread = first;
		occupant->to_ts = middle_ts;
	}
}

struct why_occupant why_occupant_at(const struct why_data *data, uint32_t thread, size_t index,
				    uint64_t ts, uint64_t to_ts)
{
	const struct why_interval *interval = why_interval_get(data, thread, index);
	uint16_t cpu = cpu_waited_for(data, thread, index);
	size_t at = why_switch_after(data, cpu, ts + 1);
	const struct model_switch *before = at ? switch_at(data, cpu, at - 1) : NULL;
	const struct model_switch *behind = switch_at(data, cpu, at);
	uint32_t first = before ? before->next : OCCUPANT_UNKNOWN;
	uint32_t last = behind ? behind->prev : OCCUPANT_UNKNOWN;
	uint64_t begin_ts =
		before && before->ts > interval->from_ts ? before->ts : interval->from_ts;
	struct why_occupant occupant = {ts, to_ts, first, true};

	if (behind && behind->ts < to_ts)
		occupant.to_ts = behind->ts;
	if (first == thread)
		first = OCCUPANT_UNKNOWN;
	if (last == thread)
		last = OCCUPANT_UNKNOWN;
	if (first != last || first == OCCUPANT_UNKNOWN)
		split(&occupant, first, last, begin_ts);
	if (occupant.thread == OCCUPANT_UNKNOWN)
		occupant.thread = interval->flags & WHY_INTERVAL_WOKEN ? MODEL_NONE : interval->by;
	/* Whoever came in and is not seen to leave is still there. */
	if (!behind && occupant.thread == first)
		occupant.certain = true;
	/* An idle CPU takes its time to wake up, but that is not seen. */
	if (occupant.thread == MODEL_NONE)
		occupant.certain = false;
	return occupant;
}
