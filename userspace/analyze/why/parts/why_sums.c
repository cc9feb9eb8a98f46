// SPDX-License-Identifier: Apache-2.0
/* The steps of the path, and the sums of the time that each cause took. */
#include "analyze/why/parts/why_sums.h"

#include <string.h>

#include "analyze/why/lookup/why_go.h"
#include "analyze/why/parts/why_locks.h"
#include "analyze/why/parts/why_neighbours.h"
#include "analyze/why/parts/why_polls.h"
#include "analyze/why/parts/why_sampled.h"
#include "analyze/why/why_verdict.h"
#include "analyze/why/why_walk_types.h"
#include "util/hash.h"
#include "util/memory.h"

/* Sets the times of the interval that a step is a part of. */
static void set_switches(struct why_step *step, const struct why_interval *interval)
{
	uint64_t end = interval->open ? 0 : interval->to_ts;

	switch (interval->state) {
	case WAFFLE_THREAD_RUNNING:
		step->in_ts = interval->from_ts;
		step->out_ts = end;
		step->cpu = interval->cpu;
		break;
	case WAFFLE_THREAD_RUNNABLE:
		*(interval->woken ? &step->wake_ts : &step->out_ts) = interval->from_ts;
		step->in_ts = end;
		break;
	case WAFFLE_THREAD_BLOCKED:
		step->out_ts = interval->from_ts;
		step->wake_ts = end;
		break;
	}
}

struct why_step *why_walk_push(struct why_walk *walk, uint32_t thread,
			       enum waffle_thread_state state, uint64_t from, uint64_t to)
{
	static const struct why_step nothing = {
		.syscall = -1,
		.args = MODEL_NONE,
		.by = MODEL_NONE,
		.wait = MODEL_NONE,
		.cpu = MODEL_CPU_NONE,
		.from_cpu = MODEL_CPU_NONE,
		.preemptor = MODEL_NONE,
		.behind = MODEL_NONE,
		.call_thread = MODEL_NONE,
		.call_span = MODEL_NONE,
	};
	struct why_step *step = &walk->path[walk->depth++];
	const struct why_step *from_nothing = &nothing;

	/* The compiler copies a structure of this size faster than it clears it, which it would do
	 * if it knew what it copies. */
	__asm__("" : "+r"(from_nothing));
	*step = *from_nothing;
	step->from_ts = from;
	step->to_ts = to;
	step->thread = thread;
	step->state = state;
	step->span = why_intervals_span(&walk->intervals, thread, from, &walk->span_until);
	if (why_intervals_doubts(&walk->intervals, thread, step->span, from))
		step->span = MODEL_NONE;
	if (walk->interval && state && !walk->no_chains)
		set_switches(step, walk->interval);
	return step;
}

bool why_walk_is_on_path(const struct why_walk *walk, uint32_t thread)
{
	for (uint32_t i = 0; i < walk->depth; i++)
		if (walk->path[i].thread == thread)
			return true;
	return false;
}

static bool sum_is(const struct why_sum *sum, const struct why_part *part, uint32_t site)
{
	return sum->part.cause == part->cause && sum->part.thread == part->thread &&
	       sum->part.object == part->object && sum->part.idle == part->idle &&
	       sum->site == site;
}

static uint64_t sum_hash(const struct why_part *part, uint32_t site)
{
	uint64_t hash = part->cause + ((uint64_t)part->thread << 5) +
			((uint64_t)part->object << 20) + ((uint64_t)site << 40);

	return hash_number(hash);
}

/* Returns an existing sum. Otherwise MODEL_NONE, and *slot is the free slot for it; NULL: no slot
 * is free nearby. */
static uint32_t sum_look_up(struct why_walk *walk, const struct why_part *part, uint32_t site,
			    struct why_sum_slot **slot)
{
	uint32_t hash = (uint32_t)(sum_hash(part, site) >> (64 - WHY_SUM_BITS));
	uint32_t found;

	for (uint32_t i = 0; i < WHY_SUM_PROBES; i++) {
		*slot = &walk->slots[(hash + i) % (1u << WHY_SUM_BITS)];
		if ((*slot)->instance != walk->instances)
			return MODEL_NONE;
		if (sum_is(&walk->sums.data[(*slot)->sum], part, site))
			return (*slot)->sum;
	}
	*slot = NULL;
	found = map_get(&walk->more_sums, sum_hash(part, site));
	while (found != MODEL_NONE && !sum_is(&walk->sums.data[found], part, site)) {
		walk->why->searched++;
		found = walk->sums.data[found].next;
	}
	return found;
}

static struct why_sum *sum_find(struct why_walk *walk, const struct why_part *part, uint32_t site)
{
	struct why_sum_slot *slot;
	uint32_t found = sum_look_up(walk, part, site, &slot), next = MODEL_NONE;

	if (found != MODEL_NONE)
		return &walk->sums.data[found];
	walk->chains.len = walk->sums.len;
	vec_need(&walk->sums, 1);
	if (!walk->no_chains)
		vec_need(&walk->chains, 1);
	found = (uint32_t)walk->sums.len;
	if (slot) {
		*slot = (struct why_sum_slot){walk->instances, found};
	} else {
		next = map_get(&walk->more_sums, sum_hash(part, site));
		map_put(&walk->more_sums, sum_hash(part, site), found);
	}
	walk->sums.len++;
	walk->sums.data[found] = (struct why_sum){.part = *part,
						  .site = site,
						  .chain = found,
						  .sampled_first = MODEL_NONE,
						  .neighbours = MODEL_NONE,
						  .next = next};
	return &walk->sums.data[found];
}

/* Whether the chain goes through a Go program. Records belong to threads and spans to goroutines,
 * so such a chain is not certain. */
static bool is_of_goroutines(const struct why_walk *walk)
{
	for (uint32_t i = 0; walk->has_go && i < walk->depth; i++)
		if (why_is_go(walk, walk->path[i].thread))
			return true;
	return false;
}

/*
 * Whether the last step may lie outside of a wait that it explains: the wait was on another host,
 * and the step is no further from the begin or the end of the wait than their clocks may be wrong.
 */
static bool is_within_error(const struct why_walk *walk)
{
	const struct why_step *last = &walk->path[walk->depth - 1];

	for (uint32_t i = 0; walk->model->host_count > 1 && i + 1 < walk->depth; i++) {
		const struct why_step *step = &walk->path[i];
		uint64_t error = model_order_error(walk->model, step->thread, step->from_ts,
						   step[1].thread, step->from_ts);

		if (error &&
		    (last->to_ts - step->from_ts <= error || step->to_ts - last->from_ts <= error))
			return true;
	}
	return false;
}

/* The lock that the last thread of the path holds, if it is the culprit and the one before it waits
 * for that lock. Of a wait for a lock or the GIL, it is the object already. */
static uint32_t lock_held(const struct why_walk *walk, const struct why_verdict *verdict)
{
	const struct why_step *last = &walk->path[walk->depth - 1];

	if (walk->depth < 2 || why_is_lock(verdict->cause) || verdict->thread != last->thread)
		return 0;
	return last[-1].by == last->thread ? last[-1].lock : 0;
}

static bool is_of_same_process(const struct why_walk *walk, uint32_t thread)
{
	const struct model_thread *threads = walk->model->threads.data;

	return thread < walk->model->threads.len &&
	       threads[thread].pid == threads[walk->instance->thread].pid;
}

/* Whether the chain leads to the thread that the caller asks for, or on from it. */
static bool leads_through(const struct why_walk *walk, uint32_t culprit)
{
	const struct model *model = walk->model;

	if (!walk->through_tid)
		return false;
	for (uint32_t i = 0; i < walk->depth; i++)
		if (model->threads.data[walk->path[i].thread].tid == walk->through_tid)
			return true;
	return culprit < model->threads.len &&
	       model->threads.data[culprit].tid == walk->through_tid;
}

/* The wait at the end of the path, or the one before the culprit, as an index in model.waits;
 * MODEL_NONE: its stack is not known. */
static uint32_t wait_with_stack(const struct why_walk *walk)
{
	const struct why_step *last = &walk->path[walk->depth - 1];

	if (last->state != WAFFLE_THREAD_BLOCKED && walk->depth > 1)
		last--;
	return last->wait < walk->model->waits.len && walk->model->waits.data[last->wait].user_stack
		       ? last->wait
		       : MODEL_NONE;
}

/* Waits of less than a threshold have no stack, and of many waits only some have. */
static void note_wait(const struct why_walk *walk, struct why_sum *sum, uint64_t ns)
{
	const struct model_wait *waits = walk->model->waits.data;
	uint32_t wait = wait_with_stack(walk), *most = &sum->part.wait;

	if (wait == MODEL_NONE)
		return;
	sum->placed_ns += ns;
	if (*most != MODEL_NONE && waits[*most].user_stack == waits[wait].user_stack) {
		sum->votes_ns += ns;
	} else if (sum->votes_ns < ns) {
		sum->votes_ns = ns - sum->votes_ns;
		*most = wait;
	} else {
		sum->votes_ns -= ns;
	}
}

/* Which of its threads a goroutine happens to run on says nothing: a Go program that is explained
 * as a whole, or that somebody waits for, is one culprit. */
static uint32_t culprit_of(const struct why_walk *walk, uint32_t thread)
{
	const struct model_process *process;

	if (walk->instance->program && is_of_same_process(walk, thread))
		return walk->instance->thread;
	if (!walk->has_go || is_of_same_process(walk, thread) || !why_is_go(walk, thread))
		return thread;
	process = model_process_of(walk->model, thread);
	return process && model_is_traced(walk->model, process->main_thread) ? process->main_thread
									     : thread;
}

void why_walk_add(struct why_walk *walk, const struct why_verdict *verdict)
{
	const struct why_step *last = &walk->path[walk->depth - 1];
	enum why_grade grade = verdict->grade;
	struct why_part part = {.cause = verdict->cause,
				.grade = grade,
				.thread = verdict->thread,
				.threads = verdict->thread != MODEL_NONE,
				.processes = verdict->thread != MODEL_NONE,
				.span = verdict->span,
				.object = verdict->object,
				.lock = lock_held(walk, verdict),
				.wait = MODEL_NONE,
				.at_end = MODEL_NONE,
				.idle = verdict->idle};
	uint64_t ns = last->to_ts - last->from_ts;
	uint32_t site = MODEL_NONE;
	struct why_sum *sum;

	part.thread = culprit_of(walk, part.thread);
	if (part.span != MODEL_NONE) {
		site = walk->model->spans.data[part.span].site;
		if (why_intervals_left(walk->model, part.span))
			grade = why_grade_least(grade, WHY_GRADE_LIKELY);
		if (why_intervals_doubts(&walk->intervals, verdict->thread, part.span,
					 last->from_ts))
			part.span = MODEL_NONE;
	}
	if (is_of_goroutines(walk) || is_within_error(walk))
		grade = why_grade_least(grade, WHY_GRADE_LIKELY);
	if (walk->unsure)
		grade = WHY_GRADE_UNKNOWN;
	sum = sum_find(walk, &part, site);
	sum->part.ns += ns;
	sum->part.through_ns += leads_through(walk, part.thread) ? ns : 0;
	sum->part.pool_wait_ns += verdict->pool_wait ? ns : 0;
	sum->part.ran_ns += last->state == WAFFLE_THREAD_RUNNING ? ns : 0;
	sum->part.stretches++;
	sum->grade_ns[grade] += ns;
	if (sum->part.lock != part.lock)
		sum->part.lock = 0;
	why_locks_add(walk, verdict, ns);
	why_polls_add(&sum->part.polls, &verdict->polls);
	why_sampled_add(walk, sum, verdict);
	why_neighbours_add(walk, sum, &verdict->disk);
	note_wait(walk, sum, ns);
	if (ns > sum->longest_ns) {
		sum->longest_ns = ns;
		sum->part.span = part.span;
		if (walk->no_chains)
			return;
		sum->part.step_count = walk->depth;
		memcpy(walk->chains.data[sum->chain].steps, walk->path,
		       walk->depth * sizeof(*walk->path));
	}
}

void why_walk_join(struct why_walk *walk, const struct why_verdict *verdict)
{
	const struct why_step *last = &walk->path[walk->depth - 1];
	struct why_sum *sum = &walk->sums.data[verdict->sum];
	uint64_t ns = last->to_ts - last->from_ts;

	why_locks_add(walk,
		      &(struct why_verdict){.cause = sum->part.cause,
					    .thread = MODEL_NONE,
					    .object = sum->part.object},
		      ns);
	sum->part.through_ns += sum->part.through_ns > sum->part.ns / 2 ? ns : 0;
	sum->part.ns += ns;
	sum->part.open_ns += ns;
	sum->part.stretches++;
	sum->grade_ns[walk->unsure ? WHY_GRADE_UNKNOWN : WHY_GRADE_LIKELY] += ns;
}

struct why_verdict why_verdict_end(const struct why_walk *walk, enum why_cause cause,
				   enum why_grade grade, uint32_t thread, uint32_t object)
{
	const struct why_step *last = &walk->path[walk->depth - 1];
	uint64_t until;

	return (struct why_verdict){
		.kind = WHY_VERDICT_END,
		.thread = thread,
		.cause = cause,
		.grade = grade,
		.span = why_intervals_span(&walk->intervals, thread, last->from_ts, &until),
		.object = object};
}
