// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/why_first_internal.h"

#include "analyze/why/hang/why_hang.h"
#include "analyze/why/lookup/why_go.h"
#include "analyze/why/lookup/why_jvm.h"
#include "analyze/why/lookup/why_roots.h"
#include "analyze/why/lookup/why_wait.h"
#include "analyze/why/why_examined_internal.h"
#include "analyze/why/why_requests_internal.h"
#include "util/syscall_names.h"

/* A thread explains its process if it works, or is held up, for one of this many parts of the
 * capture. */
#define HELD_PARTS 2
/* It has to do with another one if its waits lead there for this part of its time. */
#define WAITS_PARTS 10

/* The same if else an idle thread of another process would be explained. */
#define IDLE_HELD_PARTS 10

struct first {
	uint32_t pid;      /* 0: no process is the first; all that are recorded count */
	uint32_t busy_tid; /* nothing is explained if a thread waits for this one; 0: none */
	/* Nor if one waits for this one, or it is held up itself: three quarters of the time, or as
	 * long as the other. 0: none. */
	uint32_t idle_tid;
	bool descendants; /* they count as well */
	bool children;    /* so do its waits for the end of any child */
	bool sleeps;      /* and its own sleeps */
	struct stack_names *names;
	uint64_t least_ns; /* a thread has to work or be held up for so long */
};

static bool first_open(struct first *first, struct why_query *query, const struct model *model)
{
	*first = (struct first){.pid = why_first_process(model),
				.names = query->names,
				.least_ns = (model->end_ts - model->start_ts) / HELD_PARTS};
	query->from_ts = model->start_ts;
	query->to_ts = model->end_ts;
	return model->end_ts > model->start_ts;
}

/* ---- how long a thread works or is held up ---- */

struct first_held {
	uint64_t ns;
	uint64_t longest_ns; /* the longest wait of these */
};

/* Whether a thread has asked a server for the next job, and the server waits for one as well. */
static bool asks_for_work(const struct why *why, const struct why_part *part)
{
	const struct model *model = why->model;
	const struct why_step *steps = &why->steps.data[part->step], *last;

	if (part->step_count < 2)
		return false;
	last = &steps[part->step_count - 1];
	return last->state == WAFFLE_THREAD_BLOCKED &&
	       model->threads.data[steps[1].thread].pid != model->threads.data[steps->thread].pid &&
	       (why_request_is_for_work(model, part->span) ||
		why_requests_are_for_work(model, last->thread, last->to_ts - 1));
}

/* Whether a thread only lets time pass, or nothing is known of its wait. While it polls, it waits
 * for something else. */
static bool is_pause(const struct why_part *part, uint32_t thread, const struct first *first)
{
	/* It may be for the busy thread. */
	if (first->busy_tid && part->grade == WHY_GRADE_UNKNOWN)
		return true;
	switch (part->cause) {
	case WHY_UNKNOWN:
	case WHY_INTERRUPT:
	case WHY_IDLE:
		return true;
	case WHY_SLEEP:
		return part->thread == thread && (!first->sleeps || part->polls.sleeps);
	case WHY_TIMER:
		return part->thread == thread;
	case WHY_PROCESS_EXIT:
		return part->thread == MODEL_NONE && !first->children;
	default:
		return part->idle || part->capture;
	}
}

/* Whether a thread waits for what a descendant of its process does or asks, or for its end: it is
 * what starts and watches those that answer the requests. One may still hold a lock that it wants.
 */
static bool is_for_descendant(const struct why *why, const struct why_part *part)
{
	const struct model *model = why->model;
	const struct why_step *step = &why->steps.data[part->step];

	if (!part->step_count || step->state != WAFFLE_THREAD_BLOCKED)
		return false;
	if (wait_call_of(syscall_name(model->meta->machine, step->syscall)) == WAIT_CALL_CHILD)
		return true;
	return step->by < model->threads.len && !step->locked && !step->owned && !step->lock &&
	       model->threads.data[step->by].pid != model->threads.data[step->thread].pid &&
	       why_is_of_first(model, step->by);
}

static struct first_held held_of(const struct why *why, const struct why_instance *instance,
				 const struct first *first)
{
	struct first_held held = {0};

	for (uint32_t i = 0; i < instance->part_count; i++) {
		const struct why_part *part = &why->parts.data[instance->part + i];
		const struct why_step *step = &why->steps.data[part->step];

		if (is_pause(part, instance->thread, first) || why_waits_for_work(why, part, 0) ||
		    asks_for_work(why, part) ||
		    (!first->descendants && is_for_descendant(why, part)))
			continue;
		held.ns += part->ns;
		if (part->step_count && step->state == WAFFLE_THREAD_BLOCKED &&
		    step->to_ts - step->from_ts > held.longest_ns)
			held.longest_ns = step->to_ts - step->from_ts;
	}
	return held;
}

/* ---- the thread, or the Go program ---- */

static bool is_of_first(const struct first *first, const struct model *model, uint32_t thread)
{
	if (first->descendants)
		return !first->pid || why_is_of_first(model, thread);
	return model->threads.data[thread].pid == first->pid;
}

static bool is_candidate(const struct model *model, uint32_t thread, const void *arg)
{
	const struct first *first = arg;
	const struct model_thread *of = &model->threads.data[thread];

	return is_of_first(first, model, thread) &&
	       of->running_ns + of->runnable_ns + of->blocked_ns >= first->least_ns &&
	       !why_jvm_is_own_thread(model, first->names, thread);
}

/* The main thread of the process; else, of those that are held up for long, the one that waits
 * longest at a time. MODEL_NONE: none is. */
static uint32_t held_thread(const struct why *why, const struct first *first)
{
	uint64_t longest_ns = 0;
	uint32_t found = MODEL_NONE;

	for (size_t i = 0; i < why->instances.len; i++) {
		const struct why_instance *instance = &why->instances.data[i];
		struct first_held held = held_of(why, instance, first);

		if (held.ns < first->least_ns)
			continue;
		if (why->model->threads.data[instance->thread].tid == first->pid)
			return instance->thread;
		if (found == MODEL_NONE || held.longest_ns > longest_ns) {
			found = instance->thread;
			longest_ns = held.longest_ns;
		}
	}
	return found;
}

/* How long a thread works or is held up; 0: it was not examined. */
static uint64_t held_ns(const struct why *why, const struct first *first, uint32_t tid)
{
	for (size_t i = 0; i < why->instances.len; i++) {
		const struct why_instance *instance = &why->instances.data[i];

		if (why->model->threads.data[instance->thread].tid == tid)
			return held_of(why, instance, first).ns;
	}
	return 0;
}

/* Whether a thread's chains lead to the busy or idle one, or on from it, for long enough. */
static bool waits_for_other(const struct why *why, const struct first *first)
{
	for (size_t i = 0; i < why->instances.len; i++) {
		const struct why_instance *instance = &why->instances.data[i];
		uint64_t ns = 0;

		if (why->model->threads.data[instance->thread].tid == first->idle_tid)
			continue;
		for (uint32_t k = 0; k < instance->part_count; k++)
			ns += why->parts.data[instance->part + k].through_ns;
		if (ns && ns >= (instance->to_ts - instance->from_ts) / WAITS_PARTS)
			return true;
	}
	return false;
}

/* A parent that waits for any of its children, or sleeps, says less than another thread. */
static uint32_t explaining_thread(const struct why *why, const struct first *first)
{
	const struct model_thread *threads = why->model->threads.data;
	uint64_t idle_ns = first->idle_tid ? held_ns(why, first, first->idle_tid) : 0;
	struct first more = *first;
	uint32_t found;

	if ((first->busy_tid || first->idle_tid) && waits_for_other(why, first))
		return MODEL_NONE;
	if (idle_ns >= first->least_ns + first->least_ns / 2)
		return MODEL_NONE;
	found = held_thread(why, &more);
	if (idle_ns >= first->least_ns &&
	    (found == MODEL_NONE || held_ns(why, first, threads[found].tid) <= idle_ns))
		return MODEL_NONE;
	more.children = true;
	if (found == MODEL_NONE)
		found = held_thread(why, &more);
	more.sleeps = true;
	return found == MODEL_NONE && first->busy_tid ? held_thread(why, &more) : found;
}

static bool choose_thread(struct why_query *query, const struct model *model,
			  const struct first *first)
{
	struct why_window windows[WHY_EXAMINED_MAX];
	struct why_query threads = {.windows = windows,
				    .through_tid = first->busy_tid ?: first->idle_tid ?: first->pid,
				    .names = first->names};
	struct error err = ERROR_INIT;
	struct why *why;
	uint32_t found;

	threads.window_count = why_examined_choose(windows, model, query, is_candidate, first);
	if (!threads.window_count || why_new(&why, model, &threads, &err))
		return false;
	found = explaining_thread(why, first);
	why_free(why);
	if (found == MODEL_NONE)
		return false;
	query->tid = model->threads.data[found].tid;
	return true;
}

static bool choose_go_program(struct why_query *query, const struct model *model,
			      const struct first *first)
{
	struct why_query program = {.program = first->pid,
				    .from_ts = query->from_ts,
				    .to_ts = query->to_ts,
				    .through_tid = first->busy_tid ?: first->pid,
				    .names = first->names};
	struct error err = ERROR_INIT;
	struct why *why;

	if (why_new(&why, model, &program, &err))
		return false;
	if (why->instances.len && !(first->busy_tid && waits_for_other(why, first)) &&
	    held_of(why, why->instances.data, first).ns >= first->least_ns) {
		query->program = first->pid;
		query->tid = 0;
	}
	why_free(why);
	return query->program;
}

static bool choose(struct why_query *query, const struct model *model, const struct first *first)
{
	query->first = first->pid && why_go_is_process(model, first->names, first->pid)
			       ? choose_go_program(query, model, first)
			       : choose_thread(query, model, first);
	return query->first;
}

struct first_requests {
	uint32_t pid;
	bool of_descendants; /* some are */
};

/* Whether a request is one of another process. */
static bool is_of_other(const struct model *model, uint32_t thread, void *arg)
{
	struct first_requests *requests = arg;

	requests->of_descendants |= why_is_of_first(model, thread);
	return model->threads.data[thread].pid != requests->pid;
}

bool why_first_before_requests(struct why_query *query, const struct model *model)
{
	struct first_requests requests = {0};
	struct first first;

	if (!first_open(&first, query, model) || !first.pid)
		return false;
	requests.pid = first.pid;
	if (!why_requests_only(model, is_of_other, &requests))
		return false;
	first.descendants = !requests.of_descendants;
	return choose(query, model, &first);
}

bool why_first_before_pause(struct why_query *query, const struct model *model, uint32_t idle_tid)
{
	struct first first;

	if (!first_open(&first, query, model))
		return false;
	first.idle_tid = idle_tid;
	first.descendants = true;
	if (!choose(query, model, &first))
		return false;
	query->first = false;
	query->held = true;
	return true;
}

bool why_first_before_busy(struct why_query *query, const struct model *model, uint32_t busy_tid)
{
	struct first first;

	if (!first_open(&first, query, model) || !first.pid)
		return false;
	first.busy_tid = busy_tid;
	first.descendants = true;
	return choose(query, model, &first);
}

/* ---- threads that hang ---- */

static bool hangs(const struct model *model, uint32_t thread)
{
	const struct model_open_wait *wait = model_open_wait_of(model, thread);

	return wait && wait->before && model->threads.data[thread].has_sched &&
	       !wait_call_is_for_work(syscall_name(model->meta->machine, wait->syscall));
}

/* The main thread, if that hangs. The launcher of the JVM waits for the one that runs main(), which
 * may have ended: there it is the first other one in the order of the hangs. */
static uint32_t hanging_thread(const struct model *model, const struct first *first,
			       const struct why_hangs *all)
{
	const struct model_process *process = &model->processes.data[0];
	uint32_t found = process->main_thread;

	if (found >= model->threads.len || !hangs(model, found))
		return MODEL_NONE;
	if (!why_jvm_is_launcher(model, first->names, found))
		return found;
	found = MODEL_NONE;
	for (size_t i = 0; i < all->waits.len && found == MODEL_NONE; i++) {
		uint32_t thread = model->open_waits.data[all->waits.data[i].wait].thread;

		if (model->threads.data[thread].pid == first->pid && hangs(model, thread) &&
		    !why_jvm_is_own_thread(model, first->names, thread))
			found = thread;
	}
	return found;
}

bool why_first_before_idle(struct why_query *query, const struct model *model,
			   const struct why_hangs *all)
{
	struct first first;
	uint32_t hanging;

	if (!first_open(&first, query, model) || !first.pid)
		return false;
	first.descendants = true;
	if (choose(query, model, &first))
		return true;
	hanging = hanging_thread(model, &first, all);
	if (hanging == MODEL_NONE) {
		first.least_ns = (model->end_ts - model->start_ts) / IDLE_HELD_PARTS;
		return choose(query, model, &first);
	}
	query->tid = model->threads.data[hanging].tid;
	query->stuck = true;
	return true;
}
