// SPDX-License-Identifier: Apache-2.0
/* Whether a thread may have waited for something else than what ended its wait. */
#include "analyze/why/series/why_doubt.h"

#include <sys/wait.h>

#include "analyze/why/lookup/why_evidence.h"
#include "analyze/why/lookup/why_signals.h"
#include "analyze/why/series/why_runners_internal.h"
#include "analyze/why/series/why_same_internal.h"
#include "analyze/why/series/why_series.h"
#include "analyze/why/series/why_waiting.h"
#include "analyze/why/why_walk_types.h"

static bool same_waker(const struct why_waker *a, const struct why_waker *b)
{
	/* Two interrupts need not come from the same device or timer. */
	return !a->interrupt && !b->interrupt && a->thread == b->thread;
}

/* The thread's first wait for the same thing that ends after waiting->from_ts. */
static size_t first_same(const struct why_walk *walk, const struct why_waiting *waiting,
			 uint32_t thread, size_t index, bool *cut)
{
	const struct why_thread *of = &walk->intervals.threads[thread];
	size_t first = index;

	for (size_t i = index; i--;) {
		const struct why_interval *other = &of->intervals.data[i];

		if (other->to_ts <= waiting->from_ts)
			break;
		*cut = index - i == WHY_LOOK_AHEAD;
		if (*cut)
			break;
		if (other->state == WAFFLE_THREAD_BLOCKED &&
		    why_is_same(walk, waiting, thread, &of->intervals.data[index], other))
			first = i;
	}
	return first;
}

static void find_again(struct why_walk *walk, const struct why_waiting *waiting, uint32_t thread,
		       size_t index, struct why_again *again)
{
	const struct why_thread *of = &walk->intervals.threads[thread];
	const struct why_interval *interval = &of->intervals.data[index];
	struct why_waker waker = {.thread = MODEL_NONE}, next;
	bool any = false, cut = false;
	size_t first = first_same(walk, waiting, thread, index, &cut);

	*again = (struct why_again){.from_ts = waiting->from_ts,
				    .until_ts = waiting->until_ts,
				    .kind = waiting->kind,
				    .first = first,
				    .last = index};
	for (size_t i = first; i < of->intervals.len; i++) {
		const struct why_interval *other = &of->intervals.data[i];

		if (other->from_ts >= waiting->until_ts)
			break;
		cut |= i == index + WHY_LOOK_AHEAD;
		if (i == index + WHY_LOOK_AHEAD)
			break;
		if (other->state != WAFFLE_THREAD_BLOCKED ||
		    !why_is_same(walk, waiting, thread, interval, other))
			continue;
		next = why_waker_of(walk, thread, i);
		if (why_ended_by_signal(walk, thread, other->to_ts, &next, waiting->kind))
			continue;
		if (any && !same_waker(&waker, &next))
			again->mixed = true;
		waker = next;
		any = true;
		if (i > index)
			again->last = i;
	}
	again->cut = cut;
}

/* Whether the thread also waits for the same thing at other times, whatever it does in between. */
static bool waits_again(struct why_walk *walk, const struct why_waiting *waiting, uint32_t thread,
			size_t index)
{
	struct why_thread *of = &walk->intervals.threads[thread];
	const struct why_interval *interval = &of->intervals.data[index];
	struct why_again *again = &of->again[(uint16_t)interval->syscall % WHY_AGAIN];

	if (again->until_ts != waiting->until_ts || again->from_ts != waiting->from_ts ||
	    again->kind != waiting->kind || index < again->first || index > again->last ||
	    !why_is_same(walk, waiting, thread, &of->intervals.data[again->first], interval))
		find_again(walk, waiting, thread, index, again);
	if (again->cut)
		return true;
	return waiting->writes ? again->mixed : again->last > again->first;
}

/* Whether it waits for a child by number: only the end of that child ends such a wait. */
static bool is_for_child(const struct why_walk *walk, const struct why_waiting *waiting,
			 const struct why_interval *interval, const struct why_waker *waker)
{
	const uint64_t *args = why_args_of(walk, interval);
	bool by_id = interval->syscall == walk->intervals.waitid;

	return waiting->kind == WAIT_CHILD && args && (!by_id || args[0] == P_PID) &&
	       !waker->interrupt && waker->thread < walk->model->threads.len &&
	       model_pid_real(walk->model, walk->model->threads.data[waker->thread].pid) ==
		       args[by_id];
}

/* A check is late if it comes after the wake-up by more than this part of the wait. */
#define LATE_PARTS 10 /* one tenth */

static bool checks_late(const struct why_interval *wait, uint64_t check_ts)
{
	uint64_t late_ns = check_ts > wait->to_ts ? check_ts - wait->to_ts : 0;

	return late_ns > WHY_CHECK_NS && late_ns > (wait->to_ts - wait->from_ts) / LATE_PARTS;
}

/* Limit of wake-ups to follow backwards from the thread's own. */
#define LED_MAX 8
/* Limit of the intervals of each to search for its last wait. */
#define LOOK_BACK 64

/* Whether a thread woke the one that ended the wait, or the waker of that one, and so on. Then the
 * chain reaches it in any case. */
static bool has_led_to(const struct why_walk *walk, uint32_t thread, uint32_t waker,
		       const struct why_interval *wait)
{
	uint64_t ts = wait->to_ts;

	for (unsigned led = 0; led < LED_MAX && waker < walk->model->threads.len; led++) {
		const struct why_thread *of = &walk->intervals.threads[waker];
		size_t i = why_intervals_after(&walk->intervals, waker, ts);
		struct why_waker by;

		for (unsigned steps = 0;
		     i && (i >= of->intervals.len || of->intervals.data[i].to_ts > ts ||
			   of->intervals.data[i].state != WAFFLE_THREAD_BLOCKED);
		     steps++, i--) {
			walk->why->searched++;
			if (steps == LOOK_BACK)
				return false;
		}
		if (i >= of->intervals.len ||
		    of->intervals.data[i].state != WAFFLE_THREAD_BLOCKED ||
		    of->intervals.data[i].to_ts > ts || of->intervals.data[i].to_ts < wait->from_ts)
			return false;
		by = why_waker_of(walk, waker, i);
		if (by.interrupt)
			return false;
		if (by.thread == thread)
			return true;
		ts = of->intervals.data[i].to_ts;
		waker = by.thread;
	}
	return false;
}

/* Time that a thread needs to check once it has a CPU; at most a tenth of its wait. */
#define CHECK_ONCE_NS 20000u

/*
 * Whether a thread other than the waker ran before the thread could check. That thread may have
 * done what it waited for: the wake-up was already over, so no record shows it.
 */
static bool others_ran(const struct why_walk *walk, const struct why_waiting *waiting,
		       uint32_t thread, const struct why_interval *wait, uint64_t check_ts,
		       uint32_t waker)
{
	struct why_runners runners = why_runners_of(walk, waiting, thread);
	uint64_t once_ns = (wait->to_ts - wait->from_ts) / LATE_PARTS;
	uint64_t until = check_ts + (once_ns < CHECK_ONCE_NS ? once_ns : CHECK_ONCE_NS);
	uint32_t other;

	while ((other = why_runner_next(walk, &runners, wait->to_ts, until)) != MODEL_NONE)
		if (other != waker && !has_led_to(walk, other, waker, wait))
			return true;
	return runners.cut;
}

/*
 * Whatever arrives while the thread is awake wakes nobody. If it waits several times for the same
 * thing, what it needed may have come in between. If it waits once, that may have come before it
 * had a CPU to check.
 *
 * There are two exceptions: waits that only one thing can end, and waits for room. Any room will
 * do, so the reader is known if only one thread reads.
 */
bool why_is_doubtful(struct why_walk *walk, const struct why_waiting *waiting, uint32_t thread,
		     size_t index)
{
	const struct why_series *series = why_series_of(walk, waiting, thread, index);
	const struct why_interval *interval =
		&walk->intervals.threads[thread].intervals.data[index];
	uint64_t check_ts;

	if (is_for_child(walk, waiting, interval, &series->waker))
		return false;
	if (series->repeated && !waiting->writes)
		return true;
	if (why_end_rule_of(waiting) != WHY_END_LAST || interval->syscall < 0)
		return false;
	if (waits_again(walk, waiting, thread, index))
		return true;
	if (waiting->writes)
		return false;
	interval = &walk->intervals.threads[thread].intervals.data[series->last];
	check_ts = why_checks_at(walk, thread, series->last);
	return !check_ts || checks_late(interval, check_ts) ||
	       others_ran(walk, waiting, thread, interval, check_ts, series->waker.thread);
}
