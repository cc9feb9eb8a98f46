// SPDX-License-Identifier: Apache-2.0
/*
 * Threads that poll: they sleep, check something for a moment, and sleep again, in the same place.
 * What they check is not recorded, since a system call that does not block leaves no record. Only a
 * sample may have hit it.
 */
#include "analyze/why/cause/why_blocked_internal.h"

#include <string.h>

#include "analyze/why/lookup/why_switches.h"
#include "analyze/why/why_walk_types.h"
#include "util/memory.h"
#include "util/search.h"

/* A thread that runs for longer than this, or for more than this part of its sleep, does work. */
#define CHECK_MAX_NS 500000
#define CHECK_PARTS 10
/* Limit of the intervals between two sleeps: it may have to wait for a CPU in between. */
#define BETWEEN_MAX 8

static uint64_t length_of(const struct why_interval *interval)
{
	return interval->to_ts - interval->from_ts;
}

/* The sleep that follows, with no other wait in between. 0: none. Adds up how long the thread runs
 * in between. */
static size_t next_sleep(const struct why_walk *walk, uint32_t thread, size_t index,
			 uint64_t *ran_ns)
{
	const struct why_thread *of = &walk->intervals.threads[thread];
	const struct why_interval *sleep = &of->intervals.data[index];

	*ran_ns = 0;
	for (size_t i = index + 1; i < of->intervals.len && i <= index + BETWEEN_MAX; i++) {
		const struct why_interval *next = &of->intervals.data[i];

		walk->why->searched++;
		if (next->state == WAFFLE_THREAD_BLOCKED)
			return next->syscall == sleep->syscall ? i : 0;
		if (next->from_ts != next[-1].to_ts)
			return 0;
		if (next->state == WAFFLE_THREAD_RUNNING)
			*ran_ns += length_of(next);
	}
	return 0;
}

/* Limit of the switches to search for the threads that were woken. */
#define WOKEN_WITHIN 64
#define WAKER_INTERRUPTS WAFFLE_SWITCH_WAKER_INTERRUPT

/* Whether the thread woke another one at a time. Then it has done something for that one. */
static bool wakes_other(const struct why_walk *walk, uint32_t thread, uint64_t from, uint64_t to)
{
	const struct model *model = walk->model;
	size_t first = why_switch_after(model, from);

	for (size_t i = first; i < model->switches.len && i - first < WOKEN_WITHIN; i++) {
		const struct model_switch *sw = &model->switches.data[i];

		walk->why->searched++;
		if (sw->waker == thread && sw->wake_ts >= from && sw->wake_ts <= to &&
		    !(sw->flags & WAKER_INTERRUPTS) && model_is_traced(model, sw->next))
			return true;
	}
	return false;
}

/* Whether two sleeps may be in one place of the program: their stacks do not differ. */
static bool in_one_place(const struct why_walk *walk, uint32_t thread, size_t a, size_t b)
{
	const struct why_thread *of = &walk->intervals.threads[thread];
	const struct model_wait *wait_a =
		model_wait_at(walk->model, thread, of->intervals.data[a].from_ts);
	const struct model_wait *wait_b =
		model_wait_at(walk->model, thread, of->intervals.data[b].from_ts);

	return !wait_a || !wait_b || !wait_a->user_stack || !wait_b->user_stack ||
	       wait_a->user_stack == wait_b->user_stack;
}

/* Whether the thread only checks something between this sleep and the next one. */
static bool checks_after(const struct why_walk *walk, uint32_t thread, size_t index, size_t *next,
			 uint64_t *ran_ns)
{
	const struct why_thread *of = &walk->intervals.threads[thread];
	const struct why_interval *sleep = &of->intervals.data[index];

	*next = next_sleep(walk, thread, index, ran_ns);
	return *next && *ran_ns <= CHECK_MAX_NS && *ran_ns <= length_of(sleep) / CHECK_PARTS &&
	       in_one_place(walk, thread, index, *next) &&
	       !wakes_other(walk, thread, sleep->to_ts, of->intervals.data[*next].from_ts);
}

/* The same for the sleep before. */
static bool checks_before(const struct why_walk *walk, uint32_t thread, size_t index)
{
	const struct why_thread *of = &walk->intervals.threads[thread];
	uint64_t ran_ns;
	size_t next;

	for (size_t i = index; i-- && index - i <= BETWEEN_MAX;)
		if (of->intervals.data[i].state == WAFFLE_THREAD_BLOCKED)
			return of->intervals.data[i].syscall == of->intervals.data[index].syscall &&
			       checks_after(walk, thread, i, &next, &ran_ns) && next == index;
	return false;
}

/* The call in which the thread waits between a sleep and the next one; -1: it does not, or for a
 * lock, which may protect what it checks. */
static int16_t waits_after(const struct why_walk *walk, uint32_t thread, size_t index)
{
	const struct why_thread *of = &walk->intervals.threads[thread];
	int16_t sleep = of->intervals.data[index].syscall, call = -1;

	for (size_t i = index + 1; i < of->intervals.len && i <= index + BETWEEN_MAX; i++) {
		if (of->intervals.data[i].state != WAFFLE_THREAD_BLOCKED)
			continue;
		call = of->intervals.data[i].syscall;
		break;
	}
	if (call < 0 || call == sleep || call >= WHY_SYSCALLS ||
	    walk->calls[call] == WAIT_CALL_FUTEX)
		return -1;
	return call;
}

/* Limit of the samples to examine between two sleeps. */
#define SAMPLES_MAX 8

/* The system call in which a sample hit the thread between two times; -1: none. */
static int16_t sampled_call(const struct why_walk *walk, uint32_t thread, uint64_t from,
			    uint64_t to, int16_t sleep)
{
	const struct model_sample *samples = walk->model->samples.data;
	size_t count = walk->model->samples.len;
	size_t i = lower_bound(count, at,
			       samples[at].thread < thread ||
				       (samples[at].thread == thread && samples[at].ts < from));

	for (size_t end = i + SAMPLES_MAX;
	     i < count && i < end && samples[i].thread == thread && samples[i].ts < to; i++) {
		walk->why->searched++;
		if (samples[i].syscall >= 0 && samples[i].syscall != sleep)
			return samples[i].syscall;
	}
	return -1;
}

struct why_polls why_polls_of(const struct why_walk *walk, const struct why_blocked *blocked)
{
	const struct why_thread *of = &walk->intervals.threads[blocked->thread];
	struct why_polls polls = {.call = -1, .wait = MODEL_NONE};
	size_t next;

	/* Sums over all spans do not show it. Others may wait for parts of one sleep: its end
	 * counts. */
	if (walk->no_chains || blocked->to < blocked->interval->to_ts)
		return polls;
	if (checks_after(walk, blocked->thread, blocked->index, &next, &polls.ran_ns)) {
		polls.checks = 1;
		polls.call =
			sampled_call(walk, blocked->thread, blocked->interval->to_ts,
				     of->intervals.data[next].from_ts, blocked->interval->syscall);
	} else {
		polls.ran_ns = 0;
		polls.waited = waits_after(walk, blocked->thread, blocked->index);
		polls.waited_votes = polls.waited >= 0;
		if (!checks_before(walk, blocked->thread, blocked->index))
			return polls;
	}
	if (blocked->wait && blocked->wait->user_stack)
		polls.wait = (uint32_t)(blocked->wait - walk->model->waits.data);
	polls.sleeps = 1;
	polls.votes = polls.call >= 0;
	polls.slept_ns = length_of(blocked->interval);
	return polls;
}
