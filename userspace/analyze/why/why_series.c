// SPDX-License-Identifier: Apache-2.0
/*
 * Wake-ups that do not end a wait. An event loop is woken for messages that it does not wait for. A
 * broadcast wakes all waiters. A signal interrupts a read(2). Then the thread waits again for the
 * same thing. All of these waits count as one, a series, which ends with the last of them.
 */
#include "analyze/why/why_parts_internal.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "target/process/descriptors.h"

/* A thread that only checks whether its wait is over, and then continues to wait, runs no longer
 * than this. The second limit is for an event loop with its callbacks. */
#define CHECK_NS 100000u
#define LOOP_NS 1000000u
/* Python's queue.get() with a timeout checks, raises an exception and is called again. */
#define PYTHON_CHECK_NS 500000u
/* A condition variable of the C library has two adjacent futexes that take turns. */
#define CONDITION_TURN 4
/* Time from a signal's record to the wake-up that it causes, in the same system call. */
#define SIGNAL_NS 20000u
/* Limit of the signals to search in that time. If there are more, one may have caused it. */
#define SIGNALS_MAX 64
/* Limit of the wake-ups in a row by threads that were started since the series began. */
#define YOUNGER_MAX 256
/* Limit of the intervals to search for the next wait. */
#define LOOK_AHEAD 1024

/* Whether a wake-up ends a wait although the thread then waits for the same thing again. */
enum end_rule {
	END_ALWAYS, /* it does */
	END_SIGNAL, /* it does unless a signal caused it */
	END_LOCK,   /* it does if a thread released the lock: another one may have taken it since */
	END_LAST,   /* only the last one of the series does */
};

bool why_waits_for_any(enum wait_kind kind)
{
	return kind == WAIT_POLL || kind == WAIT_PIPE || kind == WAIT_SOCKET ||
	       kind == WAIT_CHILD || kind == WAIT_SIGNAL || kind == WAIT_OTHER;
}

static enum end_rule rule_of(const struct why_waiting *waiting)
{
	if (waiting->uninterruptible)
		return END_ALWAYS;
	if (why_waits_for_any(waiting->kind))
		return END_LAST;
	switch (waiting->kind) {
	case WAIT_MUTEX:
	case WAIT_GIL:
		return END_LOCK;
	case WAIT_FUTEX:
		return waiting->ends ? END_SIGNAL : END_LAST;
	case WAIT_SLEEP:
	case WAIT_TIMER:
		return END_SIGNAL;
	default:
		return END_ALWAYS;
	}
}

/* ---- the same wait ---- */

static const uint64_t *args_of(const struct why_walk *walk, const struct why_interval *interval)
{
	const struct model *model = walk->model;

	return interval->args < model->syscall_args.len ? &model->syscall_args.data[interval->args]
							: NULL;
}

/* poll(2) and select(2): whether both wait for the same descriptors. Their list may be at another
 * address each time. */
static bool is_same_list(const struct why_walk *walk, uint32_t thread, const struct why_interval *a,
			 const struct why_interval *b)
{
	const struct store_object *first = why_wait_object(walk, thread, a);
	const struct store_object *second = why_wait_object(walk, thread, b);

	return first && second && *first->name && !strcmp(first->name, second->name) &&
	       !strcmp(first->detail, second->detail) &&
	       strncmp(first->name, DESCRIPTOR_MANY, strlen(DESCRIPTOR_MANY)) != 0;
}

static bool is_same(const struct why_walk *walk, const struct why_waiting *waiting, uint32_t thread,
		    const struct why_interval *a, const struct why_interval *b)
{
	const uint64_t *first = args_of(walk, a), *second = args_of(walk, b);
	uint64_t distance;

	if (a->syscall != b->syscall || a->syscall < 0 || !first || !second ||
	    (b->task_state & (WAFFLE_TASK_STOPPED | WAFFLE_TASK_TRACED)) ||
	    (a->task_state ^ b->task_state) & WAFFLE_TASK_UNINTERRUPTIBLE)
		return false;
	if (waiting->kind == WAIT_SLEEP)
		return b->continued || !memcmp(first, second, sizeof(*first) * WAFFLE_SYSCALL_ARGS);
	/* If it has arguments, they do not matter. */
	if (waiting->kind == WAIT_SIGNAL)
		return true;
	if (waiting->lists && is_same_list(walk, thread, a, b))
		return true;
	/* The first argument only says what the second one is. */
	if (a->syscall == walk->intervals.waitid && first[1] != second[1])
		return false;
	distance = first[0] > second[0] ? first[0] - second[0] : second[0] - first[0];
	return waiting->kind == WAIT_FUTEX || waiting->kind == WAIT_GIL ||
			       waiting->kind == WAIT_MUTEX
		       ? distance <= CONDITION_TURN
		       : !distance;
}

/* Whether `next` is a stop in the middle of a wait, or a freeze of the thread in its call. */
static bool is_halt(const struct why_walk *walk, const struct why_interval *wait,
		    const struct why_interval *next)
{
	const uint64_t *first = args_of(walk, wait), *second = args_of(walk, next);

	if (next->task_state & (WAFFLE_TASK_STOPPED | WAFFLE_TASK_TRACED))
		return true;
	return next->task_state & WAFFLE_TASK_UNINTERRUPTIBLE && next->syscall >= 0 &&
	       next->syscall == wait->syscall && first && second && *first == *second;
}

/* A lock that the thread must take before it can check again: the mutex of a condition variable, or
 * Python's lock. */
static bool is_lock(const struct why_walk *walk, uint32_t thread,
		    const struct why_interval *interval)
{
	const uint64_t *args = args_of(walk, interval);

	if (interval->syscall != walk->intervals.futex || !args)
		return false;
	return wait_takes_pi_lock(args) ||
	       (((uint32_t)args[1] & WAIT_FUTEX_COMMAND) == WAIT_FUTEX_WAIT &&
		(uint32_t)args[2] == WAIT_MUTEX_CONTENDED) ||
	       map_get(&walk->python_of, walk->model->threads.data[thread].pid) != MAP_NONE;
}

/* ---- signals ---- */

/* What is recorded of the signals that may have caused a wake-up. */
enum sent {
	SENT_NOTHING,
	SENT_INTERNAL, /* only signals that the C library sends to its own threads */
	SENT_UNSURE,   /* one that may be internal, or more signals than we search */
	SENT,          /* one that the program may wait for */
};

/* A C library signals its own threads to cancel one, or to change the user ID of all. glibc takes
 * 32 and 33 for that, musl 32 to 34. To programs with glibc, 34 is the first of their own. */
#define INTERNAL_FIRST 32
#define INTERNAL_GLIBC 33
#define INTERNAL_MUSL 34

static enum sent sent_as(int32_t signo)
{
	if (signo < INTERNAL_FIRST || signo > INTERNAL_MUSL)
		return SENT;
	return signo <= INTERNAL_GLIBC ? SENT_INTERNAL : SENT_UNSURE;
}

static enum sent sent_before(const struct why_walk *walk, uint32_t thread, uint64_t ts,
			     const struct why_waker *waker, enum wait_kind kind)
{
	const struct model *model = walk->model;
	const struct model_thread *threads = model->threads.data;
	size_t end = why_signals_after(model, ts), at = end;
	enum sent sent = SENT_NOTHING;

	while (at-- && model->signals.data[at].ts + SIGNAL_NS >= ts) {
		const struct model_signal *signal = &model->signals.data[at];

		walk->why->searched++;
		if (end - at > SIGNALS_MAX)
			return SENT_UNSURE;
		if (signal->target >= model->threads.len ||
		    (kind == WAIT_CHILD && signal->signo == SIGCHLD))
			continue;
		/* A signal to a process is recorded with the process's first thread as target. */
		if (signal->target != thread &&
		    (threads[signal->target].pid != threads[thread].pid ||
		     threads[signal->target].tid != threads[thread].pid))
			continue;
		if ((waker->interrupt || signal->sender == waker->thread) &&
		    sent_as(signal->signo) > sent)
			sent = sent_as(signal->signo);
	}
	return sent;
}

bool why_is_signalled(const struct why_walk *walk, uint32_t thread, uint64_t ts,
		      const struct why_waker *waker)
{
	return sent_before(walk, thread, ts, waker, WAIT_SIGNAL) == SENT;
}

bool why_ended_by_signal(const struct why_walk *walk, uint32_t thread, uint64_t ts,
			 const struct why_waker *waker, enum wait_kind kind)
{
	if (kind == WAIT_SIGNAL)
		return sent_before(walk, thread, ts, waker, kind) == SENT_INTERNAL;
	/* The end of a child also sends a signal. */
	if (kind == WAIT_CHILD && waker->hints & WHY_HINT_CHILD)
		return false;
	if (waker->has_stack)
		return waker->hints & WHY_HINT_SIGNAL;
	return sent_before(walk, thread, ts, waker, kind) != SENT_NOTHING;
}

/* ---- series ---- */

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
	enum end_rule rule = rule_of(waiting);

	*by_signal = rule != END_ALWAYS &&
		     why_ended_by_signal(walk, thread, interval->to_ts, waker, waiting->kind);
	/* A timeout is no event, nor is a signal that an interrupt sent, mostly a timer's: the loop
	 * waits again. */
	if (is_idle_loop(waiting))
		return is_timeout(waker) || (*by_signal && waker->interrupt);
	if (*by_signal)
		return true;
	if (rule == END_LOCK)
		return waker->interrupt || waker->thread == MODEL_NONE;
	if (rule == END_LAST && waiting->idle)
		return is_timeout(waker) || (waiting->kind == WAIT_FUTEX && waker->interrupt);
	return rule == END_LAST;
}

/*
 * Whether an event loop, woken from the wait `last`, began or finished another request before it
 * waits again: `next`. Then it was woken for that one, however long it worked on it.
 */
static bool served_another(const struct why_walk *walk, const struct why_waiting *waiting,
			   uint32_t thread, const struct why_interval *last,
			   const struct why_interval *next)
{
	return waiting->kind == WAIT_POLL && !waiting->idle &&
	       why_intervals_serves(&walk->intervals, thread, last->to_ts, next->from_ts);
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
	bool may_serve = served_another(walk, waiting, thread, last,
					&(struct why_interval){.from_ts = until_ts - 1});
	uint64_t ran_ns = 0;

	for (size_t i = index + 1; i < of->intervals.len && i - index < LOOK_AHEAD; i++) {
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
		if (is_halt(walk, last, next))
			continue;
		if (is_same(walk, waiting, thread, last, next)) {
			if (may_serve && served_another(walk, waiting, thread, last, next))
				return i;
			return ran_ns <= check_ns && is_in_same_span(walk, thread, last, next) ? i
											       : 0;
		}
		if (!is_lock(walk, thread, next))
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
	       is_same(walk, waiting, thread, &of->intervals.data[series->first],
		       &of->intervals.data[index]);
}

static enum why_series_place place_of(const struct why_waiting *waiting)
{
	if (rule_of(waiting) == END_ALWAYS)
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
	return map_get(&walk->python_of, pid) == MAP_NONE ? CHECK_NS : PYTHON_CHECK_NS;
}

/* When the thread could check: when it had a CPU and the lock that it needs. 0: not known. */
static uint64_t checks_at(const struct why_walk *walk, uint32_t thread, size_t index)
{
	const struct why_thread *of = &walk->intervals.threads[thread];
	size_t last = index;

	for (size_t i = index + 1; i < of->intervals.len && i - index < LOOK_AHEAD; i++) {
		const struct why_interval *next = &of->intervals.data[i];

		if (next->state == WAFFLE_THREAD_RUNNING && next->to_ts - next->from_ts > CHECK_NS)
			break;
		if (next->state != WAFFLE_THREAD_BLOCKED)
			continue;
		if (!is_lock(walk, thread, next))
			break;
		last = i;
		if (i - index == LOOK_AHEAD - 1)
			return 0;
	}
	return why_switched_in(walk, thread, last);
}

/* Limit of the intervals to search for one in which the thread runs. */
#define RUNS_WITHIN 64

/* Whether the thread may have run in that time. */
static bool runs_within(const struct why_walk *walk, uint32_t thread, uint64_t from, uint64_t to)
{
	const struct why_thread *of = &walk->intervals.threads[thread];
	size_t first = why_intervals_after(&walk->intervals, thread, from);

	for (size_t i = first; i < of->intervals.len && of->intervals.data[i].from_ts <= to; i++) {
		walk->why->searched++;
		if (of->intervals.data[i].state == WAFFLE_THREAD_RUNNING ||
		    i - first == RUNS_WITHIN)
			return true;
	}
	return false;
}

/* Limit of the other traced threads that are checked; beyond it nothing is certain. */
#define THREADS_MAX 256

/* The traced threads that may have done what a thread waited for. For a futex these are the threads
 * of its process, as we assume that other processes do not map it. */
struct runners {
	uint32_t thread, pid; /* who waited; pid 0: threads of all processes */
	size_t first, at;     /* places in walk->traced */
	bool cut;             /* there are more than we check */
};

static struct runners runners_of(const struct why_walk *walk, const struct why_waiting *waiting,
				 uint32_t thread)
{
	struct runners runners = {.thread = thread};

	if (waiting->kind == WAIT_FUTEX) {
		runners.pid = walk->model->threads.data[thread].pid;
		runners.first = why_traced_of(walk, runners.pid);
	}
	runners.at = runners.first;
	return runners;
}

/* The next of them that may have run in a time; MODEL_NONE: no more. */
static uint32_t runner_next(const struct why_walk *walk, struct runners *runners, uint64_t from,
			    uint64_t until)
{
	while (runners->at < walk->traced.len) {
		uint32_t other = walk->traced.data[runners->at];

		if (runners->pid && walk->model->threads.data[other].pid != runners->pid)
			break;
		runners->cut = runners->at - runners->first >= THREADS_MAX;
		if (runners->cut)
			break;
		runners->at++;
		if (other != runners->thread && runs_within(walk, other, from, until))
			return other;
	}
	return MODEL_NONE;
}

/* A server that answers wakes who waits for the answer within this time. */
#define ANSWER_NS 1000000u

/*
 * Whether the last wake-up of a loop was for another request, and the explained one was answered
 * all the same. Then what that one waited for came while the loop was awake, and woke nobody. A
 * thread of the same process, and one that has just answered a request itself, may have done both.
 */
static bool is_missed(const struct why_walk *walk, const struct why_waiting *waiting,
		      uint32_t thread, const struct why_series *series)
{
	const struct model_thread *threads = walk->model->threads.data;
	const struct why_interval *last =
		&walk->intervals.threads[thread].intervals.data[series->last];
	uint32_t waker = series->waker.thread;

	if (last->open || series->by_signal ||
	    !served_another(walk, waiting, thread, last,
			    &(struct why_interval){.from_ts = waiting->until_ts - 1}))
		return false;
	return series->waker.interrupt || waker >= walk->intervals.count ||
	       (threads[waker].pid != threads[thread].pid &&
		!why_intervals_answers(&walk->intervals, waker, last->to_ts - ANSWER_NS,
				       last->to_ts + ANSWER_NS));
}

/* The thread that did it: the only one that answered a request in that time, or else the only one
 * of the loop's process that ran. MODEL_NONE: not known. */
static uint32_t answered_by(const struct why_walk *walk, const struct why_waiting *waiting,
			    uint32_t thread, const struct why_series *series)
{
	uint64_t from = walk->intervals.threads[thread].intervals.data[series->last].to_ts;
	struct runners runners = runners_of(walk, waiting, thread);
	uint32_t other, server = MODEL_NONE, own = MODEL_NONE;
	unsigned servers = 0, owns = 0;

	while ((other = runner_next(walk, &runners, from, waiting->until_ts)) != MODEL_NONE) {
		if (why_intervals_answers(&walk->intervals, other, from, waiting->until_ts)) {
			server = other;
			servers++;
		}
		if (walk->model->threads.data[other].pid == walk->model->threads.data[thread].pid) {
			own = other;
			owns++;
		}
	}
	if (runners.cut)
		return MODEL_NONE;
	return servers == 1 ? server : !servers && owns == 1 ? own : MODEL_NONE;
}

/*
 * The last wait of a series timed out, and the thread does not wait again. So what it waited for
 * came after the timeout, when that woke nobody, and before the thread checked. Returns the thread
 * that did it, if only one ran in that time.
 */
static uint32_t done_by(const struct why_walk *walk, const struct why_waiting *waiting,
			uint32_t thread, const struct why_series *series)
{
	struct runners runners = runners_of(walk, waiting, thread);
	uint64_t timeout_ts = walk->intervals.threads[thread].intervals.data[series->last].to_ts;
	uint64_t check_ts;
	uint32_t only;

	if (series->missed)
		return answered_by(walk, waiting, thread, series);
	if (!series->repeated || !is_timeout(&series->waker) ||
	    (waiting->kind != WAIT_FUTEX && waiting->kind != WAIT_POLL))
		return MODEL_NONE;
	check_ts = checks_at(walk, thread, series->last);
	if (!check_ts)
		return MODEL_NONE;
	check_ts += CHECK_NS;
	only = runner_next(walk, &runners, timeout_ts, check_ts);
	if (runner_next(walk, &runners, timeout_ts, check_ts) != MODEL_NONE || runners.cut)
		return MODEL_NONE;
	return only;
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
				      .waker = why_waker_of(walk, thread, index)};
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
	series->missed = is_missed(walk, waiting, thread, series);
	series->done_by = done_by(walk, waiting, thread, series);
	return series;
}

/* Counts who woke the thread during its series. */
static void count_wakes(const struct why_walk *walk, struct why_step *step)
{
	struct why_thread *of = &walk->intervals.threads[step->thread];
	const struct why_interval *first = &of->intervals.data[step->series_first];
	const uint64_t *args = args_of(walk, first);
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

/* ---- what was waited for ---- */

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
		*cut = index - i == LOOK_AHEAD;
		if (*cut)
			break;
		if (other->state == WAFFLE_THREAD_BLOCKED &&
		    is_same(walk, waiting, thread, &of->intervals.data[index], other))
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
		cut |= i == index + LOOK_AHEAD;
		if (i == index + LOOK_AHEAD)
			break;
		if (other->state != WAFFLE_THREAD_BLOCKED ||
		    !is_same(walk, waiting, thread, interval, other))
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
	    !is_same(walk, waiting, thread, &of->intervals.data[again->first], interval))
		find_again(walk, waiting, thread, index, again);
	if (again->cut)
		return true;
	return waiting->writes ? again->mixed : again->last > again->first;
}

/* Whether it waits for a child by number: only the end of that child ends such a wait. */
static bool is_for_child(const struct why_walk *walk, const struct why_waiting *waiting,
			 const struct why_interval *interval, const struct why_waker *waker)
{
	const uint64_t *args = args_of(walk, interval);

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

	return late_ns > CHECK_NS && late_ns > (wait->to_ts - wait->from_ts) / LATE_PARTS;
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
	struct runners runners = runners_of(walk, waiting, thread);
	uint64_t once_ns = (wait->to_ts - wait->from_ts) / LATE_PARTS;
	uint64_t until = check_ts + (once_ns < CHECK_ONCE_NS ? once_ns : CHECK_ONCE_NS);
	uint32_t other;

	while ((other = runner_next(walk, &runners, wait->to_ts, until)) != MODEL_NONE)
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
	if (rule_of(waiting) != END_LAST || interval->syscall < 0)
		return false;
	if (waits_again(walk, waiting, thread, index))
		return true;
	if (waiting->writes)
		return false;
	interval = &walk->intervals.threads[thread].intervals.data[series->last];
	check_ts = checks_at(walk, thread, series->last);
	return !check_ts || checks_late(interval, check_ts) ||
	       others_ran(walk, waiting, thread, interval, check_ts, series->waker.thread);
}
