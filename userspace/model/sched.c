// SPDX-License-Identifier: Apache-2.0
#include "model/sched_internal.h"

#include <stdlib.h>

#include "util/memory.h"

#define UNKNOWN 0

void sched_init(struct sched *sched, const struct model *model, model_interval_fn each, void *arg)
{
	*sched = (struct sched){.count = model->threads.len,
				.host_count = model->host_count,
				.each = each,
				.arg = arg};
	sched->threads = memory_zeroed(sched->count, sizeof(*sched->threads));
	sched->hosts = memory_zeroed(model->host_count, sizeof(*sched->hosts));
	for (size_t i = 0; i < sched->count; i++) {
		sched->threads[i].since = model->start_ts;
		sched->threads[i].cpu = MODEL_CPU_NONE;
		sched->threads[i].host = (uint16_t)model_host_of(model, (uint32_t)i);
	}
}

void sched_free(struct sched *sched)
{
	free(sched->threads);
	for (uint32_t i = 0; sched->hosts && i < sched->host_count; i++)
		vec_free(&sched->hosts[i].known);
	free(sched->hosts);
	sched->threads = NULL;
	sched->hosts = NULL;
}

static void give_interval(struct sched *sched, const struct sched_thread *thread, uint64_t to_ts,
			  bool open)
{
	struct model_interval interval = {
		.thread = (uint32_t)(thread - sched->threads),
		.state = thread->state,
		.from_ts = thread->since,
		.to_ts = to_ts,
		.cpu = thread->cpu,
		.task_state = 0,
		.syscall = -1,
		.args = MODEL_NONE,
		.by = MODEL_NONE,
		.open = open,
	};

	if (thread->state == WAFFLE_THREAD_BLOCKED) {
		interval.task_state = thread->task_state;
		interval.syscall = thread->syscall;
		interval.args = thread->args;
	} else if (thread->state == WAFFLE_THREAD_RUNNABLE) {
		interval.by = thread->by;
		interval.woken = thread->wake != 0;
		interval.interrupt = thread->wake & WAFFLE_SWITCH_WAKER_INTERRUPT;
	}
	sched->stopped = sched->each(&interval, sched->arg);
}

/* The state of a thread becomes known. */
static void known_add(struct sched *sched, struct sched_thread *thread)
{
	if (thread->listed)
		return;
	thread->listed = true;
	vec_add(&sched->hosts[thread->host].known, (uint32_t)(thread - sched->threads));
}

/* Ends the current state at `ts` and begins another. */
static void change(struct sched *sched, struct sched_thread *thread, uint8_t state, uint64_t ts)
{
	if (thread->state == UNKNOWN && state != UNKNOWN) {
		thread->known_since = ts;
		known_add(sched, thread);
	}
	if (thread->state != UNKNOWN && ts > thread->since) {
		thread->sum[thread->state] += ts - thread->since;
		if (sched->each && !sched->stopped)
			give_interval(sched, thread, ts, false);
	}
	if (state != UNKNOWN) {
		thread->ever_known = true;
		thread->assumed = false;
	}
	thread->state = state;
	thread->since = ts;
}

/* The state does not fit what was seen at `ts`, so records are missing: the time since the state's
 * begin becomes unknown. */
static void forget(struct sched_thread *thread, uint64_t ts)
{
	thread->state = UNKNOWN;
	thread->since = ts;
}

/* The flags of a wake-up that we keep: that it is one, and whether an interrupt did it. */
static uint8_t wake_of(const struct model_switch *sw)
{
	return WAFFLE_SWITCH_WOKEN | (sw->flags & WAFFLE_SWITCH_WAKER_INTERRUPT);
}

/* `wake` is 0 for a preemption. */
static void become_runnable(struct sched *sched, struct sched_thread *thread, uint64_t ts,
			    uint32_t by, uint8_t wake)
{
	change(sched, thread, WAFFLE_THREAD_RUNNABLE, ts);
	thread->by = by;
	thread->wake = wake;
}

static void switch_out(struct sched *sched, const struct model_switch *sw)
{
	struct sched_thread *thread = &sched->threads[sw->prev];
	bool blocks = model_switch_blocks(sw);

	/* A state read from outside does not distinguish running from runnable. */
	if (thread->assumed && thread->state == WAFFLE_THREAD_RUNNABLE)
		thread->state = WAFFLE_THREAD_RUNNING;
	if (thread->state != WAFFLE_THREAD_RUNNING)
		forget(thread, sw->ts);
	thread->cpu = sw->cpu;
	if (sched->hosts[thread->host].blind ||
	    (blocks && sw->prev_state & (WAFFLE_TASK_DEAD | WAFFLE_TASK_ZOMBIE))) {
		change(sched, thread, UNKNOWN, sw->ts);
	} else if (blocks) {
		change(sched, thread, WAFFLE_THREAD_BLOCKED, sw->ts);
		thread->task_state = sw->prev_state;
		thread->syscall = sw->syscall;
		thread->args = sw->args;
	} else {
		become_runnable(sched, thread, sw->ts, sw->next, 0);
	}
}

/* Adds the wake-up before a switch-in, if the thread's state allows it. */
static void wake_before(struct sched *sched, struct sched_thread *thread,
			const struct model_switch *sw)
{
	uint64_t ts = sw->wake_ts > thread->since ? sw->wake_ts : thread->since;

	if (thread->state == UNKNOWN && ts < sched->hosts[thread->host].lost_until)
		ts = sched->hosts[thread->host].lost_until;
	if (ts > sw->ts)
		ts = sw->ts;
	if (thread->state == WAFFLE_THREAD_BLOCKED || thread->state == UNKNOWN) {
		become_runnable(sched, thread, ts, sw->waker, wake_of(sw));
	} else if (thread->assumed && thread->state == WAFFLE_THREAD_RUNNABLE) {
		thread->by = sw->waker;
		thread->wake = wake_of(sw);
	}
}

static void switch_in(struct sched *sched, const struct model_switch *sw)
{
	struct sched_thread *thread = &sched->threads[sw->next];

	if (thread->state == WAFFLE_THREAD_RUNNING) {
		if (thread->assumed) {
			thread->state = WAFFLE_THREAD_RUNNABLE;
			thread->by = MODEL_NONE;
			thread->wake = 0;
		} else {
			forget(thread, sw->ts);
		}
	}
	if (sw->flags & WAFFLE_SWITCH_WOKEN && !sched->hosts[thread->host].blind)
		wake_before(sched, thread, sw);
	change(sched, thread, sched->hosts[thread->host].blind ? UNKNOWN : WAFFLE_THREAD_RUNNING,
	       sw->ts);
	thread->cpu = sw->cpu;
}

void sched_switch(struct sched *sched, const struct model_switch *sw)
{
	/* The capture has all switches of a traced thread, but only some of its neighbours'. */
	if (sw->prev != MODEL_NONE && sw->flags & WAFFLE_SWITCH_PREV_TRACED)
		switch_out(sched, sw);
	if (sw->next != MODEL_NONE && sw->flags & WAFFLE_SWITCH_NEXT_TRACED)
		switch_in(sched, sw);
}

void sched_wake(struct sched *sched, const struct model_switch *sw)
{
	struct sched_thread *thread;

	if (sw->next == MODEL_NONE || !(sw->flags & WAFFLE_SWITCH_NEXT_TRACED))
		return;
	thread = &sched->threads[sw->next];
	if (!sched->hosts[thread->host].blind && thread->state == WAFFLE_THREAD_BLOCKED &&
	    sw->wake_ts >= thread->since)
		become_runnable(sched, thread, sw->wake_ts, sw->waker, wake_of(sw));
}

void sched_state(struct sched *sched, const struct model_state *state)
{
	struct sched_thread *thread = &sched->threads[state->thread];

	if (state->at_end || sched->hosts[thread->host].blind || thread->ever_known)
		return;
	change(sched, thread, state->state, state->ts);
	thread->assumed = true;
	thread->cpu = state->cpu;
	thread->task_state = state->task_state;
	thread->syscall = state->syscall;
	thread->args = state->args;
	thread->by = MODEL_NONE;
	thread->wake = 0;
}

void sched_hit(struct sched *sched, uint32_t index, uint64_t ts)
{
	struct sched_thread *thread = &sched->threads[index];

	if (sched->hosts[thread->host].blind)
		return;
	if (thread->state == UNKNOWN) {
		change(sched, thread, WAFFLE_THREAD_RUNNING, ts);
	} else if (thread->assumed) {
		if (thread->state == WAFFLE_THREAD_RUNNABLE)
			thread->state = WAFFLE_THREAD_RUNNING;
		if (thread->state == WAFFLE_THREAD_BLOCKED && ts > thread->since) {
			forget(thread, ts);
			change(sched, thread, WAFFLE_THREAD_RUNNING, ts);
		}
		thread->assumed = false;
	}
}

void sched_exit(struct sched *sched, uint32_t index, uint64_t ts)
{
	struct sched_thread *thread = &sched->threads[index];

	if (thread->state != UNKNOWN && ts >= thread->since)
		change(sched, thread, UNKNOWN, ts);
}

void sched_unrecorded(struct sched *sched, uint32_t index, uint64_t ts)
{
	struct sched_thread *thread = &sched->threads[index];

	if (thread->state == UNKNOWN || ts <= thread->since)
		return;
	thread->sum[thread->state] += ts - thread->since;
	if (sched->each && !sched->stopped)
		give_interval(sched, thread, ts, true);
	thread->state = UNKNOWN;
	thread->since = ts;
}

static int index_compare(const void *left, const void *right)
{
	const uint32_t *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

/* Only threads whose state is known have something to lose. Each of them needs a record to be known
 * again, so all losses together cost no more than the records. */
void sched_loss_begin(struct sched *sched, uint32_t host, uint64_t ts)
{
	struct sched_host *of = &sched->hosts[host];

	if (of->known.len)
		qsort(of->known.data, of->known.len, sizeof(*of->known.data), index_compare);
	for (size_t i = 0; i < of->known.len; i++) {
		struct sched_thread *thread = &sched->threads[of->known.data[i]];

		thread->listed = false;
		change(sched, thread, UNKNOWN, ts > thread->since ? ts : thread->since);
	}
	of->known.len = 0;
	of->blind = true;
}

void sched_loss_end(struct sched *sched, uint32_t host, uint64_t ts)
{
	sched->hosts[host].lost_until = ts;
	sched->hosts[host].blind = false;
}

void sched_finish(struct sched *sched, uint64_t ts)
{
	for (size_t i = 0; i < sched->count; i++) {
		struct sched_thread *thread = &sched->threads[i];

		if (thread->state == UNKNOWN || ts <= thread->since)
			continue;
		thread->sum[thread->state] += ts - thread->since;
		if (sched->each && !sched->stopped)
			give_interval(sched, thread, ts, true);
		thread->since = ts;
	}
}
