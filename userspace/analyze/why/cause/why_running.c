// SPDX-License-Identifier: Apache-2.0
/* Splits time on a CPU into code that ran, page faults and time that a hypervisor stole. */
#include "analyze/why/cause/why_running.h"

#include <string.h>

#include "analyze/why/await/why_await.h"
#include "analyze/why/lookup/why_evidence.h"
#include "analyze/why/lookup/why_lookup.h"
#include "analyze/why/parts/why_sums.h"
#include "analyze/why/why_verdict.h"
#include "analyze/why/why_walk_types.h"
#include "util/memory.h"

enum why_cause why_cause_behind(const struct why_link *link)
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
static uint64_t stolen_ns(const struct model *model, const struct why_running *running,
			  uint64_t from, uint64_t to, enum why_grade *grade)
{
	uint64_t sum = 0;

	*grade = WHY_GRADE_CERTAIN;
	for (size_t i = model_stolen_after(model, running->of->thread, from); i < model->stolen.len;
	     i++) {
		const struct model_stolen *stolen = &model->stolen.data[i];
		uint64_t common;

		if (stolen->thread != running->of->thread || stolen->from_ts >= to)
			break;
		common = overlap(from, to, stolen->from_ts, stolen->to_ts);
		sum += (uint64_t)((double)stolen->stolen_ns * (double)common /
				  (double)(stolen->to_ts - stolen->from_ts));
		if (stolen->by_tick || stolen->from_ts < running->of->from ||
		    stolen->to_ts > running->of->to)
			*grade = WHY_GRADE_LIKELY;
	}
	return sum < to - from ? sum : to - from;
}

static struct why_verdict stolen_verdict(struct why_walk *walk, const struct why_running *running)
{
	uint32_t object = strtab_put(walk->why->texts, STOLEN_TEXT, strlen(STOLEN_TEXT));

	why_walk_push(walk, running->of->thread, WAFFLE_THREAD_RUNNABLE, running->at,
		      running->stolen_until)
		->object = object;
	return why_verdict_end(walk, WHY_CPU_CONTENTION,
			       why_grade_least(running->stolen_grade, running->of->grade),
			       MODEL_NONE, object);
}

/* ---- code ---- */

static struct why_verdict code_verdict(struct why_walk *walk, const struct why_running *running,
				       uint64_t until)
{
	const struct why_link *link = running->of->link;
	enum why_grade grade = running->of->grade;
	struct why_step *step =
		why_walk_push(walk, running->of->thread, WAFFLE_THREAD_RUNNING, running->at, until);

	step->object = link ? link->object : 0;
	if (!model_frequency(walk->model, running->of->interval->cpu, running->at, until,
			     &step->cpu_khz, &step->cpu_max_khz))
		step->cpu_khz = step->cpu_max_khz = 0;
	/* We assume that it only polls for the end of the work. */
	if (why_await_spins(walk, &running->of->await))
		return why_await_verdict(walk, &running->of->await,
					 why_await_has_times(walk, &running->of->await)
						 ? grade
						 : why_grade_least(grade, WHY_GRADE_LIKELY));
	/* It may have been in the kernel, spinning for a lock. */
	if (why_await_polls(walk, &running->of->await) ||
	    walk->intervals.threads[running->of->thread].spins)
		grade = why_grade_least(grade, WHY_GRADE_LIKELY);
	return why_verdict_end(walk, why_cause_behind(link), grade, running->of->thread,
			       step->object);
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

/* Skips the page faults that took no time. Returns when the next one begins. */
static uint64_t fault_from(const struct why_walk *walk, struct why_running *running, uint64_t *ns)
{
	const struct model *model = walk->model;
	const struct model_fault *end =
		model->faults.len ? model->faults.data + model->faults.len : NULL;

	for (; running->fault && running->fault < end &&
	       running->fault->thread == running->of->thread &&
	       running->fault->from_ts < running->of->to;
	     running->fault++) {
		uint64_t ts = running->fault->from_ts;
		uint64_t from = ts > running->at ? ts : running->at;

		*ns = fault_share(running->fault, from, running->of->to);
		if (*ns)
			return from;
	}
	return running->of->to;
}

static struct why_verdict fault_verdict(struct why_walk *walk, const struct why_running *running,
					uint64_t ns)
{
	const struct model_fault *fault = running->fault;
	enum why_grade grade = running->of->grade;
	uint32_t file = 0;

	if (fault->major)
		file = why_mapped_file(walk, walk->model->threads.data[running->of->thread].pid,
				       fault->address, fault->from_ts);
	if (fault->count != 1)
		grade = why_grade_least(grade, WHY_GRADE_LIKELY);
	why_walk_push(walk, running->of->thread, WAFFLE_THREAD_RUNNING, running->at,
		      running->at + ns)
		->object = file;
	return why_verdict_end(walk, fault->major ? WHY_PAGE_FAULT_MAJOR : WHY_PAGE_FAULT_MINOR,
			       grade, running->of->thread, file);
}

/* ---- samples ---- */

/* A record says how long its faults took together, and not when each was. So its piece, and that of
 * the code after it, have the samples of all of the record's time, each those of its kind. */
static struct why_sampling sampling_of_faults(struct why_running *running, uint64_t ns)
{
	uint64_t end = running->at + ns, until = running->fault->to_ts;
	struct why_sampling sampling = {.from_ts = running->faults_from_ts > running->at
							   ? running->faults_from_ts
							   : running->at,
					.faults = true};

	until = until > end ? until : end;
	sampling.to_ts = until < running->of->to ? until : running->of->to;
	if (sampling.to_ts > running->faults_from_ts)
		running->faults_from_ts = sampling.to_ts;
	return sampling;
}

static struct why_sampling sampling_of_code(struct why_running *running, uint64_t until)
{
	struct why_sampling sampling = {.from_ts = running->code_from_ts,
					.to_ts = until,
					.faults_from_ts = running->faults_from_ts};

	running->code_from_ts = until;
	return sampling;
}

/* ---- pieces ---- */

struct why_running why_running_begin(const struct why_walk *walk, const struct why_stretch *stretch)
{
	return (struct why_running){
		.of = stretch,
		.at = stretch->from,
		.fault = why_fault_during(walk->model, stretch->thread, stretch->from, stretch->to),
		.code_from_ts = stretch->from,
		.faults_from_ts = stretch->from,
	};
}

/* Page faults take each record at its own time. The code between them is split by spans, with the
 * stolen time at the end of each. */
bool why_running_next(struct why_walk *walk, struct why_running *running,
		      struct why_verdict *verdict)
{
	uint64_t until, fault, ns = 0;

	if (running->at >= running->of->to)
		return false;
	if (running->at >= running->stolen_until) {
		fault = fault_from(walk, running, &ns);
		if (running->at == fault) {
			*verdict = fault_verdict(walk, running, ns);
			verdict->sampling = sampling_of_faults(running, ns);
			running->at += ns;
			running->fault++;
			return true;
		}
		why_intervals_span(&walk->intervals, running->of->thread, running->at, &until);
		running->stolen_until = until < fault ? until : fault;
		until = running->stolen_until - stolen_ns(walk->model, running, running->at,
							  running->stolen_until,
							  &running->stolen_grade);
		if (running->at < until) {
			*verdict = code_verdict(walk, running, until);
			verdict->sampling = sampling_of_code(running, until);
			running->at = until;
			return true;
		}
	}
	*verdict = stolen_verdict(walk, running);
	running->at = running->stolen_until;
	return true;
}
