// SPDX-License-Identifier: Apache-2.0
/* Sleeps, stops, and time that waffle-bpf itself held a thread. */
#include "analyze/why/cause/why_blocked_internal.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "analyze/why/lookup/why_evidence.h"
#include "analyze/why/lookup/why_halted.h"
#include "analyze/why/lookup/why_lookup.h"
#include "analyze/why/lookup/why_peers.h"
#include "analyze/why/lookup/why_peers_wait.h"
#include "analyze/why/lookup/why_roots.h"
#include "analyze/why/parts/why_sums.h"
#include "analyze/why/why_verdict.h"
#include "analyze/why/why_walk_types.h"
#include "target/process/descriptors.h"
#include "util/memory.h"
#include "util/search.h"

struct why_verdict why_blocked_at_sleep(struct why_walk *walk, struct why_blocked *blocked)
{
	enum why_grade grade = blocked->waker.interrupt ? WHY_GRADE_CERTAIN : WHY_GRADE_LIKELY;
	struct why_verdict verdict;

	/* A timer's interrupt ends a sleep. */
	if (blocked->file_lock) {
		verdict = why_blocked_at_file_lock(walk, blocked);
	} else if (blocked->program_lock) {
		verdict = why_blocked_end(walk, blocked, WHY_LOCK, WHY_GRADE_LIKELY, MODEL_NONE);
	} else if (why_late_sleep(walk, blocked)) {
		/* What it does between two sleeps is little beside these, but not beside those that
		 * it has asked for. So nothing is said of polling. */
		return why_blocked_end(walk, blocked, WHY_SLEEP, grade, blocked->thread);
	} else {
		blocked->object = blocked->object ?: why_failed_request(walk, blocked);
		verdict = why_blocked_end(walk, blocked, WHY_SLEEP, grade, blocked->thread);
	}
	verdict.polls = why_polls_of(walk, blocked);
	return verdict;
}

/* ---- frozen ---- */

/* Limit of the records of a process to look at. Those of freezers come first, since they have no
 * device. */
#define FREEZERS_MAX 8

/* The cgroup with a freezer of the process; 0: it has none, or one in each version of cgroups. */
static uint64_t freezer_of(const struct model *model, uint32_t pid)
{
	const struct model_io_limit *all = model->io_limits.data;
	size_t len = model->io_limits.len;
	size_t first = lower_bound(len, k, all[k].pid < pid);
	uint64_t found = 0;

	for (size_t i = first; i < len && i - first < FREEZERS_MAX && all[i].pid == pid; i++) {
		if (!(all[i].kind & WAFFLE_IO_LIMIT_FREEZER) || all[i].cgroup == found)
			continue;
		if (found)
			return 0;
		found = all[i].cgroup;
	}
	return found;
}

/* "thawed worker (4712), whose cgroup jobs was frozen", as said of who thawed it. Without that
 * thread, "its cgroup jobs was frozen", or if another one waited for it, "worker (4712), whose …".
 */
static uint32_t frozen_text(struct why_walk *walk, const struct why_blocked *blocked, bool thawed)
{
	uint32_t thread = why_main_thread(walk, blocked->thread);
	uint32_t pid = walk->model->threads.data[thread].pid;
	uint64_t cgroup = freezer_of(walk->model, pid);
	char whose[64] = "its", text[512];
	int len;

	if (thawed || blocked->link)
		snprintf(whose, sizeof(whose), "%s%.16s (%u), whose", thawed ? "thawed " : "",
			 model_thread_name(walk->model, thread), model_pid_real(walk->model, pid));
	len = snprintf(text, sizeof(text), "%s cgroup %.400s%swas frozen", whose,
		       cgroup ? strtab_get(walk->why->texts, why_cgroup(walk, cgroup, "freezer"))
			      : "",
		       cgroup ? " " : "");
	return strtab_put(walk->why->texts, text, (size_t)len);
}

bool why_blocked_is_thawed(const struct why_blocked *blocked)
{
	return blocked->kind != WAIT_STOPPED && !blocked->waker.interrupt &&
	       blocked->waker.thread != MODEL_NONE && blocked->waker.hints & WHY_HINT_THAW;
}

struct why_verdict why_blocked_at_freeze(struct why_walk *walk, struct why_blocked *blocked)
{
	bool thread = blocked->waker.thread != MODEL_NONE && !blocked->waker.interrupt;

	/* A client's request would have woken the thread at once, if it waits for one. */
	bool asked = blocked->link && wait_may_be_at_socket(blocked->link->kind) &&
		     wait_may_be_at_socket(blocked->kind);
	/* Without the freezer's stack, the thread may have waited for something else most of the
	 * time. */
	bool frozen = blocked->stack.meaning.rule == MEANING_FROZEN ||
		      blocked->kind == WAIT_SLEEP || asked;

	blocked->object = frozen_text(walk, blocked, thread);
	/* Who thaws the cgroup need not be who has frozen it. */
	return why_blocked_end(walk, blocked, WHY_STOPPED,
			       frozen ? WHY_GRADE_LIKELY : WHY_GRADE_UNKNOWN,
			       thread ? blocked->waker.thread : MODEL_NONE);
}

/* ---- stopped ---- */

/* Limit of the intervals between a stop signal and the stop. */
#define STOP_WITHIN 1024

/* Whether the thread may already have been stopped between ts and the interval. */
static bool was_stopped_since(const struct why_walk *walk, uint32_t thread, size_t index,
			      uint64_t ts)
{
	const struct why_thread *of = &walk->intervals.threads[thread];

	for (size_t i = index; i-- && of->intervals.data[i].to_ts > ts;) {
		walk->why->searched++;
		if (of->intervals.data[i].task_state & WAFFLE_TASK_STOPPED ||
		    index - i > STOP_WITHIN)
			return true;
	}
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
	       !blocked->waker.interrupt && model_is_own(walk->model, blocked->waker.thread);
}

struct why_verdict why_blocked_end_held(struct why_walk *walk, const struct why_blocked *blocked,
					uint32_t thread)
{
	return why_verdict_end(walk, WHY_STOPPED, blocked->grade, thread, walk->own_hold_text);
}

/* The process that waits for a stopped one is not the one that is stopped: "memcached (4711), which
 * has been stopped since before the capture began", or with the tracer as the culprit "which has
 * stopped memcached (4711)". */
static uint32_t stopped_text(struct why_walk *walk, const struct why_blocked *blocked,
			     bool has_tracer)
{
	const struct model *model = walk->model;
	const struct model_open_wait *wait = model_open_wait_of(model, blocked->thread);
	const char *name = model_thread_name(model, blocked->thread);
	uint32_t tid = model_pid_real(model, model->threads.data[blocked->thread].tid);
	char text[128];
	int len = has_tracer
			  ? snprintf(text, sizeof(text), "which has stopped %.64s (%u)", name, tid)
		  : wait && wait->before
			  ? snprintf(text, sizeof(text),
				     "%.64s (%u), which has been stopped since before %s", name,
				     tid, why_recorded_text(model, blocked->thread))
			  : snprintf(text, sizeof(text), "%.64s (%u), which is stopped", name, tid);

	return strtab_put(walk->why->texts, text, (size_t)len);
}

/* No record shows who stopped it. */
static struct why_verdict at_halt(struct why_walk *walk, struct why_blocked *blocked)
{
	uint32_t tracer = why_tracer_of(walk, blocked->thread);

	if (blocked->link)
		blocked->object = stopped_text(walk, blocked, tracer != MODEL_NONE);
	return why_blocked_end(walk, blocked, WHY_STOPPED, WHY_GRADE_LIKELY, tracer);
}

struct why_verdict why_blocked_at_stop(struct why_walk *walk, struct why_blocked *blocked)
{
	const struct model_signal *signal =
		why_stopper(walk->why, blocked->thread, blocked->interval->from_ts);

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
	if (blocked->interval->open)
		return at_halt(walk, blocked);
	return why_blocked_end(walk, blocked, WHY_STOPPED, WHY_GRADE_LIKELY,
			       blocked->waker.interrupt ? MODEL_NONE : blocked->waker.thread);
}

struct why_verdict why_blocked_at_halted(struct why_walk *walk, struct why_blocked *blocked)
{
	struct why_step *step = &walk->path[walk->depth - 1];
	const struct store_object *object = blocked->facts.object;
	uint32_t peer;

	if (!wait_may_be_at_socket(blocked->kind) || !object ||
	    (blocked->waker.thread != MODEL_NONE && !blocked->waker.interrupt))
		return WHY_UNDECIDED;
	/* A thread that is in no span, and that nobody waits for, waits for whatever comes. */
	if (descriptor_is_epoll(object->name))
		peer = blocked->waiting.outside
			       ? MODEL_NONE
			       : why_peer_stopped(walk, object, blocked->from, blocked->to);
	else
		peer = why_halted_peer(walk, object, blocked->from, blocked->to);
	if (peer == MODEL_NONE || why_walk_is_on_path(walk, peer))
		return WHY_UNDECIDED;
	step->by = peer;
	step->owned = blocked->interval->open;
	blocked->kind = WAIT_SOCKET;
	return why_blocked_follow(walk, blocked, peer, WHY_GRADE_LIKELY);
}
