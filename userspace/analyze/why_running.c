// SPDX-License-Identifier: Apache-2.0
/* Splits time on a CPU into code that ran, page faults and time that a hypervisor stole. */
#include "analyze/why_walk.h"

#include <string.h>

/* A thread's time on one CPU without a break. */
struct stretch {
	uint32_t thread;
	uint16_t cpu;
	uint64_t from_ts, to_ts;
	const struct why_link *link; /* NULL: the instance's own thread */
	const struct why_await *await;
};

static enum why_cause running_cause(const struct why_link *link)
{
	if (!link)
		return WHY_RUNNING;
	switch (link->kind) {
	case WAIT_MUTEX:
		return WHY_LOCK;
	case WAIT_GIL:
		return WHY_GIL;
	case WAIT_PIPE:
		return WHY_PIPE;
	case WAIT_SOCKET:
		return WHY_SOCKET;
	case WAIT_CHILD:
		return WHY_PROCESS_EXIT;
	case WAIT_COLLECTIVE:
		return WHY_COLLECTIVE;
	default:
		return WHY_USER_WORK;
	}
}

static uint64_t overlap(uint64_t a_from, uint64_t a_to, uint64_t b_from, uint64_t b_to)
{
	uint64_t from = a_from > b_from ? a_from : b_from, to = a_to < b_to ? a_to : b_to;

	return from < to ? to - from : 0;
}

/* ---- stolen ---- */

#define STOLEN_TEXT "stolen by the hypervisor"

/* The time stolen between `from` and `to`. A record does not say when in its period the time was
 * stolen, so we spread it evenly. It is certain only if the whole period lies in the stretch. */
static uint64_t stolen_ns(const struct model *model, const struct stretch *stretch, uint64_t from,
			  uint64_t to, enum why_grade *grade)
{
	uint64_t sum = 0;

	*grade = WHY_GRADE_CERTAIN;
	for (size_t i = model_stolen_after(model, stretch->thread, from); i < model->stolen.len;
	     i++) {
		const struct model_stolen *stolen = &model->stolen.data[i];
		uint64_t common;

		if (stolen->thread != stretch->thread || stolen->from_ts >= to)
			break;
		common = overlap(from, to, stolen->from_ts, stolen->to_ts);
		sum += (uint64_t)((double)stolen->stolen_ns * (double)common /
				  (double)(stolen->to_ts - stolen->from_ts));
		if (stolen->by_tick || stolen->from_ts < stretch->from_ts ||
		    stolen->to_ts > stretch->to_ts)
			*grade = WHY_GRADE_LIKELY;
	}
	return sum < to - from ? sum : to - from;
}

static int add_stolen(struct why_walk *walk, const struct stretch *stretch, uint64_t from,
		      uint64_t to, enum why_grade grade)
{
	int result;

	if (from >= to)
		return 0;
	why_walk_push(walk, stretch->thread, WAFFLE_THREAD_RUNNABLE, from, to)->object =
		strtab_add(walk->why->texts, STOLEN_TEXT, strlen(STOLEN_TEXT));
	result = why_walk_add(walk, WHY_CPU_CONTENTION,
			      stretch->link ? why_grade_least(grade, stretch->link->grade) : grade,
			      MODEL_NONE, walk->path[walk->depth - 1].object);
	walk->depth--;
	return result;
}

/* ---- code ---- */

/* Adds code that ran in one span. Stolen time is put at its end. */
static int add_code(struct why_walk *walk, const struct stretch *stretch, uint64_t from,
		    uint64_t to)
{
	const struct why_link *link = stretch->link;
	enum why_cause cause = running_cause(link);
	uint32_t object = link ? link->object : 0;
	enum why_grade grade, stolen_grade;
	uint64_t until = to - stolen_ns(walk->model, stretch, from, to, &stolen_grade);
	struct why_step *step;
	int result = 0;

	if (from < until) {
		step = why_walk_push(walk, stretch->thread, WAFFLE_THREAD_RUNNING, from, until);
		step->object = object;
		if (!model_frequency(walk->model, stretch->cpu, from, until, &step->cpu_khz,
				     &step->cpu_max_khz))
			step->cpu_khz = step->cpu_max_khz = 0;
		grade = link ? link->grade : WHY_GRADE_CERTAIN;
		/* It may have been in the kernel, spinning for a lock. */
		if (walk->intervals.threads[stretch->thread].spins)
			grade = why_grade_least(grade, WHY_GRADE_LIKELY);
		/* We assume that it only polls for the end of the work. */
		result = why_gpu_spins(walk, stretch->await)
				 ? why_gpu_walk(walk, stretch->await,
						why_grade_least(grade, WHY_GRADE_LIKELY))
				 : why_walk_add(walk, cause, grade, stretch->thread, object);
		walk->depth--;
	}
	return result ? result : add_stolen(walk, stretch, until, to, stolen_grade);
}

/* Adds code that ran, one span after the other. */
static int add_running(struct why_walk *walk, const struct stretch *stretch, uint64_t from,
		       uint64_t to)
{
	int result = 0;

	while (from < to && !result) {
		uint64_t until;

		why_intervals_span(&walk->intervals, stretch->thread, from, &until);
		if (until > to)
			until = to;
		result = add_code(walk, stretch, from, until);
		from = until;
	}
	return result;
}

/* ---- page faults ---- */

/* Time per fault to enter and leave the exception, which the record does not measure. */
#define FAULT_EDGES_NS 500

static uint64_t fault_ns(const struct model_fault *fault)
{
	return fault->total_ns + (uint64_t)fault->count * FAULT_EDGES_NS;
}

/* The part of a fault record that falls into a stretch of running. A record of minor faults ends
 * when it was written, which may be long after its last fault. */
static uint64_t fault_share(const struct model_fault *fault, uint64_t from, uint64_t to)
{
	uint64_t length = fault->to_ts - fault->from_ts, ns = fault_ns(fault);
	uint64_t common = overlap(from, to, fault->from_ts, fault->to_ts);

	if (!common || (fault->major && fault->count <= 1) || length <= ns)
		return common;
	if (fault->count <= 1)
		return overlap(from, to, fault->from_ts, fault->from_ts + ns);
	return (uint64_t)((double)ns * ((double)common / (double)length));
}

/* Takes the page faults out of the running time, each record at its own time. */
int why_walk_running(struct why_walk *walk, uint32_t thread, const struct why_interval *interval,
		     uint64_t from, uint64_t to, const struct why_link *link,
		     const struct why_await *await)
{
	struct stretch stretch = {thread, interval->cpu, from, to, link, await};
	const struct model *model = walk->model;
	const struct model_fault *fault = why_fault_during(model, thread, from, to);
	const struct model_fault *end = fault ? model->faults.data + model->faults.len : NULL;
	int result = 0;

	for (; fault && fault < end && fault->thread == thread && fault->from_ts < to && !result;
	     fault++) {
		uint64_t at = fault->from_ts > from ? fault->from_ts : from;
		uint64_t ns = fault_share(fault, at, to);
		uint32_t file = 0;

		if (!ns)
			continue;
		if (fault->major)
			file = why_mapped_file(walk, model->threads.data[thread].pid,
					       fault->address, fault->from_ts);
		result = add_running(walk, &stretch, from, at);
		if (!result)
			result = why_walk_leaf(
				walk, thread, WAFFLE_THREAD_RUNNING, at, at + ns,
				fault->major ? WHY_PAGE_FAULT_MAJOR : WHY_PAGE_FAULT_MINOR,
				why_grade_least(fault->count == 1 ? WHY_GRADE_CERTAIN
								  : WHY_GRADE_LIKELY,
						link ? link->grade : WHY_GRADE_CERTAIN),
				file);
		from = at + ns;
	}
	return result ? result : add_running(walk, &stretch, from, to);
}
