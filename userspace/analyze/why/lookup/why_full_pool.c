// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/lookup/why_full_pool.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/why/lookup/why_evidence.h"
#include "analyze/why/lookup/why_pool_stack.h"
#include "util/memory.h"
#include "util/search.h"

/* ---- the threads of a process ---- */

/* So many stacks of a thread are searched for the function of a pool. */
#define STACKS_MAX 8

struct pool_thread {
	uint32_t thread;
	const struct why_pool_row *row; /* NULL: none is known */
	bool unknown;                   /* none of its stacks is known */
	uint64_t busy_ns;               /* it had a job, or waited for a CPU with one */
};

struct members {
	const struct why_walk *walk;
	struct pool_thread list[WHY_POOL_THREADS];
	uint32_t count;
	bool any;        /* the pool of one is known */
	bool cut;        /* the process has more threads */
	struct map jobs; /* user stack → whether it shows a job */
};

/* Takes one more stack of a thread. Returns whether its pool is known by now. */
static bool take_stack(const struct why_walk *walk, struct pool_thread *thread, uint32_t stack,
		       uint64_t ts)
{
	const struct why_pool_stack known = why_pool_stack(walk->names, stack, ts);

	thread->unknown &= !known.named;
	thread->row = known.row;
	return thread->row;
}

static struct pool_thread pool_thread_of(const struct why_walk *walk, uint32_t number)
{
	const struct model_wait *waits = walk->model->waits.data;
	const struct model_sample *samples = walk->model->samples.data;
	size_t wait_count = walk->model->waits.len, sample_count = walk->model->samples.len;
	size_t first = lower_bound(wait_count, i, waits[i].thread < number);
	struct pool_thread thread = {.thread = number, .unknown = true};

	for (size_t i = first; i < wait_count && i - first < STACKS_MAX; i++)
		if (waits[i].thread != number ||
		    take_stack(walk, &thread, waits[i].user_stack, waits[i].from_ts))
			break;
	if (thread.row)
		return thread;
	first = lower_bound(sample_count, i, samples[i].thread < number);
	for (size_t i = first; i < sample_count && i - first < STACKS_MAX; i++)
		if (samples[i].thread != number ||
		    take_stack(walk, &thread, samples[i].user_stack, samples[i].ts))
			break;
	return thread;
}

static void find_members(struct members *members, uint32_t pid)
{
	const struct why_walk *walk = members->walk;
	const struct model_thread *threads = walk->model->threads.data;
	size_t first = why_threads_of(walk, pid);

	for (size_t at = first; at < walk->model->threads.len; at++) {
		uint32_t thread = walk->by_pid[at];
		struct pool_thread found;

		if (threads[thread].pid != pid)
			return;
		members->cut = at - first == WHY_POOL_THREADS;
		if (members->cut)
			return;
		if (!threads[thread].traced || threads[thread].tid == pid)
			continue;
		found = pool_thread_of(walk, thread);
		members->any |= found.row != NULL;
		if (found.row || found.unknown)
			members->list[members->count++] = found;
	}
}

/* ---- what they did ---- */

/* Whether a thread had a job, or waited for a CPU with one, in an interval, if `*stack` shows a
 * job; 0: it had one. All these pools wait for jobs at a futex. Without a stack, such a wait may be
 * for a lock. */
static bool may_be_busy(const struct why_walk *walk, const struct model_interval *interval,
			uint32_t *stack)
{
	const struct model_wait *wait;

	*stack = 0;
	if (interval->state != WAFFLE_THREAD_BLOCKED)
		return true;
	if (interval->syscall != walk->intervals.futex)
		return interval->syscall >= 0;
	wait = model_wait_at(walk->model, interval->thread, interval->from_ts);
	*stack = wait ? wait->user_stack : 0;
	return *stack;
}

struct adding {
	struct why_walk *walk;
	struct map at; /* thread and stack → index in walk->pool_times */
};

static int add_time(const struct model_interval *interval, void *arg)
{
	struct adding *adding = arg;
	struct why_walk *walk = adding->walk;
	uint32_t stack, at;
	uint64_t key;

	walk->why->searched++;
	if (!may_be_busy(walk, interval, &stack))
		return 0;
	key = (uint64_t)interval->thread << 32 | stack;
	at = map_get(&adding->at, key);
	if (at == MAP_NONE) {
		at = (uint32_t)walk->pool_times.len;
		map_put(&adding->at, key, at);
		vec_add(&walk->pool_times,
			(struct why_pool_time){interval->thread, stack, interval->from_ts, 0});
	}
	walk->pool_times.data[at].ns += interval->to_ts - interval->from_ts;
	return 0;
}

static int by_thread(const void *left, const void *right)
{
	const struct why_pool_time *a = left, *b = right;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	return a->ts < b->ts ? -1 : a->ts > b->ts;
}

/* Reads the capture once for the threads of all processes. */
static void find_times(struct why_walk *walk)
{
	struct adding adding = {.walk = walk};

	if (walk->pool_times_known)
		return;
	walk->pool_times_known = true;
	model_each_interval_by_thread(walk->model, add_time, &adding);
	map_free(&adding.at);
	if (walk->pool_times.len)
		qsort(walk->pool_times.data, walk->pool_times.len, sizeof(*walk->pool_times.data),
		      by_thread);
}

static bool shows_job(struct members *members, const struct why_pool_time *time)
{
	uint32_t known = map_get(&members->jobs, time->stack);
	struct why_pool_stack stack;

	if (known != MAP_NONE)
		return known;
	stack = why_pool_stack(members->walk->names, time->stack, time->ts);
	map_put(&members->jobs, time->stack, why_pool_has_job(&stack));
	return why_pool_has_job(&stack);
}

static uint64_t busy_ns(struct members *members, uint32_t thread)
{
	const struct why_pool_time *times = members->walk->pool_times.data;
	size_t count = members->walk->pool_times.len;
	uint64_t ns = 0;

	for (size_t i = lower_bound(count, k, times[k].thread < thread);
	     i < count && times[i].thread == thread; i++)
		if (!times[i].stack || shows_job(members, &times[i]))
			ns += times[i].ns;
	return ns;
}

/* ---- pools ---- */

/* A thread is always busy if it has a job for all but this part of the time. */
#define IDLE_PARTS 20

/* The least time for which a thread of a pool had a job. */
static uint64_t least_busy(const struct members *members, const struct why_pool_row *row,
			   uint32_t *count)
{
	uint64_t least_ns = UINT64_MAX;

	*count = 0;
	for (uint32_t i = 0; i < members->count; i++) {
		if (members->list[i].row != row)
			continue;
		(*count)++;
		if (members->list[i].busy_ns < least_ns)
			least_ns = members->list[i].busy_ns;
	}
	return *count ? least_ns : 0;
}

/* Returns the text of a pool in why.texts. */
static uint32_t text_of(struct why_walk *walk, const struct why_pool_row *row, uint32_t first,
			uint32_t count)
{
	const struct model *model = walk->model;
	const char *name = model_thread_name(model, first);
	const char *end = row->grows ? ", unless the pool grows" : "";
	uint32_t tid = model_pid_real(model, model->threads.data[first].tid);
	char text[256];
	int len;

	if (count == 1)
		len = snprintf(text, sizeof(text),
			       "the only thread of %s, %.64s (%" PRIu32
			       "), is always busy: a further job waits for it%s",
			       row->text, name, tid, end);
	else
		len = snprintf(text, sizeof(text),
			       "all %" PRIu32 " threads of %s, such as %.64s (%" PRIu32
			       "), are always busy: a further job waits for one of them%s",
			       count, row->text, name, tid, end);
	return strtab_put(walk->why->texts, text, (size_t)len);
}

/* Whether a thread that may be of the pool, by its name, has no known stack. */
static bool may_have_more(const struct members *members, const struct why_pool_row *row)
{
	const struct pool_thread *list = members->list;

	for (uint32_t i = 0; i < members->count; i++)
		for (uint32_t k = 0; list[i].row == row && k < members->count; k++)
			if (list[k].unknown &&
			    why_pool_is_like(members->walk->model, list[i].thread, list[k].thread))
				return true;
	return false;
}

static void add_pool(struct why_walk *walk, const struct members *members,
		     const struct why_pool_row *row)
{
	uint64_t length = walk->model->end_ts - walk->model->start_ts;
	uint32_t count, text = 0;

	if (least_busy(members, row, &count) < length - length / IDLE_PARTS || !count ||
	    may_have_more(members, row))
		return;
	for (uint32_t i = 0; i < members->count; i++) {
		if (members->list[i].row != row)
			continue;
		if (!text)
			text = text_of(walk, row, members->list[i].thread, count);
		map_put(&walk->full_pools, members->list[i].thread, text);
	}
}

/* A pool whose records were dropped may have been idle meanwhile. */
static void find_pools(struct why_walk *walk, uint32_t pid)
{
	struct members *members;

	map_put(&walk->full_known, pid, 1);
	if (!walk->names ||
	    windows_touch(&walk->losses, walk->model->start_ts, walk->model->end_ts))
		return;
	members = memory_zeroed(1, sizeof(*members));
	members->walk = walk;
	find_members(members, pid);
	if (members->any && !members->cut) {
		find_times(walk);
		for (uint32_t i = 0; i < members->count; i++)
			members->list[i].busy_ns = busy_ns(members, members->list[i].thread);
		for (size_t i = 0; i < WHY_POOL_ROWS; i++)
			add_pool(walk, members, &why_pool_rows[i]);
	}
	map_free(&members->jobs);
	free(members);
}

uint32_t why_full_pool_text(struct why_walk *walk, uint32_t thread)
{
	uint32_t pid, text;

	if (!model_is_traced(walk->model, thread))
		return 0;
	pid = walk->model->threads.data[thread].pid;
	if (map_get(&walk->full_known, pid) == MAP_NONE)
		find_pools(walk, pid);
	text = map_get(&walk->full_pools, thread);
	return text == MAP_NONE ? 0 : text;
}

void why_full_pool_free(struct why_walk *walk)
{
	map_free(&walk->full_pools);
	map_free(&walk->full_known);
	vec_free(&walk->pool_times);
}
