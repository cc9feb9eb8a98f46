// SPDX-License-Identifier: Apache-2.0
/* Signals that ended a wait, or took the time of a thread. */
#include "analyze/why/lookup/why_signals.h"

#include <signal.h>

#include "analyze/why/lookup/why_evidence.h"
#include "analyze/why/lookup/why_lookup.h"
#include "analyze/why/why_walk_types.h"
#include "util/memory.h"

/* Time from a signal's record to the wake-up that it causes, in the same system call. */
#define SIGNAL_NS 20000u
/* Limit of the signals to search in that time. If there are more, one may have caused it. */
#define SIGNALS_MAX 64

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

/* ---- signals that take time ---- */

/* What the kernel needs at least to call a handler and to return from it: about 1 us. Signals count
 * if that is a fiftieth of the time, and if they are many: a few are no storm. */
#define HANDLER_NS 1000u
#define HANDLER_PARTS 50
#define SIGNALS_MIN 100
#define SIGNO_MAX 64

void why_signals_init(struct why_walk *walk)
{
	for (size_t i = 0; i < walk->model->signals.len; i++) {
		uint32_t target = walk->model->signals.data[i].target;
		uint32_t count = map_get(&walk->signals_to, target);

		map_put(&walk->signals_to, target, count == MAP_NONE ? 1 : count + 1);
	}
}

/* Whether so many signals may take so much of the time, at least. */
static bool may_count(uint64_t count, uint64_t ran_ns)
{
	return count >= SIGNALS_MIN && count * HANDLER_NS >= ran_ns / HANDLER_PARTS;
}

struct why_signals why_signals_of(const struct why_walk *walk, uint32_t thread, uint64_t from,
				  uint64_t to, uint64_t ran_ns)
{
	const struct model *model = walk->model;
	uint64_t counts[SIGNO_MAX + 1] = {0}, timers[SIGNO_MAX + 1] = {0};
	uint32_t most = 0, all = map_get(&walk->signals_to, thread);

	/* A signal to a process is recorded with its first thread, but any may get it. */
	if (all == MAP_NONE || !may_count(all, ran_ns) || !why_is_only_thread(walk, thread))
		return (struct why_signals){0};
	for (size_t i = why_signals_after(model, from);
	     i < model->signals.len && model->signals.data[i].ts <= to; i++) {
		const struct model_signal *signal = &model->signals.data[i];

		walk->why->searched++;
		if (signal->target != thread || signal->signo < 1 || signal->signo > SIGNO_MAX)
			continue;
		counts[signal->signo]++;
		timers[signal->signo] += signal->code == SI_TIMER;
		if (counts[signal->signo] > counts[most])
			most = (uint32_t)signal->signo;
	}
	if (!may_count(counts[most], ran_ns))
		return (struct why_signals){0};
	return (struct why_signals){counts[most], most, timers[most] == counts[most]};
}
