// SPDX-License-Identifier: Apache-2.0
/* Waits that a thread ended: which thread, and whether the records prove that it was the awaited
 * one. */
#include "analyze/why_blocked.h"

#include <string.h>

/* ---- end and continuation of a chain ---- */

int why_blocked_end(struct why_walk *walk, const struct why_blocked *blocked, enum why_cause cause,
		    enum why_grade grade, uint32_t culprit)
{
	return why_walk_add(walk, cause, why_grade_least(blocked->grade, grade), culprit,
			    blocked->object);
}

bool why_blocked_is_on_path(const struct why_walk *walk, uint32_t thread)
{
	for (uint32_t i = 0; i < walk->depth; i++)
		if (walk->path[i].thread == thread)
			return true;
	return false;
}

int why_blocked_follow(struct why_walk *walk, const struct why_blocked *blocked, uint32_t thread,
		       enum why_grade grade)
{
	struct why_link link = {blocked->kind, why_grade_least(blocked->grade, grade),
				blocked->object, blocked->interval->from_ts, blocked->end_ts};

	if (walk->depth >= WHY_DEPTH_MAX)
		return why_blocked_end(walk, blocked, WHY_UNKNOWN, WHY_GRADE_UNKNOWN, MODEL_NONE);
	/* A blocked thread cannot wake anybody: these records contradict each other. */
	if (why_blocked_is_on_path(walk, thread))
		return why_blocked_end(walk, blocked, WHY_UNKNOWN, WHY_GRADE_UNKNOWN, MODEL_NONE);
	return why_walk_time(walk, thread, blocked->from, blocked->to, &link);
}

/* ---- woken ---- */

/* Ends the chain at a thread that was not recorded. */
static int end_outside(struct why_walk *walk, const struct why_blocked *blocked, uint32_t thread)
{
	switch (blocked->kind) {
	case WAIT_PIPE:
		return why_blocked_end(walk, blocked, WHY_PIPE, WHY_GRADE_LIKELY, thread);
	case WAIT_SOCKET:
		return why_blocked_end(walk, blocked, WHY_SOCKET, WHY_GRADE_LIKELY, thread);
	case WAIT_CHILD:
		return why_blocked_end(walk, blocked, WHY_PROCESS_EXIT, WHY_GRADE_LIKELY, thread);
	default:
		if (!blocked->object && model_is_own(walk->model, thread))
			return why_walk_add(walk, WHY_NOT_RECORDED,
					    why_grade_least(blocked->grade, WHY_GRADE_LIKELY),
					    thread, walk->own_text);
		return why_blocked_end(walk, blocked, WHY_NOT_RECORDED, WHY_GRADE_LIKELY, thread);
	}
}

/* The last thread of a child ends the wait, but its main thread did the awaited work. */
static uint32_t main_thread_of(const struct model *model, uint32_t thread)
{
	for (size_t i = 0; i < model->processes.len; i++)
		if (model->processes.data[i].pid == model->threads.data[thread].pid &&
		    model_is_traced(model, model->processes.data[i].main_thread))
			return model->processes.data[i].main_thread;
	return thread;
}

/* Whether only the waker shows what the thread waited for. */
static bool is_told_by_end(const struct why_blocked *blocked)
{
	return blocked->kind == WAIT_POLL ||
	       (blocked->kind == WAIT_OTHER && !blocked->facts.fault &&
		wait_has_descriptor(&blocked->facts));
}

int why_blocked_woken_by(struct why_walk *walk, struct why_blocked *blocked, enum why_grade grade)
{
	uint32_t thread = blocked->ender.thread;
	bool told_by_end = is_told_by_end(blocked);

	/* An interrupt during a system call without a stack looks like the doing of the interrupted
	 * thread. */
	if (!model_is_traced(walk->model, thread) && !blocked->ender.hints &&
	    why_blocked_polls_timer(blocked))
		return why_blocked_end(walk, blocked, WHY_TIMER, WHY_GRADE_LIKELY, blocked->thread);
	/* A kernel worker passes on what was written at the other end of a terminal. */
	if (told_by_end && !model_is_traced(walk->model, thread) &&
	    blocked->ender.hints & WHY_HINT_TERMINAL)
		return why_blocked_end(walk, blocked, WHY_PIPE, WHY_GRADE_LIKELY, MODEL_NONE);
	if (told_by_end) {
		if (blocked->ender.hints & WHY_HINT_PIPE)
			blocked->kind = WAIT_PIPE;
		else if (blocked->ender.hints & WHY_HINT_SOCKET)
			blocked->kind = WAIT_SOCKET;
	}
	if (!model_is_traced(walk->model, thread))
		return end_outside(walk, blocked, thread);
	if (blocked->kind == WAIT_CHILD)
		thread = main_thread_of(walk->model, thread);
	return why_blocked_follow(walk, blocked, thread, grade);
}

/* ---- ended by an unexpected signal ---- */

int why_blocked_signalled(struct why_walk *walk, struct why_blocked *blocked)
{
	uint32_t sender = blocked->ender.thread;

	if (blocked->ender.interrupt || sender == MODEL_NONE)
		return why_blocked_end(walk, blocked, WHY_INTERRUPT, WHY_GRADE_LIKELY, MODEL_NONE);
	blocked->kind = WAIT_OTHER;
	if (!model_is_traced(walk->model, sender))
		return end_outside(walk, blocked, sender);
	return why_blocked_follow(walk, blocked, sender, WHY_GRADE_LIKELY);
}

/* ---- locks that others held in between ---- */

/* Limits of the other threads and of their waits to check; beyond them nothing is certain. */
#define THREADS_MAX 256
#define OTHERS_MAX 256

/*
 * Whether the lock was released to another thread while this one waited. If so, the thread that
 * released it to this one may have acquired it during the wait. If not, it held the lock all the
 * time, since releasing a lock wakes a waiter. `by_others`: only releases by other threads count.
 */
static bool went_round(struct why_walk *walk, const struct why_blocked *blocked, bool by_others)
{
	const struct model *model = walk->model;
	const struct why_interval *own = blocked->interval;
	uint64_t address = blocked->facts.args[0];
	uint32_t pid = model->threads.data[blocked->thread].pid;
	size_t first = why_threads_of(walk, pid);

	for (size_t at = first; at < model->threads.len; at++) {
		uint32_t other = walk->by_pid[at];
		const struct why_thread *of = &walk->intervals.threads[other];
		size_t i;

		if (model->threads.data[other].pid != pid)
			break;
		if (at - first >= THREADS_MAX)
			return true;
		if (other == blocked->thread || other == blocked->ender.thread)
			continue;
		i = why_intervals_after(&walk->intervals, other, own->from_ts);
		for (size_t end = i + OTHERS_MAX; i < of->intervals.len; i++) {
			const struct why_interval *wait = &of->intervals.data[i];

			if (wait->to_ts >= own->to_ts)
				break;
			if (i == end)
				return true;
			if (wait->state != WAFFLE_THREAD_BLOCKED || wait->syscall != own->syscall ||
			    wait->args >= model->syscall_args.len ||
			    model->syscall_args.data[wait->args] != address)
				continue;
			if (!by_others ||
			    why_ender_of(walk, other, i).thread != blocked->ender.thread)
				return true;
		}
	}
	return false;
}

#define FUTEX_PRIVATE 128u

/* The packet may arrive while a thread of another process sends something else; that thread is not
 * the peer. */
static bool is_other_peer(struct why_walk *walk, const struct why_blocked *blocked)
{
	const struct model_thread *threads = walk->model->threads.data;
	uint32_t peer = why_socket_peer(walk, blocked->facts.object);

	return peer < walk->model->threads.len &&
	       blocked->ender.thread < walk->model->threads.len &&
	       threads[peer].pid != threads[blocked->ender.thread].pid;
}

enum why_grade why_blocked_grade_of_waker(struct why_walk *walk, const struct why_blocked *blocked)
{
	if (wait_is_guess(&blocked->facts, blocked->kind))
		return WHY_GRADE_LIKELY;
	if (blocked->kind == WAIT_SOCKET)
		return is_other_peer(walk, blocked) ? WHY_GRADE_LIKELY : WHY_GRADE_CERTAIN;
	if (!wait_has_futex(&blocked->facts, blocked->kind) ||
	    blocked->facts.told == WAIT_TOLD_ENDS)
		return WHY_GRADE_CERTAIN;
	/* The waiters for a lock shared by processes see it at other addresses. */
	if (blocked->facts.told == WAIT_TOLD_SHARED ||
	    (blocked->kind == WAIT_MUTEX && !(blocked->facts.args[1] & FUTEX_PRIVATE)))
		return WHY_GRADE_LIKELY;
	return went_round(walk, blocked, blocked->kind == WAIT_FUTEX) ? WHY_GRADE_LIKELY
								      : WHY_GRADE_CERTAIN;
}
