// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/walk/why_walk.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/why/await/why_await.h"
#include "analyze/why/cause/why_blocked.h"
#include "analyze/why/cause/why_go_answers.h"
#include "analyze/why/cause/why_late.h"
#include "analyze/why/cause/why_running.h"
#include "analyze/why/lookup/why_cpus.h"
#include "analyze/why/lookup/why_evidence.h"
#include "analyze/why/lookup/why_full_pool.h"
#include "analyze/why/lookup/why_go_busy.h"
#include "analyze/why/lookup/why_go_idle.h"
#include "analyze/why/lookup/why_go_program.h"
#include "analyze/why/lookup/why_lookup.h"
#include "analyze/why/lookup/why_peers.h"
#include "analyze/why/lookup/why_pool.h"
#include "analyze/why/lookup/why_quota.h"
#include "analyze/why/lookup/why_roots.h"
#include "analyze/why/lookup/why_signals.h"
#include "analyze/why/lookup/why_switches.h"
#include "analyze/why/parts/why_locks.h"
#include "analyze/why/parts/why_sums.h"
#include "analyze/why/why_verdict.h"
#include "analyze/why/why_walk_types.h"
#include "util/memory.h"
#include "util/search.h"

void why_walk_prepare(struct why_walk *walk, const struct why_walk *like,
		      const struct gpu_timeline *timeline)
{
	walk->shared = like;
	if (!like)
		why_await_init(&walk->awaits, walk->model, timeline);
	why_evidence_init(walk, like);
	why_go_answers_init(walk, like);
	why_signals_init(walk);
}

void why_walk_free(struct why_walk *walk)
{
	why_await_free(&walk->awaits);
	why_intervals_free(&walk->intervals);
	windows_free(&walk->losses);
	windows_free(&walk->all_losses);
	stack_mappings_close(walk->mappings);
	map_free(&walk->kernel_hints);
	map_free(&walk->kernel_symbols);
	map_free(&walk->stack_at);
	vec_free(&walk->stacks);
	map_free(&walk->python_of);
	map_free(&walk->futex_uses);
	map_free(&walk->program_locks);
	map_free(&walk->locks_at);
	vec_free(&walk->lock_votes);
	map_free(&walk->places);
	map_free(&walk->go_of);
	map_free(&walk->go_idle);
	map_free(&walk->go_idle_stacks);
	why_peers_free(walk);
	why_pool_free(walk);
	why_full_pool_free(walk);
	map_free(&walk->managers);
	map_free(&walk->commands);
	why_locks_clear(walk);
	map_free(&walk->signals_to);
	keymap_free(&walk->cgroups);
	map_free(&walk->files);
	why_go_answers_free(walk);
	why_go_busy_free(walk);
	why_cpus_free(walk);
	why_quota_free(walk);
	free(walk->by_pid);
	free(walk->worker_texts);
	vec_free(&walk->traced);
	vec_free(&walk->sums);
	map_free(&walk->more_sums);
	vec_free(&walk->chains);
	vec_free(&walk->sampled);
	vec_free(&walk->neighbours);
	vec_free(&walk->sample_counts);
}

/* ---- verdicts ---- */

/* Adds the path's last step as its verdict says. Only this function follows other threads. */
static void conclude(struct why_walk *walk, const struct why_verdict *verdict)
{
	const struct why_step *step = &walk->path[walk->depth - 1];
	const struct why_interval *interval = walk->interval;

	if (verdict->kind == WHY_VERDICT_FOLLOW)
		why_walk_time(walk, verdict->thread, step->from_ts, step->to_ts, &verdict->link);
	else if (verdict->kind == WHY_VERDICT_JOIN)
		why_walk_join(walk, verdict);
	else
		why_walk_add(walk, verdict);
	walk->interval = interval;
	walk->depth--;
}

/* Adds time without evidence; does nothing if there is none. */
static void add_leaf(struct why_walk *walk, uint32_t thread, enum waffle_thread_state state,
		     uint64_t from, uint64_t to, enum why_cause cause, enum why_grade grade,
		     uint32_t object)
{
	struct why_verdict verdict;

	if (from >= to)
		return;
	why_walk_push(walk, thread, state, from, to)->object = object;
	verdict = why_verdict_end(walk, cause, grade, thread, object);
	conclude(walk, &verdict);
}

/* ---- runnable ---- */

/* Like why_switch_after(), but searches from the last result, since most look-ups are close in
 * time. */
static size_t switch_near(struct why_walk *walk, uint64_t ts)
{
	const struct model_switch *switches = walk->model->switches.data;

	walk->switch_found = lower_bound_near(walk->model->switches.len, walk->switch_found, i,
					      switches[i].ts < ts);
	return walk->switch_found;
}

/* The index of a switch in the model. */
static uint32_t number_of(const struct why_walk *walk, const struct model_switch *sw)
{
	return (uint32_t)(sw - walk->model->switches.data);
}

/* The thread on the CPU at ts, before its switch at the place `before`: the last one switched in
 * there, unless records were dropped since. */
static uint32_t on_cpu_at(const struct why_walk *walk, uint16_t cpu, uint64_t ts, size_t before,
			  uint32_t *behind)
{
	const struct model_switch *sw = why_cpu_switch(walk, cpu, before - 1);

	if (!sw || windows_touch(&walk->losses, sw->ts, ts))
		return MODEL_NONE;
	*behind = number_of(walk, sw);
	return sw->next;
}

/* A part of the stretch, and the thread that had the CPU since switch `behind`. */
struct contention {
	const struct why_stretch *of;
	uint32_t culprit, behind;
	uint16_t cpu;
	uint64_t from, to;
	enum why_grade grade;
	bool idle; /* the CPU was idle, by the switch that brought the thread in */
};

/* The CPU was idle and woke up late, or the thread was moved there late. */
#define IDLE_TEXT "the CPU was idle: woken late"
#define IDLE_PREEMPTED_TEXT "that CPU was idle"

/* The last step, of a thread for whose work another one waits, and its pool has the CPU: that is
 * the pool's work all the same. */
static struct why_verdict contention_in_pool(struct why_walk *walk, const struct contention *part)
{
	const struct why_stretch *of = part->of;
	struct why_verdict verdict;

	if (walk->depth < 2 || why_cause_behind(of->link) != WHY_USER_WORK ||
	    !why_pool_works_for(walk, walk->path[walk->depth - 2].thread, of->thread,
				part->culprit))
		return WHY_UNDECIDED;
	verdict =
		why_verdict_end(walk, WHY_USER_WORK, why_grade_least(part->grade, WHY_GRADE_LIKELY),
				of->thread, of->link->object);
	verdict.pool_wait = true;
	return verdict;
}

static void add_contention(struct why_walk *walk, const struct contention *part)
{
	const struct why_interval *interval = part->of->interval;
	uint32_t culprit = part->culprit == part->of->thread ? MODEL_NONE : part->culprit;
	uint32_t object = 0, work = 0;
	struct why_verdict verdict;
	struct why_step *step;
	bool sure;

	if (part->from >= part->to)
		return;
	if (part->idle)
		object = strtab_put(walk->why->texts, IDLE_TEXT, strlen(IDLE_TEXT));
	step = why_walk_push(walk, part->of->thread, WAFFLE_THREAD_RUNNABLE, part->from, part->to);
	step->by = culprit;
	step->behind = culprit == MODEL_NONE ? MODEL_NONE : part->behind;
	step->cpu = part->cpu;
	step->object = object;
	if (interval->cpu != part->cpu)
		step->from_cpu = interval->cpu;
	if (!interval->woken && part->from == interval->from_ts)
		step->preemptor = interval->by;
	if (part->idle && step->preemptor != MODEL_NONE)
		step->object = strtab_put(walk->why->texts, IDLE_PREEMPTED_TEXT,
					  strlen(IDLE_PREEMPTED_TEXT));
	verdict = part->idle ? why_late_for_room(walk, part->of) : contention_in_pool(walk, part);
	if (verdict.kind != WHY_VERDICT_NONE)
		return conclude(walk, &verdict);
	if (model_is_own(walk->model, culprit))
		object = walk->own_cpu_text;
	if (!object)
		object = work = why_worker_text(walk, culprit);
	sure = culprit != MODEL_NONE && (!work || model_is_kernel(walk->model, culprit));
	verdict = why_verdict_end(
		walk, WHY_CPU_CONTENTION,
		why_grade_least(part->grade, sure ? WHY_GRADE_CERTAIN : WHY_GRADE_LIKELY), culprit,
		object);
	verdict.sampling = (struct why_sampling){
		.from_ts = part->from, .to_ts = part->to, .faults_from_ts = part->from};
	conclude(walk, &verdict);
}

/* The switch at the end of a part shows who had the CPU until then. If that is not the culprit so
 * far, it becomes the culprit: switches in between are not recorded, such as those before a traced
 * thread waited for the CPU. `end` NULL: no switch is known. */
static void set_last(struct contention *part, const struct model_switch *end)
{
	part->idle = end && end->prev == MODEL_NONE;
	if (end && part->culprit == end->prev)
		return;
	if (end) {
		part->culprit = end->prev;
		part->behind = MODEL_NONE;
	}
	part->grade = why_grade_least(part->grade, WHY_GRADE_LIKELY);
}

/* Adds the threads that ran on the awaited CPU, one after the other. */
static void walk_contention(struct why_walk *walk, const struct why_stretch *stretch, uint64_t from)
{
	const struct why_interval *interval = stretch->interval;
	const struct model_switch *in = why_switch_in(
		walk->model, switch_near(walk, interval->to_ts), stretch->thread, interval->to_ts);
	struct contention part = {.of = stretch,
				  .culprit = MODEL_NONE,
				  .behind = MODEL_NONE,
				  .cpu = in ? in->cpu : interval->cpu,
				  .from = from,
				  .to = stretch->to,
				  .grade = stretch->grade};
	const struct model_switch *sw;
	size_t at;
	enum why_grade sure = stretch->grade;

	if (part.cpu == MODEL_CPU_NONE) {
		add_contention(walk, &part);
		return;
	}
	/* If it was moved, no record says when. */
	if (!in || !(in->flags & WAFFLE_SWITCH_STAYED) ||
	    (!interval->woken && part.cpu != interval->cpu))
		sure = why_grade_least(sure, WHY_GRADE_LIKELY);
	part.grade = sure;
	at = why_cpu_after(walk, part.cpu, from);
	if (from > interval->from_ts || interval->woken || part.cpu != interval->cpu)
		part.culprit = on_cpu_at(walk, part.cpu, from, at, &part.behind);
	else
		part.culprit = interval->by;
	for (; (sw = why_cpu_switch(walk, part.cpu, at)) && sw->ts < stretch->to; at++) {
		/* The switch by which the thread lost the CPU is not one behind which it waits. */
		if (sw->ts == part.from && sw->next == part.culprit)
			continue;
		part.to = sw->ts;
		set_last(&part, sw);
		add_contention(walk, &part);
		part.from = sw->ts;
		part.culprit = sw->next;
		part.behind = number_of(walk, sw);
		part.grade = sure;
	}
	part.to = stretch->to;
	set_last(&part, sw);
	add_contention(walk, &part);
}

/* The throttled time of a runnable interval, its cgroup, and who used that up. Successive stretches
 * are often of one interval, so the last one of a thread is cached. */
static const struct why_throttled *throttled_of(struct why_walk *walk,
						const struct why_stretch *stretch)
{
	const struct why_interval *interval = stretch->interval;
	const struct model *model = walk->model;
	const struct model_quota *last = NULL;
	uint32_t thread = stretch->thread;
	struct why_throttled *known = &walk->intervals.threads[thread].throttled;
	uint64_t length = interval->to_ts - interval->from_ts;
	size_t low = why_quota_after(model, thread, interval->from_ts);

	if (known->from_ts == interval->from_ts && known->to_ts == interval->to_ts)
		return known;
	*known = (struct why_throttled){
		.from_ts = interval->from_ts, .to_ts = interval->to_ts, .culprit = thread};
	for (; low < model->quotas.len; low++) {
		const struct model_quota *quota = &model->quotas.data[low];

		if (quota->thread != thread || quota->ts > interval->to_ts)
			break;
		walk->why->searched++;
		known->ns += quota->throttled_ns < length - known->ns ? quota->throttled_ns
								      : length - known->ns;
		last = quota;
	}
	if (!last)
		return known;
	known->object = why_cgroup(walk, last->cgroup, "cpu");
	why_quota_users(walk, last, interval->from_ts, interval->from_ts + known->ns, known);
	return known;
}

/* Adds the time in which a thread was throttled. */
static void add_throttled(struct why_walk *walk, const struct why_stretch *stretch, uint64_t until,
			  const struct why_throttled *throttled)
{
	struct why_verdict verdict;
	struct why_step *step;

	if (stretch->from >= until)
		return;
	step = why_walk_push(walk, stretch->thread, WAFFLE_THREAD_RUNNABLE, stretch->from, until);
	step->object = throttled->object;
	step->meaning = throttled->meaning;
	verdict = why_verdict_end(walk, WHY_CPU_QUOTA,
				  why_grade_least(stretch->grade, throttled->unsure
									  ? WHY_GRADE_LIKELY
									  : WHY_GRADE_CERTAIN),
				  throttled->culprit, throttled->object);
	conclude(walk, &verdict);
}

/* The kernel dequeues a throttled thread and queues it again later. So the throttled time comes
 * first. */
static void walk_runnable(struct why_walk *walk, const struct why_stretch *stretch)
{
	const struct why_throttled *throttled = throttled_of(walk, stretch);
	uint64_t until = stretch->interval->from_ts + throttled->ns;

	if (until < stretch->from)
		until = stretch->from;
	if (until > stretch->to)
		until = stretch->to;
	add_throttled(walk, stretch, until, throttled);
	if (until < stretch->to)
		walk_contention(walk, stretch, until);
}

/* ---- all of it ---- */

/* The total in the instance for a state of its own thread. */
static uint64_t *state_total(struct why_instance *instance, unsigned state)
{
	switch (state) {
	case WAFFLE_THREAD_RUNNING:
		return &instance->running_ns;
	case WAFFLE_THREAD_RUNNABLE:
		return &instance->runnable_ns;
	case WAFFLE_THREAD_BLOCKED:
		return &instance->blocked_ns;
	}
	return &instance->unknown_ns;
}

static void walk_unknown(struct why_walk *walk, uint32_t thread, uint64_t from, uint64_t to)
{
	bool recorded = why_is_recorded_at(walk->model, thread, from);

	if (from < to && !walk->depth)
		walk->instance->unknown_ns += to - from;
	walk->interval = NULL;
	add_leaf(walk, thread, 0, from, to, recorded ? WHY_UNKNOWN : WHY_NOT_RECORDED,
		 WHY_GRADE_UNKNOWN, 0);
}

/* The thread has nothing to run, and the program waits for an answer of another process. */
static void walk_answer(struct why_walk *walk, const struct why_stretch *stretch,
			const struct why_go_answer *answer)
{
	const struct wait_facts facts = {.object = answer->object};
	struct why_link link = {
		.kind = WAIT_SOCKET,
		.grade = why_grade_least(stretch->grade, WHY_GRADE_LIKELY),
		.object = wait_object_text(walk->why->texts, &facts, WAIT_SOCKET),
		.from_ts = answer->from_ts,
		.until_ts = answer->to_ts,
	};
	struct why_step *step = why_walk_push(walk, stretch->thread, WAFFLE_THREAD_BLOCKED,
					      stretch->from, stretch->to);

	step->by = answer->thread;
	step->answer = true;
	step->object = link.object;
	why_walk_time(walk, answer->thread, stretch->from, stretch->to, &link);
	walk->interval = stretch->interval;
	walk->depth--;
}

/* Whether somebody waits for a Go program, and nothing but a timer of its runtime is known to have
 * ended the wait of a thread on which that has nothing to run. */
static bool is_at_timer(struct why_walk *walk, const struct why_stretch *stretch,
			const struct why_verdict *verdict)
{
	return stretch->link && verdict->kind == WHY_VERDICT_END && verdict->cause == WHY_TIMER &&
	       walk->depth < WHY_DEPTH_MAX &&
	       why_go_is_idle(walk, stretch->thread, stretch->interval);
}

#define BESIDE_CALL_TEXT "no goroutine can run, and one is in a system call"

/* A goroutine in a system call that ends by itself keeps the program from answering, rather than
 * its timer. The path ends with the wait for the timer, which is split. */
static void walk_timer(struct why_walk *walk, const struct why_stretch *stretch,
		       const struct why_verdict *timer)
{
	struct why_step *step = &walk->path[walk->depth - 1];
	const struct why_step whole = *step;
	struct why_link link = {.kind = WAIT_OTHER,
				.grade = why_grade_least(timer->grade, WHY_GRADE_LIKELY),
				.from_ts = stretch->link->from_ts,
				.until_ts = stretch->link->until_ts};
	struct why_program_part part;
	struct why_program program;

	why_program_open(&program, walk, walk->model->threads.data[stretch->thread].pid,
			 stretch->from, stretch->to);
	for (uint64_t from = stretch->from; from < stretch->to; from = part.until) {
		part = why_program_at(&program, from, stretch->to);
		*step = whole;
		step->from_ts = from;
		step->to_ts = part.until;
		if (part.rank != WHY_PROGRAM_CALL || part.unsure ||
		    why_walk_is_on_path(walk, part.thread)) {
			why_walk_add(walk, timer);
			continue;
		}
		step->by = part.thread;
		step->interrupt = !stretch->interval->open;
		step->owned = stretch->interval->open;
		step->meaning =
			strtab_put(walk->why->texts, BESIDE_CALL_TEXT, strlen(BESIDE_CALL_TEXT));
		why_walk_time(walk, part.thread, from, part.until, &link);
	}
	walk->interval = stretch->interval;
	walk->depth--;
}

static void walk_blocked(struct why_walk *walk, const struct why_stretch *stretch)
{
	struct why_stretch part = *stretch;
	const struct why_go_answer *answer;
	struct why_verdict verdict;

	for (; part.from < stretch->to; part.from = part.to) {
		part.to = stretch->to;
		answer = why_go_answer_at(walk, &part, &part.to);
		if (answer) {
			walk_answer(walk, &part, answer);
			continue;
		}
		verdict = why_blocked_verdict(walk, &part);
		if (is_at_timer(walk, &part, &verdict))
			walk_timer(walk, &part, &verdict);
		else
			conclude(walk, &verdict);
	}
}

static void walk_state(struct why_walk *walk, const struct why_stretch *stretch)
{
	struct why_stretch runnable = *stretch;
	struct why_running running;
	struct why_verdict verdict;

	walk->interval = stretch->interval;
	if (!walk->depth)
		*state_total(walk->instance, stretch->interval->state) +=
			stretch->to - stretch->from;
	switch (stretch->interval->state) {
	case WAFFLE_THREAD_RUNNING:
		running = why_running_begin(walk, stretch);
		while (why_running_next(walk, &running, &verdict))
			conclude(walk, &verdict);
		return;
	case WAFFLE_THREAD_RUNNABLE:
		if (why_await_may_wait_for_rank(walk, &stretch->await))
			runnable.grade = why_grade_least(runnable.grade, WHY_GRADE_LIKELY);
		walk_runnable(walk, &runnable);
		return;
	}
	walk_blocked(walk, stretch);
}

/* Splits a part of an interval by what the enclosing GPU calls wait for. */
static void walk_interval(struct why_walk *walk, uint32_t thread, size_t index, uint64_t from,
			  uint64_t to, const struct why_link *link)
{
	struct why_stretch stretch = {
		.thread = thread,
		.index = index,
		.interval = &walk->intervals.threads[thread].intervals.data[index],
		.from = from,
		.link = link,
		.grade = link ? link->grade : WHY_GRADE_CERTAIN,
	};

	for (; stretch.from < to; stretch.from = stretch.to) {
		stretch.to = why_await_cut(walk, thread, stretch.from, to, &stretch.await);
		walk_state(walk, &stretch);
	}
}

/* The thread that started another one, whose first interval is `first`, after `from`. MODEL_NONE:
 * it is not known, or its own time explains nothing here. */
static uint32_t starter_of(const struct why_walk *walk, uint32_t thread, uint64_t from,
			   const struct why_interval *first)
{
	uint64_t born_ts = walk->model->threads.data[thread].born_ts;

	if (born_ts <= from || born_ts > first->from_ts || first->state != WAFFLE_THREAD_RUNNABLE ||
	    !first->woken || first->interrupt || !walk->depth || walk->depth + 1 >= WHY_DEPTH_MAX ||
	    first->by == thread || !model_is_traced(walk->model, first->by) ||
	    why_walk_is_on_path(walk, first->by))
		return MODEL_NONE;
	return first->by;
}

/* Explains the time before a thread's first known interval. Before its start, what the thread did
 * that started it explains the wait for it. */
static void walk_before(struct why_walk *walk, uint32_t thread, uint64_t from,
			const struct why_interval *first, const struct why_link *link)
{
	uint32_t starter = starter_of(walk, thread, from, first);
	struct why_link started = {.kind = WAIT_OTHER,
				   .grade = WHY_GRADE_LIKELY,
				   .from_ts = from,
				   .until_ts = first->from_ts};
	struct why_step *step;

	if (starter == MODEL_NONE) {
		walk_unknown(walk, thread, from, first->from_ts);
		return;
	}
	if (link) {
		started.grade = why_grade_least(started.grade, link->grade);
		started.object = link->object;
	}
	walk->interval = NULL;
	step = why_walk_push(walk, thread, 0, from, first->from_ts);
	step->by = starter;
	step->not_started = true;
	why_walk_time(walk, starter, from, first->from_ts, &started);
	walk->depth--;
}

static void walk_states(struct why_walk *walk, uint32_t thread, uint64_t from, uint64_t to,
			const struct why_link *link)
{
	for (size_t i = why_intervals_after(&walk->intervals, thread, from);
	     i < walk->intervals.threads[thread].intervals.len && from < to; i++) {
		const struct why_interval *interval =
			&walk->intervals.threads[thread].intervals.data[i];
		uint64_t until = interval->to_ts < to ? interval->to_ts : to;

		if (interval->from_ts >= to)
			break;
		if (interval->from_ts > from) {
			walk_before(walk, thread, from, interval, link);
			from = interval->from_ts;
		}
		if (until > from)
			walk_interval(walk, thread, i, from, until, link);
		from = until;
	}
	walk_unknown(walk, thread, from, to);
}

unsigned why_walk_count_states(struct why_walk *walk, uint32_t thread, uint64_t from, uint64_t to)
{
	const struct why_thread *states = &walk->intervals.threads[thread];
	uint64_t known[WAFFLE_THREAD_BLOCKED + 1] = {0}, left = to - from;
	unsigned most = WAFFLE_THREAD_RUNNING;

	for (size_t i = why_intervals_after(&walk->intervals, thread, from);
	     i < states->intervals.len && states->intervals.data[i].from_ts < to; i++) {
		const struct why_interval *interval = &states->intervals.data[i];
		uint64_t begin = interval->from_ts > from ? interval->from_ts : from;
		uint64_t end = interval->to_ts < to ? interval->to_ts : to;

		walk->why->searched++;
		known[interval->state] += end - begin;
		left -= end - begin;
	}
	for (unsigned state = 1; state <= WAFFLE_THREAD_BLOCKED; state++) {
		if (!walk->depth)
			*state_total(walk->instance, state) += known[state];
		if (known[state] > known[most])
			most = state;
	}
	if (!walk->depth)
		walk->instance->unknown_ns += left;
	return most;
}

/* The thread waits for a rank, whatever it does meanwhile. So a step that is mostly runnable counts
 * as running: outputs explain a runnable step by the thread that had its CPU, but here the time was
 * lost to the other rank. */
static void walk_rank(struct why_walk *walk, const struct why_stretch *stretch)
{
	unsigned state = why_walk_count_states(walk, stretch->thread, stretch->from, stretch->to);
	struct why_verdict verdict;

	if (state == WAFFLE_THREAD_RUNNABLE)
		state = WAFFLE_THREAD_RUNNING;
	walk->interval = NULL;
	why_walk_push(walk, stretch->thread, state, stretch->from, stretch->to);
	verdict = why_await_verdict(walk, &stretch->await, stretch->grade);
	conclude(walk, &verdict);
}

void why_walk_time(struct why_walk *walk, uint32_t thread, uint64_t from, uint64_t to,
		   const struct why_link *link)
{
	struct why_stretch stretch = {.thread = thread,
				      .from = from,
				      .link = link,
				      .grade = link ? link->grade : WHY_GRADE_CERTAIN};

	if (!walk->awaits.mpi) {
		walk_states(walk, thread, from, to, link);
		return;
	}
	for (; stretch.from < to; stretch.from = stretch.to) {
		stretch.to = why_await_cut(walk, thread, stretch.from, to, &stretch.await);
		if (why_await_waits_for_rank(walk, &stretch.await))
			walk_rank(walk, &stretch);
		else
			walk_states(walk, thread, stretch.from, stretch.to, link);
	}
}
