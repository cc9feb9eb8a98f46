// SPDX-License-Identifier: Apache-2.0
/*
 * Wake-ups that do not end a wait. An event loop is woken for messages that it does not wait for. A
 * broadcast wakes all waiters. A signal interrupts a read(2). Then the thread waits again for the
 * same thing. All of these waits count as one, a series, which ends with the last of them.
 */
#include "analyze/why/series/why_series.h"

#include "analyze/why/lookup/why_evidence.h"
#include "analyze/why/lookup/why_peers.h"
#include "analyze/why/lookup/why_signals.h"
#include "analyze/why/series/why_queue_internal.h"
#include "analyze/why/series/why_runners_internal.h"
#include "analyze/why/series/why_same_internal.h"
#include "analyze/why/series/why_waiting.h"
#include "analyze/why/why_walk_types.h"
#include "target/elf/request_site.h"
#include "target/process/descriptors.h"

/* The same limit as WHY_CHECK_NS, for an event loop with its callbacks. */
#define LOOP_NS 1000000u
/* Python's queue.get() with a timeout checks, raises an exception and is called again. */
#define PYTHON_CHECK_NS 500000u
/* Limit of the wake-ups in a row by threads that were started since the series began. */
#define YOUNGER_MAX 256

bool why_waits_for_any(enum wait_kind kind)
{
	return kind == WAIT_POLL || kind == WAIT_PIPE || kind == WAIT_SOCKET ||
	       kind == WAIT_CHILD || kind == WAIT_SIGNAL || kind == WAIT_OTHER;
}

enum why_end_rule why_end_rule_of(const struct why_waiting *waiting)
{
	if (waiting->uninterruptible || waiting->any)
		return WHY_END_ALWAYS;
	if (why_waits_for_any(waiting->kind))
		return WHY_END_LAST;
	switch (waiting->kind) {
	case WAIT_MUTEX:
	case WAIT_GIL:
		return WHY_END_LOCK;
	case WAIT_FUTEX:
		return waiting->ends ? WHY_END_SIGNAL : WHY_END_LAST;
	case WAIT_SLEEP:
	case WAIT_TIMER:
		return WHY_END_SIGNAL;
	default:
		return WHY_END_ALWAYS;
	}
}

static bool is_timeout(const struct why_waker *waker)
{
	return waker->interrupt && waker->hints & WHY_HINT_TIMER;
}

static bool is_idle_loop(const struct why_waiting *waiting)
{
	return waiting->idle && waiting->kind == WAIT_POLL;
}

/* Whether the interval's wake-up did not end the wait, provided that the same wait follows. */
static bool goes_on(const struct why_walk *walk, const struct why_waiting *waiting, uint32_t thread,
		    const struct why_interval *interval, const struct why_waker *waker,
		    bool *by_signal)
{
	enum why_end_rule rule = why_end_rule_of(waiting);

	*by_signal = false;
	if (rule == WHY_END_ALWAYS)
		return false;
	*by_signal = why_ended_by_signal(walk, thread, interval->to_ts, waker, waiting->kind);
	/* A timeout is no event, nor is a signal that an interrupt sent, mostly a timer's: the loop
	 * waits again. */
	if (is_idle_loop(waiting))
		return is_timeout(waker) || (*by_signal && waker->interrupt);
	if (*by_signal)
		return true;
	if (rule == WHY_END_LOCK)
		return waker->interrupt || waker->thread == MODEL_NONE;
	if (rule == WHY_END_LAST && waiting->idle)
		return is_timeout(waker) || (waiting->kind == WAIT_FUTEX && waker->interrupt);
	return rule == WHY_END_LAST;
}

/*
 * Whether an event loop, woken from the wait `last`, began or finished another request before it
 * waits again, at until_ts. Then it was woken for that one, however long it worked on it.
 */
static bool served_another(const struct why_walk *walk, const struct why_waiting *waiting,
			   uint32_t thread, const struct why_interval *last, uint64_t until_ts)
{
	return waiting->kind == WAIT_POLL && !waiting->idle &&
	       why_intervals_serves(&walk->intervals, thread, last->to_ts, until_ts);
}

static bool is_in_same_span(const struct why_walk *walk, uint32_t thread,
			    const struct why_interval *a, const struct why_interval *b)
{
	uint64_t ignored;

	return why_intervals_span(&walk->intervals, thread, a->from_ts, &ignored) ==
	       why_intervals_span(&walk->intervals, thread, b->from_ts, &ignored);
}

/*
 * The thread's next wait for the same thing before until_ts: an index, or 0. It continues the
 * previous wait if the thread did no work in between. That means it ran only briefly and stayed in
 * the same span, or served other requests. Time in which it is stopped is no work.
 */
static size_t next_same(const struct why_walk *walk, const struct why_waiting *waiting,
			uint32_t thread, size_t index, uint64_t until_ts, uint64_t check_ns)
{
	const struct why_thread *of = &walk->intervals.threads[thread];
	const struct why_interval *last = &of->intervals.data[index];
	bool may_serve = served_another(walk, waiting, thread, last, until_ts - 1);
	bool worked = false;
	uint64_t ran_ns = 0;

	for (size_t i = index + 1; i < of->intervals.len && i - index < WHY_LOOK_AHEAD; i++) {
		const struct why_interval *next = &of->intervals.data[i];

		walk->why->searched++;
		if (next->from_ts >= until_ts || next[-1].to_ts != next->from_ts)
			return 0;
		if (next->state == WAFFLE_THREAD_RUNNING)
			ran_ns += next->to_ts - next->from_ts;
		if (ran_ns > check_ns && !may_serve)
			return 0;
		if (next->state != WAFFLE_THREAD_BLOCKED)
			continue;
		if (why_is_halt(walk, last, next))
			continue;
		if (why_is_same(walk, waiting, thread, last, next)) {
			if (may_serve && served_another(walk, waiting, thread, last, next->from_ts))
				return i;
			return !worked && ran_ns <= check_ns &&
					       is_in_same_span(walk, thread, last, next)
				       ? i
				       : 0;
		}
		worked |= !why_is_check_lock(walk, thread, next);
		if (worked && !may_serve)
			return 0;
	}
	return 0;
}

/* The cached series of a thread is also valid for its later intervals. */
static bool is_cached(const struct why_series *series, const struct why_waiting *waiting,
		      size_t index, uint64_t until_ts)
{
	return series->until_ts == until_ts && series->kind == waiting->kind &&
	       index >= series->first && index <= series->last;
}

static bool is_part(const struct why_walk *walk, const struct why_waiting *waiting, uint32_t thread,
		    const struct why_series *series, size_t index)
{
	const struct why_thread *of = &walk->intervals.threads[thread];

	return index == series->first ||
	       why_is_same(walk, waiting, thread, &of->intervals.data[series->first],
			   &of->intervals.data[index]);
}

static enum why_series_place place_of(const struct why_waiting *waiting)
{
	if (why_end_rule_of(waiting) == WHY_END_ALWAYS)
		return WHY_SERIES_SINGLE;
	if (waiting->idle)
		return WHY_SERIES_IDLE;
	switch (waiting->kind) {
	case WAIT_MUTEX:
		return WHY_SERIES_MUTEX;
	case WAIT_GIL:
		return WHY_SERIES_GIL;
	case WAIT_FUTEX:
		return WHY_SERIES_FUTEX;
	default:
		return WHY_SERIES_OTHER;
	}
}

/* Whether a waker was started after `ts`. Then it did not do what a thread waited for before. */
static bool is_younger(const struct why_walk *walk, const struct why_waker *waker, uint64_t ts)
{
	return !waker->interrupt && waker->thread < walk->model->threads.len &&
	       walk->model->threads.data[waker->thread].born_ts > ts;
}

/* How long the thread may run after the last wait of a series, if that goes on. A signal handler
 * may run for long; its work is not what the thread waited for. Python needs longer to check. After
 * a timeout the thread has got nothing that it could work on, but it may use the clock, or log. */
static uint64_t check_limit(const struct why_walk *walk, const struct why_waiting *waiting,
			    uint32_t thread, const struct why_series *series)
{
	uint32_t pid = walk->model->threads.data[thread].pid;

	/* An idle loop may handle the signal as an event, so the limits for its running hold. */
	if (series->by_signal && !is_idle_loop(waiting))
		return UINT64_MAX;
	if (!is_idle_loop(waiting) && (waiting->kind == WAIT_POLL || is_timeout(&series->waker)))
		return LOOP_NS;
	return map_get(&walk->python_of, pid) == MAP_NONE ? WHY_CHECK_NS : PYTHON_CHECK_NS;
}

/* A server that answers wakes who waits for the answer within this time. */
#define ANSWER_NS 1000000u
/* A loop that is awake for less than this part of a wait hardly misses what comes. */
#define AWAKE_PARTS 20

/* Who sent what the last wake-up was for; MODEL_NONE: not known. An interrupt may deliver what was
 * sent before: a timer of TCP, or the device. Then it is who is at the other end. */
static uint32_t sent_by(struct why_walk *walk, uint32_t thread, const struct why_series *series)
{
	const struct why_thread *of = &walk->intervals.threads[thread];
	const struct store_object *ready;

	if (!series->waker.interrupt)
		return series->waker.thread;
	ready = why_wait_object(walk, thread, &of->intervals.data[series->last]);
	return ready && !descriptor_is_epoll(ready->name) ? why_socket_peer(walk, ready)
							  : MODEL_NONE;
}

/* Whether a thread has itself answered a request, which the loop may have waited for. What an
 * interrupt delivers may have been sent at any time of the wait. */
static bool has_answered(const struct why_walk *walk, const struct why_waiting *waiting,
			 uint32_t thread, const struct why_series *series, uint64_t woken_ts)
{
	uint64_t from = series->waker.interrupt ? waiting->from_ts : woken_ts - ANSWER_NS;

	return why_intervals_answers(&walk->intervals, thread, from, woken_ts + ANSWER_NS);
}

/* Whether no other thread of the process runs meanwhile. If one does, it may have the request. */
static bool runs_alone(const struct why_walk *walk, const struct why_waiting *waiting,
		       uint32_t thread)
{
	const struct why_waiting in_process = {.kind = WAIT_FUTEX};
	struct why_runners runners = why_runners_of(walk, &in_process, thread);

	return why_runner_next(walk, &runners, waiting->from_ts, waiting->until_ts) == MODEL_NONE &&
	       !runners.cut;
}

/* Whether the loop hardly does anything else than wait in this wait. */
static bool is_seldom_awake(const struct why_walk *walk, const struct why_waiting *waiting,
			    uint32_t thread, const struct why_series *series)
{
	const struct why_interval *intervals = walk->intervals.threads[thread].intervals.data;
	uint64_t whole_ns = waiting->until_ts - intervals[series->first].from_ts;
	uint64_t awake_ns = whole_ns;

	for (size_t i = series->first; i <= series->last; i++)
		if (intervals[i].state == WAFFLE_THREAD_BLOCKED &&
		    is_part(walk, waiting, thread, series, i))
			awake_ns -= intervals[i].to_ts - intervals[i].from_ts;
	walk->why->searched += series->last - series->first;
	return awake_ns < whole_ns / AWAKE_PARTS;
}

/* Whether a request that the loop has taken up can only wait for another client's. A server of RESP
 * executes a command at once, unless it asks another server: one that it does not answer then, such
 * as BLPOP, waits for what another client sends. */
static bool waits_for_clients(struct why_walk *walk, uint32_t thread,
			      const struct why_series *series)
{
	const struct model *model = walk->model;
	const struct why_interval *first =
		&walk->intervals.threads[thread].intervals.data[series->first];
	uint64_t ignored;
	uint32_t span = why_intervals_span(&walk->intervals, thread, first->from_ts, &ignored);

	return span != MODEL_NONE &&
	       request_site_command(model_site(model, model->spans.data[span].site)) &&
	       !why_is_asker(walk, model->threads.data[thread].pid);
}

/*
 * Whether the last wake-up of a loop was for another request, and the explained one was answered
 * all the same. Then what that one waited for came while the loop was awake, and woke nobody. If
 * the loop is all that runs, and is seldom awake or waits for its clients only, the other request
 * itself is rather what was waited for, as a message for a subscriber. A thread of the same
 * process, and one that has just answered a request itself, may have done both.
 */
static bool is_missed(struct why_walk *walk, const struct why_waiting *waiting, uint32_t thread,
		      const struct why_series *series)
{
	const struct model_thread *threads = walk->model->threads.data;
	const struct why_interval *last =
		&walk->intervals.threads[thread].intervals.data[series->last];
	uint32_t sender;

	if (!series->served || ((is_seldom_awake(walk, waiting, thread, series) ||
				 waits_for_clients(walk, thread, series)) &&
				runs_alone(walk, waiting, thread)))
		return false;
	sender = sent_by(walk, thread, series);
	return sender >= walk->intervals.count ||
	       (threads[sender].pid != threads[thread].pid &&
		!has_answered(walk, waiting, sender, series, last->to_ts));
}

/* Whether `waker` woke another thread in that time, as a loop does that hands it work. */
static bool has_woken(const struct why_walk *walk, uint32_t waker, uint32_t other, uint64_t from,
		      uint64_t until)
{
	const struct why_thread *of = &walk->intervals.threads[other];
	size_t first = why_intervals_after(&walk->intervals, other, from);

	for (size_t i = first; i < of->intervals.len && i - first < WHY_LOOK_AHEAD; i++) {
		const struct why_interval *interval = &of->intervals.data[i];
		struct why_waker by;

		walk->why->searched++;
		if (interval->from_ts >= until)
			break;
		if (interval->state != WAFFLE_THREAD_BLOCKED || interval->to_ts > until)
			continue;
		by = why_waker_of(walk, other, i);
		if (by.thread == waker && !by.interrupt)
			return true;
	}
	return false;
}

/* The thread that did it: the only one that answered a request in that time, or else the only one
 * of the loop's process that ran, if the loop has woken it for the request. MODEL_NONE: not known.
 */
static uint32_t answered_by(const struct why_walk *walk, const struct why_waiting *waiting,
			    uint32_t thread, const struct why_series *series)
{
	uint64_t from = walk->intervals.threads[thread].intervals.data[series->last].to_ts;
	struct why_runners runners = why_runners_of(walk, waiting, thread);
	uint32_t other, server = MODEL_NONE, own = MODEL_NONE;
	unsigned servers = 0, owns = 0;

	while ((other = why_runner_next(walk, &runners, from, waiting->until_ts)) != MODEL_NONE) {
		if (why_intervals_answers(&walk->intervals, other, from, waiting->until_ts)) {
			server = other;
			servers++;
		}
		if (walk->model->threads.data[other].pid == walk->model->threads.data[thread].pid) {
			own = other;
			owns++;
		}
	}
	if (runners.cut || servers > 1)
		return MODEL_NONE;
	if (servers)
		return server;
	return owns == 1 && has_woken(walk, thread, own, waiting->from_ts, waiting->until_ts)
		       ? own
		       : MODEL_NONE;
}

/*
 * The last wait of a series timed out, and the thread does not wait again. So what it waited for
 * came after the timeout, when that woke nobody, and before the thread checked. Returns the thread
 * that did it, if only one ran in that time. An idle loop waits for its timers as well: after the
 * timeout it may do what a timer was for.
 */
static uint32_t done_by(const struct why_walk *walk, const struct why_waiting *waiting,
			uint32_t thread, const struct why_series *series)
{
	struct why_runners runners = why_runners_of(walk, waiting, thread);
	uint64_t timeout_ts = walk->intervals.threads[thread].intervals.data[series->last].to_ts;
	uint64_t check_ts;
	uint32_t only;

	if (series->missed)
		return answered_by(walk, waiting, thread, series);
	if (!series->repeated || !is_timeout(&series->waker) || is_idle_loop(waiting) ||
	    (waiting->kind != WAIT_FUTEX && waiting->kind != WAIT_POLL))
		return MODEL_NONE;
	check_ts = why_checks_at(walk, thread, series->last);
	if (!check_ts)
		return MODEL_NONE;
	check_ts += WHY_CHECK_NS;
	only = why_runner_next(walk, &runners, timeout_ts, check_ts);
	if (why_runner_next(walk, &runners, timeout_ts, check_ts) != MODEL_NONE || runners.cut)
		return MODEL_NONE;
	return only;
}

/* An answer comes at once if it takes at most this part of the timeout before it. */
#define AT_ONCE_PARTS 50
/* Of a shorter part of the time, a wake-up says little: many loops have some at intervals. */
#define DELAY_PARTS 4

/* The thread that ended the last wait of `woken` between `from` and *until, which becomes that end.
 * MODEL_NONE: it is not known, or an interrupt did. */
static uint32_t last_woken_by(const struct why_walk *walk, uint32_t woken, uint64_t from,
			      uint64_t *until)
{
	const struct why_interval *all = walk->intervals.threads[woken].intervals.data;
	size_t end = why_intervals_after(&walk->intervals, woken, *until);
	struct why_waker by;

	for (size_t i = end; i-- && end - i <= WHY_LOOK_AHEAD && all[i].to_ts > from;) {
		walk->why->searched++;
		if (all[i].state != WAFFLE_THREAD_BLOCKED)
			continue;
		by = why_waker_of(walk, woken, i);
		*until = all[i].to_ts;
		return by.interrupt ? MODEL_NONE : by.thread;
	}
	return MODEL_NONE;
}

/* So many threads of a server may hand on what it is asked. */
#define HANDED_MAX 4

/* Whether from `from` to `until` the loop has woken the thread that ends the series, or one that
 * handed the request on to it, perhaps later. */
static bool has_asked(const struct why_walk *walk, uint32_t thread, const struct why_series *series,
		      uint64_t from, uint64_t until)
{
	uint64_t handed = walk->intervals.threads[thread].intervals.data[series->last].to_ts;
	uint32_t server = series->waker.thread;

	for (unsigned i = 0; i < HANDED_MAX && model_is_traced(walk->model, server); i++) {
		if (has_woken(walk, thread, server, from, handed < until ? handed : until))
			return true;
		server = last_woken_by(walk, server, from, &handed);
	}
	return false;
}

/* Whether who answered at last may have been asked after `ts` only. If its thread is recorded, the
 * loop has to have asked it since then. */
static bool may_be_asked_after(const struct why_walk *walk, uint32_t thread,
			       const struct why_series *series, uint64_t ts)
{
	return series->waker.interrupt || !model_is_traced(walk->model, series->waker.thread) ||
	       has_asked(walk, thread, series, ts, UINT64_MAX);
}

/* Whether a wake-up may be what made a loop ask: its timeout, or a thread of its process that has
 * finished a job, such as the look-up of a name. */
static bool may_make_ask(const struct why_walk *walk, uint32_t thread,
			 const struct why_waker *waker)
{
	const struct model_thread *threads = walk->model->threads.data;

	return is_timeout(waker) || (!waker->interrupt && waker->thread != thread &&
				     model_is_traced(walk->model, waker->thread) &&
				     threads[waker->thread].pid == threads[thread].pid);
}

/*
 * The wait of a series whose end made the loop ask a server, such as the delay of a proxy: that
 * takes at least a quarter of the time, and what woke the loop at last came at once after it. If
 * the loop had asked before, that would be a rare chance. Returns its index; 0: there is none.
 * Later waits are a series of their own.
 */
static size_t delayed_by(const struct why_walk *walk, const struct why_waiting *waiting,
			 uint32_t thread, const struct why_series *series)
{
	const struct why_interval *all = walk->intervals.threads[thread].intervals.data;
	uint64_t whole_ns = all[series->last].to_ts - all[series->first].from_ts;
	size_t at = series->last;
	struct why_waker waker;

	if (waiting->kind != WAIT_POLL || waiting->outside || all[at].open ||
	    is_timeout(&series->waker))
		return 0;
	while (at-- > series->first && all[series->last].to_ts - all[at].to_ts < whole_ns / 2) {
		uint64_t waited_ns = all[at].to_ts - all[at].from_ts;

		walk->why->searched++;
		if (all[at].state != WAFFLE_THREAD_BLOCKED || waited_ns < whole_ns / DELAY_PARTS)
			continue;
		waker = why_waker_of(walk, thread, at);
		return may_make_ask(walk, thread, &waker) &&
				       is_part(walk, waiting, thread, series, at) &&
				       all[series->last].to_ts - all[at].to_ts <=
					       waited_ns / AT_ONCE_PARTS &&
				       may_be_asked_after(walk, thread, series, all[at].to_ts)
			       ? at
			       : 0;
	}
	return 0;
}

/* Ends the series at that wait, if there is one. */
static bool end_at_delay(const struct why_walk *walk, const struct why_waiting *waiting,
			 uint32_t thread, struct why_series *series)
{
	size_t at = delayed_by(walk, waiting, thread, series);

	if (!at)
		return false;
	series->last = at;
	series->waker = why_waker_of(walk, thread, at);
	series->apart = true;
	return true;
}

/* The wait that goes on when the capture ends has no waker. Outside of all spans, that must not
 * hide what ended all the waits before it. */
static bool is_cut_off(const struct why_waiting *waiting, const struct why_interval *next)
{
	return waiting->outside && next->open;
}

const struct why_series *why_series_of(struct why_walk *walk, const struct why_waiting *waiting,
				       uint32_t thread, size_t index)
{
	uint64_t until_ts = waiting->until_ts;
	struct why_thread *of = &walk->intervals.threads[thread];
	struct why_series *series = &of->series[place_of(waiting)];
	struct why_series older;
	unsigned younger = 0;
	size_t next;

	if (is_cached(series, waiting, index, until_ts)) {
		if (is_part(walk, waiting, thread, series, index))
			return series;
		/* A wait for a lock between two waits of the series. Its own series must not
		 * replace this one. */
		series = &of->series[WHY_SERIES_SINGLE];
		if (is_cached(series, waiting, index, until_ts) &&
		    is_part(walk, waiting, thread, series, index))
			return series;
	}
	*series = (struct why_series){.first = index,
				      .last = index,
				      .until_ts = until_ts,
				      .kind = waiting->kind,
				      .waker = why_waker_of(walk, thread, index),
				      .done_by = MODEL_NONE};
	if (why_queue_find(walk, waiting, thread, index, &series->last, &series->queued)) {
		series->waker = why_waker_of(walk, thread, series->last);
		series->apart = true;
		return series;
	}
	series->queued = false;
	older = *series;
	while (goes_on(walk, waiting, thread, &of->intervals.data[series->last], &series->waker,
		       &series->by_signal)) {
		next = next_same(walk, waiting, thread, series->last, until_ts,
				 check_limit(walk, waiting, thread, series));
		if (!next || is_cut_off(waiting, &of->intervals.data[next]))
			break;
		series->last = next;
		series->repeated |= !of->intervals.data[next].continued;
		series->waker = why_waker_of(walk, thread, next);
		if (is_timeout(&series->waker))
			continue;
		if (!is_younger(walk, &series->waker, of->intervals.data[index].to_ts)) {
			older = *series;
			younger = 0;
		} else if (++younger > YOUNGER_MAX) {
			break;
		}
	}
	/* Threads that were started meanwhile did not end the series. */
	if (younger) {
		*series = older;
		goes_on(walk, waiting, thread, &of->intervals.data[series->last], &series->waker,
			&series->by_signal);
	}
	if (end_at_delay(walk, waiting, thread, series))
		return series;
	series->served = !of->intervals.data[series->last].open && !series->by_signal &&
			 !waiting->any &&
			 served_another(walk, waiting, thread, &of->intervals.data[series->last],
					until_ts - 1);
	series->missed = is_missed(walk, waiting, thread, series);
	series->done_by = done_by(walk, waiting, thread, series);
	return series;
}

/* So many intervals after a timeout are searched for the event that the loop waits for. */
#define EVENT_MAX 64

bool why_series_event(const struct why_walk *walk, const struct why_waiting *waiting,
		      uint32_t thread, size_t index, const struct why_series *series,
		      struct why_series *event)
{
	const struct why_interval *all = walk->intervals.threads[thread].intervals.data;
	struct why_waker own = why_waker_of(walk, thread, index);

	if (!is_timeout(&own))
		return false;
	for (size_t i = index + 1; i < series->last && i - index < EVENT_MAX; i++) {
		walk->why->searched++;
		if (all[i].state != WAFFLE_THREAD_BLOCKED ||
		    !is_part(walk, waiting, thread, series, i))
			continue;
		*event = *series;
		event->last = i;
		event->waker = why_waker_of(walk, thread, i);
		if (!is_timeout(&event->waker) &&
		    !why_ended_by_signal(walk, thread, all[i].to_ts, &event->waker, waiting->kind))
			return !event->waker.interrupt &&
			       event->waker.thread < walk->model->threads.len &&
			       !has_asked(walk, thread, series, all[index].to_ts, all[i].to_ts);
	}
	return false;
}

/* Counts who woke the thread during its series. */
static void count_wakes(const struct why_walk *walk, struct why_step *step)
{
	struct why_thread *of = &walk->intervals.threads[step->thread];
	const struct why_interval *first = &of->intervals.data[step->series_first];
	const uint64_t *args = why_args_of(walk, first);
	uint32_t candidate = MODEL_NONE, votes = 0;

	/* Boyer-Moore majority vote, then a pass that counts. */
	for (unsigned pass = 0; pass < 2; pass++) {
		step->wakes = 0;
		for (size_t i = step->series_first; i <= step->series_last; i++) {
			const struct why_interval *interval = &of->intervals.data[i];
			struct why_waker waker;
			uint32_t by;

			if (interval->state != WAFFLE_THREAD_BLOCKED ||
			    interval->syscall != first->syscall || !args)
				continue;
			walk->why->searched++;
			step->wakes++;
			if (i == step->series_last)
				break;
			waker = why_waker_of(walk, step->thread, i);
			by = waker.interrupt ? MODEL_NONE : waker.thread;
			if (pass) {
				step->woken_count += by == candidate;
			} else if (!votes) {
				candidate = by;
				votes = 1;
			} else {
				votes += by == candidate ? 1u : -1u;
			}
		}
	}
	step->woken_by = candidate;
}

/* Many parts may have the same series in their chains, so the last one of a thread is cached. */
void why_series_describe(const struct why_walk *walk, struct why_step *step)
{
	struct why_last_wakes *known = &walk->intervals.threads[step->thread].last_wakes;

	if (known->first == step->series_first && known->last == step->series_last) {
		step->wakes = known->wakes;
		step->woken_by = known->woken_by;
		step->woken_count = known->woken_count;
		return;
	}
	count_wakes(walk, step);
	*known = (struct why_last_wakes){step->series_first, step->series_last, step->wakes,
					 step->woken_by, step->woken_count};
}
