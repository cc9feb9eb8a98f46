// SPDX-License-Identifier: Apache-2.0
/*
 * The time of a Go program as a whole. While one of its threads has a CPU, or waits for one, that
 * thread explains it. While all are blocked, so are all goroutines, until the first of the threads
 * is woken. So that thread's wait explains it, but a goroutine's wait for a device, a child or a
 * lock of a file comes first: it is blocked in a system call, not parked.
 *
 *	thread 1   runs | poller .......... | runs
 *	thread 2   idle | runs | idle ............
 *	explains   1    | 2    | 1 ........ | 1
 */
#include "analyze/why/lookup/why_go_program.h"

#include "analyze/why/lookup/why_evidence.h"
#include "analyze/why/lookup/why_go_idle.h"
#include "analyze/why/why_walk_types.h"
#include "util/memory.h"

static void thread_add(struct why_program *program, uint32_t thread, uint64_t from, uint64_t to)
{
	const struct why_intervals *intervals = &program->walk->intervals;
	const struct why_thread *of = &intervals->threads[thread];
	size_t at = why_intervals_after(intervals, thread, from);

	program->walk->why->searched++;
	/* It ended before, or began later. */
	if (at == of->intervals.len || of->intervals.data[at].from_ts >= to)
		return;
	if (program->count == WHY_PROGRAM_THREADS) {
		program->left_out = true;
		return;
	}
	program->threads[program->count] = thread;
	program->ranked[program->count] = 0;
	program->at[program->count++] = at;
}

void why_program_open(struct why_program *program, struct why_walk *walk, uint32_t pid,
		      uint64_t from, uint64_t to)
{
	const struct model_thread *threads = walk->model->threads.data;

	program->walk = walk;
	program->count = 0;
	program->left_out = false;
	for (size_t i = why_traced_of(walk, pid);
	     i < walk->traced.len && threads[walk->traced.data[i]].pid == pid; i++)
		thread_add(program, walk->traced.data[i], from, to);
}

/* Whether a goroutine is blocked in a system call that ends by itself, unlike a read. */
static bool is_call(enum wait_kind kind, const struct why_interval *interval)
{
	switch (kind) {
	case WAIT_FILE_READ:
	case WAIT_FILE_WRITE:
	case WAIT_FAULT:
	case WAIT_CHILD:
	case WAIT_GPU:
	case WAIT_MUTEX:
		return true;
	default:
		return interval->task_state & WAFFLE_TASK_UNINTERRUPTIBLE;
	}
}

static enum why_program_rank rank_of(struct why_walk *walk, uint32_t thread,
				     const struct why_interval *interval)
{
	const struct model_wait *wait;
	struct wait_facts facts;
	enum wait_kind kind;
	bool idle;

	if (interval->state == WAFFLE_THREAD_RUNNING)
		return WHY_PROGRAM_RUNNING;
	if (interval->state == WAFFLE_THREAD_RUNNABLE)
		return WHY_PROGRAM_RUNNABLE;
	facts = why_facts_of(walk, thread, interval, &wait);
	kind = wait_kind_of(&facts);
	idle = why_go_is_idle(walk, thread, interval);
	if (idle && kind == WAIT_SLEEP)
		return WHY_PROGRAM_MONITOR;
	if (idle && kind != WAIT_POLL)
		return WHY_PROGRAM_PARKED;
	if (!idle && !interval->open && is_call(kind, interval) && facts.call != WAIT_CALL_FUTEX &&
	    facts.call != WAIT_CALL_FUTEX2)
		return WHY_PROGRAM_CALL;
	return WHY_PROGRAM_WAITS;
}

static enum why_program_rank known_rank(struct why_program *program, uint32_t number,
					const struct why_interval *interval)
{
	if (program->ranked[number] != program->at[number] + 1) {
		program->ranks[number] = rank_of(program->walk, program->threads[number], interval);
		program->ranked[number] = program->at[number] + 1;
	}
	return program->ranks[number];
}

/* The interval of a thread at ts, or the first one afterwards. NULL: none. */
static const struct why_interval *interval_at(struct why_program *program, uint32_t number,
					      uint64_t ts)
{
	const struct why_thread *of = &program->walk->intervals.threads[program->threads[number]];
	size_t *at = &program->at[number];

	program->walk->why->searched++;
	while (*at < of->intervals.len && of->intervals.data[*at].to_ts <= ts)
		++*at;
	return *at < of->intervals.len ? &of->intervals.data[*at] : NULL;
}

struct why_program_part why_program_at(struct why_program *program, uint64_t ts, uint64_t to)
{
	struct why_program_part part = {
		.thread = MODEL_NONE, .until = to, .thread_until = UINT64_MAX};

	for (uint32_t i = 0; i < program->count; i++) {
		const struct why_interval *interval = interval_at(program, i, ts);
		uint64_t until;
		enum why_program_rank rank;

		if (!interval)
			continue;
		until = interval->from_ts > ts ? interval->from_ts : interval->to_ts;
		if (until < part.until)
			part.until = until;
		if (interval->from_ts > ts)
			continue;
		if (interval->state == WAFFLE_THREAD_BLOCKED && part.rank > WHY_PROGRAM_CALL)
			continue;
		rank = known_rank(program, i, interval);
		if (rank < part.rank || (rank == part.rank && interval->to_ts >= part.thread_until))
			continue;
		part.thread = program->threads[i];
		part.rank = rank;
		part.thread_until = interval->to_ts;
	}
	part.unsure = program->left_out && part.rank != WHY_PROGRAM_RUNNING;
	return part;
}
