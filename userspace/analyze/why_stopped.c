// SPDX-License-Identifier: Apache-2.0
/* Sleeps, stops, and time that waffle-bpf itself held a thread. */
#include "analyze/why_blocked.h"

#include <signal.h>
#include <string.h>

int why_blocked_at_sleep(struct why_walk *walk, const struct why_blocked *blocked)
{
	/* It was frozen while it slept; we do not know since when. */
	if (!blocked->ender.interrupt && blocked->ender.thread != MODEL_NONE &&
	    blocked->ender.hints & WHY_HINT_THAW)
		return why_blocked_end(walk, blocked, WHY_STOPPED, WHY_GRADE_LIKELY,
				       blocked->ender.thread);
	/* A timer's interrupt ends a sleep. */
	return why_blocked_end(walk, blocked, WHY_SLEEP,
			       blocked->ender.interrupt ? WHY_GRADE_CERTAIN : WHY_GRADE_LIKELY,
			       blocked->thread);
}

/* ---- stopped ---- */

/* Whether the thread has already been stopped between ts and the interval. */
static bool was_stopped_since(const struct why_walk *walk, uint32_t thread, size_t index,
			      uint64_t ts)
{
	const struct why_thread *of = &walk->intervals.threads[thread];

	while (index-- && of->intervals.data[index].to_ts > ts)
		if (of->intervals.data[index].task_state & WAFFLE_TASK_STOPPED)
			return true;
	return false;
}

/* ---- held by waffle-bpf ---- */

/* Old captures, from before waffle-bpf used fanotify(7): BPF stopped a new program, and the program
 * counts as the sender. */
static bool is_own_stop(const struct why_blocked *blocked, const struct model_signal *signal)
{
	return signal->signo == SIGSTOP && signal->code == SI_KERNEL &&
	       signal->sender == blocked->thread && signal->target == blocked->thread;
}

bool why_blocked_is_own_hold(const struct why_walk *walk, const struct why_blocked *blocked)
{
	const char *name = blocked->facts.syscall;

	return name && (!strcmp(name, "execve") || !strcmp(name, "execveat")) &&
	       !blocked->ender.interrupt && model_is_own(walk->model, blocked->ender.thread);
}

int why_blocked_end_held(struct why_walk *walk, const struct why_blocked *blocked, uint32_t thread)
{
	return why_walk_add(walk, WHY_STOPPED, blocked->grade, thread, walk->held_text);
}

int why_blocked_at_stop(struct why_walk *walk, const struct why_blocked *blocked)
{
	const struct model_signal *signal =
		why_stopper(walk->model, blocked->thread, blocked->interval->from_ts);

	/* The signal caused an earlier stop. Something else stops the thread now, such as a
	 * tracer. */
	if (blocked->facts.task_state & WAFFLE_TASK_TRACED ||
	    (signal && was_stopped_since(walk, blocked->thread, blocked->index, signal->ts)))
		signal = NULL;
	if (signal && is_own_stop(blocked, signal))
		return why_blocked_end_held(walk, blocked, MODEL_NONE);
	if (signal && signal->sender != MODEL_NONE)
		return why_blocked_end(walk, blocked, WHY_STOPPED, WHY_GRADE_CERTAIN,
				       signal->sender);
	return why_blocked_end(walk, blocked, WHY_STOPPED, WHY_GRADE_LIKELY,
			       blocked->ender.interrupt ? MODEL_NONE : blocked->ender.thread);
}
