// SPDX-License-Identifier: Apache-2.0
/*
 * Takes the time of an instance apart. A stretch in which its thread was blocked goes to whoever
 * ended it: what that thread did in the same stretch is looked at in the same way, and so on, to
 * code that ran, a device, a timer, or where records end. Each stretch comes out once, so all sum
 * to the whole, and no step is outside the time of the step before it.
 */
#include "analyze/why_internal.h"

#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 64
/* Stretches of an instance that are followed; the rest of its time is unknown. */
#define WORK_MAX 4000000
/* Waits of a thread that are looked through for the one in which it got a lock. */
#define RETRIES_MAX 1000
/* Words of one lock: a condition variable of glibc moves between two of them. */
#define LOCK_BYTES 64

/* A stretch of a thread's time to be explained. */
struct stretch {
	uint64_t from_ts, to_ts;
	uint32_t thread;
	enum wait_kind kind; /* of the wait that it is looked at for */
	enum why_grade grade;
	bool certain;    /* the kind is */
	uint32_t object; /* what that wait was for */
};

/* ---- rules ---- */

/* The cause that a kind of wait has, by what ended it. */
static const struct rule {
	uint8_t ran;       /* another thread, which ran meanwhile */
	uint8_t outside;   /* a thread that is not recorded */
	uint8_t interrupt; /* an interrupt */
	uint8_t silent;    /* nobody knows */
	bool itself;       /* the wait is the cause, whatever ended it */
} rules[] = {
	[WAIT_OTHER] = {WHY_USER_WORK, WHY_NOT_RECORDED, WHY_INTERRUPT, WHY_NOT_RECORDED, false},
	[WAIT_LOCK] = {WHY_LOCK, WHY_NOT_RECORDED, WHY_TIMER, WHY_NOT_RECORDED, false},
	[WAIT_GIL] = {WHY_GIL, WHY_NOT_RECORDED, WHY_TIMER, WHY_NOT_RECORDED, false},
	[WAIT_CONDITION] = {WHY_USER_WORK, WHY_NOT_RECORDED, WHY_TIMER, WHY_NOT_RECORDED, false},
	[WAIT_DISK] = {WHY_USER_WORK, WHY_DISK_READ, WHY_DISK_READ, WHY_DISK_READ, false},
	[WAIT_FAULT] = {WHY_USER_WORK, WHY_PAGE_FAULT_MAJOR, WHY_PAGE_FAULT_MAJOR,
			WHY_PAGE_FAULT_MAJOR, false},
	[WAIT_PIPE] = {WHY_USER_WORK, WHY_PIPE, WHY_INTERRUPT, WHY_NOT_RECORDED, false},
	[WAIT_SOCKET] = {WHY_USER_WORK, WHY_SOCKET, WHY_SOCKET, WHY_NOT_RECORDED, false},
	[WAIT_POLL] = {WHY_USER_WORK, WHY_NOT_RECORDED, WHY_TIMER, WHY_NOT_RECORDED, false},
	[WAIT_TIMER] = {WHY_USER_WORK, WHY_TIMER, WHY_TIMER, WHY_TIMER, false},
	[WAIT_SLEEP] = {WHY_SLEEP, WHY_SLEEP, WHY_SLEEP, WHY_SLEEP, true},
	[WAIT_EXIT] = {WHY_USER_WORK, WHY_PROCESS_EXIT, WHY_INTERRUPT, WHY_NOT_RECORDED, false},
	[WAIT_EVENT] = {WHY_USER_WORK, WHY_NOT_RECORDED, WHY_TIMER, WHY_NOT_RECORDED, false},
	[WAIT_SIGNAL] = {WHY_USER_WORK, WHY_NOT_RECORDED, WHY_TIMER, WHY_NOT_RECORDED, false},
	[WAIT_KERNEL_LOCK] = {WHY_LOCK, WHY_NOT_RECORDED, WHY_INTERRUPT, WHY_NOT_RECORDED, false},
	[WAIT_GPU] = {WHY_GPU, WHY_GPU, WHY_GPU, WHY_GPU, true},
	[WAIT_COLLECTIVE] = {WHY_COLLECTIVE, WHY_COLLECTIVE, WHY_COLLECTIVE, WHY_COLLECTIVE, true},
	[WAIT_STOPPED] = {WHY_STOPPED, WHY_STOPPED, WHY_STOPPED, WHY_STOPPED, true},
};
_Static_assert(sizeof(rules) / sizeof(*rules) == WAIT_KIND_COUNT, "a rule for each kind");

static enum why_grade lower(enum why_grade grade, enum why_grade limit)
{
	return limit < grade ? limit : grade;
}

static enum why_grade likely_unless(bool certain)
{
	return certain ? WHY_GRADE_CERTAIN : WHY_GRADE_LIKELY;
}

/* ---- what comes out ---- */

struct verdict {
	enum why_cause cause;
	enum why_grade grade;
	uint32_t thread, span, object;
};

static void give(struct why_walker *walker, uint64_t from_ts, uint64_t to_ts,
		 struct verdict verdict)
{
	if (verdict.grade == WHY_GRADE_CERTAIN &&
	    windows_overlap(&walker->data->losses, from_ts, to_ts))
		verdict.grade = WHY_GRADE_LIKELY;
	if (to_ts > from_ts &&
	    !parts_add(&walker->parts, &(struct why_stretch){
					       .cause = verdict.cause,
					       .grade = verdict.grade,
					       .ns = to_ts - from_ts,
					       .thread = verdict.thread,
					       .span = verdict.span,
					       .object = verdict.object,
					       .steps = walker->path.data,
					       .step_count = (uint32_t)walker->path.len,
				       }))
		walker->failed = true;
}

static uint32_t span_at(const struct why_walker *walker, uint32_t thread, uint64_t ts)
{
	uint64_t until_ts;

	return thread == MODEL_NONE ? MODEL_NONE : why_span_at(walker->data, thread, ts, &until_ts);
}

static struct why_step step_of(const struct why_walker *walker, const struct stretch *stretch,
			       enum waffle_thread_state state)
{
	return (struct why_step){
		.from_ts = stretch->from_ts,
		.to_ts = stretch->to_ts,
		.thread = stretch->thread,
		.state = state,
		.syscall = -1,
		.args = MODEL_NONE,
		.span = span_at(walker, stretch->thread, stretch->from_ts),
		.by = MODEL_NONE,
		.wait = MODEL_NONE,
	};
}

static void enter(struct why_walker *walker, struct why_step step)
{
	if (!vec_push(&walker->path, step))
		walker->failed = true;
}

static void leave(struct why_walker *walker)
{
	if (walker->path.len)
		walker->path.len--;
}

/* Nothing is recorded of the thread. */
static void walk_gap(struct why_walker *walker, const struct stretch *stretch)
{
	struct verdict verdict = {.cause = WHY_NOT_RECORDED,
				  .grade = WHY_GRADE_UNKNOWN,
				  .thread = stretch->thread,
				  .span = MODEL_NONE};

	if (!walker->path.len) {
		walker->instance->unknown_ns += stretch->to_ts - stretch->from_ts;
		verdict.thread = MODEL_NONE;
	}
	if (windows_overlap(&walker->data->sched_losses, stretch->from_ts, stretch->to_ts)) {
		verdict.cause = WHY_UNKNOWN;
	} else if (stretch->kind == WAIT_EXIT && walker->path.len) {
		verdict.cause = WHY_PROCESS_EXIT;
		verdict.grade = lower(stretch->grade, WHY_GRADE_LIKELY);
	}
	give(walker, stretch->from_ts, stretch->to_ts, verdict);
}

/* ---- running ---- */

static void walk_own_running(struct why_walker *walker, const struct stretch *stretch)
{
	struct why_step step = step_of(walker, stretch, WAFFLE_THREAD_RUNNING);

	walker->instance->running_ns += stretch->to_ts - stretch->from_ts;
	walker->after_fault = false;
	step.span = walker->instance->span;
	enter(walker, step);
	give(walker, stretch->from_ts, stretch->to_ts,
	     (struct verdict){.cause = WHY_RUNNING,
			      .grade = stretch->grade,
			      .thread = stretch->thread,
			      .span = walker->instance->span});
	leave(walker);
}

/* Another thread ran while it was waited for: what, by its spans. */
static void walk_running(struct why_walker *walker, const struct stretch *stretch)
{
	enum why_cause cause = rules[stretch->kind].ran;
	bool lock = cause == WHY_LOCK || cause == WHY_GIL;
	struct stretch piece = *stretch;

	while (piece.from_ts < stretch->to_ts && !walker->failed) {
		uint64_t until_ts = UINT64_MAX;
		uint32_t span =
			why_span_at(walker->data, stretch->thread, piece.from_ts, &until_ts);
		struct why_step step;

		piece.to_ts = stretch->to_ts;
		if (walker->work) {
			walker->work--;
			piece.to_ts = until_ts < stretch->to_ts ? until_ts : stretch->to_ts;
		}
		step = step_of(walker, &piece, WAFFLE_THREAD_RUNNING);
		enter(walker, step);
		give(walker, piece.from_ts, piece.to_ts,
		     (struct verdict){
			     .cause = cause,
			     .grade = lower(stretch->grade,
					    likely_unless(!lock || stretch->certain)),
			     .thread = stretch->thread,
			     .span = span,
			     .object = lock ? stretch->object : 0,
		     });
		leave(walker);
		piece.from_ts = piece.to_ts;
	}
}

/* ---- runnable ---- */

static void walk_throttled(struct why_walker *walker, const struct stretch *stretch,
			   const struct model_quota *quota)
{
	struct why_step step = step_of(walker, stretch, WAFFLE_THREAD_RUNNABLE);

	step.object = why_text(walker->why, "cgroup %llu, %llu us of each %llu us",
			       (unsigned long long)quota->cgroup,
			       (unsigned long long)quota->quota_ns / 1000,
			       (unsigned long long)quota->period_ns / 1000);
	if (step.object == STRTAB_NONE)
		walker->failed = true;
	enter(walker, step);
	give(walker, stretch->from_ts, stretch->to_ts,
	     (struct verdict){.cause = WHY_CPU_QUOTA,
			      .grade = stretch->grade,
			      .thread = stretch->thread,
			      .span = step.span,
			      .object = step.object});
	leave(walker);
}

static void walk_contention(struct why_walker *walker, const struct stretch *stretch, size_t index)
{
	struct stretch piece = *stretch;

	while (piece.from_ts < stretch->to_ts && !walker->failed) {
		struct why_occupant occupant = why_occupant_at(walker->data, stretch->thread, index,
							       piece.from_ts, stretch->to_ts);
		struct why_step step;

		if (walker->work)
			walker->work--;
		else
			occupant.to_ts = stretch->to_ts;
		piece.to_ts = occupant.to_ts;
		step = step_of(walker, &piece, WAFFLE_THREAD_RUNNABLE);
		step.by = occupant.thread;
		enter(walker, step);
		give(walker, piece.from_ts, piece.to_ts,
		     (struct verdict){
			     .cause = WHY_CPU_CONTENTION,
			     .grade = lower(stretch->grade, likely_unless(occupant.certain)),
			     .thread = occupant.thread,
			     .span = span_at(walker, occupant.thread, piece.from_ts),
		     });
		leave(walker);
		piece.from_ts = piece.to_ts;
	}
}

static void walk_runnable(struct why_walker *walker, const struct stretch *stretch, size_t index)
{
	const struct why_interval *interval =
		why_interval_get(walker->data, stretch->thread, index);
	const struct model_quota *quota;
	uint64_t quota_ts =
		interval->to_ts - why_throttled_ns(walker->data, stretch->thread, interval, &quota);
	struct stretch before = *stretch, behind = *stretch;

	if (!walker->path.len) {
		walker->instance->runnable_ns += stretch->to_ts - stretch->from_ts;
		walker->fault_wait_ns +=
			walker->after_fault ? stretch->to_ts - stretch->from_ts : 0;
		walker->after_fault = false;
	}
	if (quota_ts < before.to_ts)
		before.to_ts = quota_ts > before.from_ts ? quota_ts : before.from_ts;
	behind.from_ts = before.to_ts;
	walk_contention(walker, &before, index);
	if (behind.from_ts < behind.to_ts)
		walk_throttled(walker, &behind, quota);
}

/* ---- blocked ---- */

static void walk(struct why_walker *walker, const struct stretch *stretch);

/* Who sent the signal that stopped a thread, and its number; MODEL_NONE: not recorded. */
static uint32_t stopped_by(const struct why_walker *walker, uint32_t thread, uint64_t ts)
{
	/* SIGSTOP, SIGTSTP, SIGTTIN and SIGTTOU have these numbers on x86-64 and aarch64. */
	const int first = 19, last = 22;
	const struct model *model = walker->data->model;
	uint32_t pid = model->threads.data[thread].pid;

	for (size_t i = model->signals.len; i--;) {
		const struct model_signal *signal = &model->signals.data[i];

		if (signal->ts <= ts && signal->signo >= first && signal->signo <= last &&
		    (signal->target == thread ||
		     (pid && model->threads.data[signal->target].pid == pid)))
			return signal->sender;
	}
	return MODEL_NONE;
}

static enum why_cause disk_or(const struct why_wait *wait, enum why_cause cause)
{
	return cause == WHY_DISK_READ && wait->write ? WHY_DISK_WRITE : cause;
}

/* The wait ends here: it is the cause, or what ended it is no thread to follow. */
static void give_wait(struct why_walker *walker, const struct stretch *stretch,
		      const struct why_wait *wait, enum why_cause cause, enum why_grade grade,
		      uint32_t culprit)
{
	enum why_grade limit = wait->kind == WAIT_DISK ? likely_unless(wait->evidence)
						       : likely_unless(wait->certain);

	if (cause == WHY_NOT_RECORDED && culprit == MODEL_NONE) {
		limit = WHY_GRADE_UNKNOWN;
		if (windows_overlap(&walker->data->sched_losses, stretch->to_ts, stretch->to_ts))
			cause = WHY_UNKNOWN;
	}
	give(walker, stretch->from_ts, stretch->to_ts,
	     (struct verdict){.cause = disk_or(wait, cause),
			      .grade = lower(lower(stretch->grade, grade), limit),
			      .thread = culprit,
			      .span = span_at(walker, culprit, stretch->from_ts),
			      .object = wait->kind == WAIT_CONDITION || wait->kind == WAIT_LOCK
						? 0
						: wait->object});
}

static void give_interrupted(struct why_walker *walker, const struct stretch *stretch,
			     const struct why_wait *wait)
{
	enum why_cause cause = rules[wait->kind].interrupt;
	bool certain = wait->waker_kind != WAIT_OTHER || wait->kind == WAIT_DISK ||
		       wait->kind == WAIT_FAULT || wait->kind == WAIT_TIMER;
	uint32_t culprit = stretch->thread;

	if (wait->kind != WAIT_DISK && wait->kind != WAIT_FAULT && wait->waker_kind == WAIT_TIMER)
		cause = WHY_TIMER;
	else if (wait->kind == WAIT_POLL && wait->soft)
		cause = WHY_SOCKET;
	/* Who sent what came from outside is not known, whatever else is. */
	if (cause == WHY_SOCKET) {
		culprit = MODEL_NONE;
		certain = false;
	}
	give_wait(walker, stretch, wait, cause, likely_unless(certain), culprit);
}

static bool is_on_path(const struct why_walker *walker, uint32_t thread)
{
	for (size_t i = 0; i < walker->path.len; i++)
		if (walker->path.data[i].thread == thread)
			return true;
	return false;
}

/* What a thread did that ended the wait. */
static void follow(struct why_walker *walker, const struct stretch *stretch,
		   const struct why_wait *wait, uint32_t by)
{
	struct stretch next = *stretch;

	/* Who waits for somebody can't be what that one waits for. */
	if (is_on_path(walker, by) || walker->path.len >= DEPTH_MAX || !walker->work) {
		give(walker, stretch->from_ts, stretch->to_ts,
		     (struct verdict){.cause = WHY_UNKNOWN,
				      .grade = WHY_GRADE_UNKNOWN,
				      .thread = by,
				      .span = MODEL_NONE});
		return;
	}
	next.thread = by;
	next.kind = wait->kind;
	next.certain = wait->certain;
	next.object = wait->object;
	if (wait->own)
		next.grade = lower(next.grade, likely_unless(wait->certain));
	walk(walker, &next);
}

/*
 * A thread that waits for a lock with a timeout tries again: who had the lock is told by the end of
 * its last try. MODEL_NONE: it gave up, or that is not in the capture.
 */
static uint32_t holder_after(struct why_walker *walker, const struct why_step *step, size_t index)
{
	const struct model *model = walker->data->model;
	uint64_t address = step->args == MODEL_NONE ? 0 : model->syscall_args.data[step->args];

	for (size_t i = index + 1; i < index + RETRIES_MAX && walker->work; i++) {
		const struct why_interval *next = why_interval_get(walker->data, step->thread, i);
		struct why_wait wait;
		uint64_t other;

		if (!next)
			break;
		if (next->state != WAFFLE_THREAD_BLOCKED || next->syscall != step->syscall ||
		    next->args == MODEL_NONE)
			continue;
		other = model->syscall_args.data[next->args];
		if ((other > address ? other - address : address - other) >= LOCK_BYTES)
			continue;
		walker->work--;
		if (!why_wait_of(walker->why, walker->data, step->thread, i, &wait)) {
			walker->failed = true;
			break;
		}
		if (!wait.interrupt)
			return wait.by;
	}
	return MODEL_NONE;
}

/* Whether the wait is one for a device: no other thread's doing, even if one reported its end. */
static bool is_device(const struct why_wait *wait, bool by_kernel)
{
	return (wait->kind == WAIT_DISK || wait->kind == WAIT_FAULT) &&
	       (by_kernel || wait->waker_kind == WAIT_DISK || wait->interrupt);
}

static void explain_wait(struct why_walker *walker, const struct stretch *stretch,
			 struct why_wait *wait, size_t index)
{
	const struct rule *rule = &rules[wait->kind];
	const struct model *model = walker->data->model;
	struct stretch likely = *stretch;
	bool by_thread = wait->by != MODEL_NONE && (!wait->interrupt || wait->own);
	bool by_kernel = by_thread && !model->threads.data[wait->by].traced &&
			 wait_is_kernel_thread(model_comm(model, wait->by));

	likely.grade = lower(stretch->grade, WHY_GRADE_LIKELY);
	if (rule->itself) {
		give_wait(walker, stretch, wait, rule->silent, WHY_GRADE_CERTAIN,
			  wait->kind == WAIT_STOPPED
				  ? stopped_by(walker, stretch->thread, stretch->from_ts)
				  : stretch->thread);
	} else if (is_device(wait, by_kernel) || (by_kernel && wait->kind == WAIT_SOCKET)) {
		give_interrupted(walker, stretch, wait);
	} else if (wait->interrupt && !wait->own) {
		uint32_t holder = MODEL_NONE;

		if (wait->kind == WAIT_LOCK || wait->kind == WAIT_GIL)
			holder = holder_after(walker, &walker->path.data[walker->path.len - 1],
					      index);
		if (holder != MODEL_NONE && model->threads.data[holder].traced)
			follow(walker, &likely, wait, holder);
		else
			give_interrupted(walker, stretch, wait);
	} else if (!by_thread) {
		give_wait(walker, stretch, wait, rule->silent, WHY_GRADE_LIKELY,
			  rule->silent == WHY_NOT_RECORDED ? MODEL_NONE : stretch->thread);
	} else if (!model->threads.data[wait->by].traced) {
		bool device = wait->kind == WAIT_DISK || wait->kind == WAIT_FAULT;

		give_wait(walker, stretch, wait, rule->outside, WHY_GRADE_LIKELY,
			  device ? stretch->thread : wait->by);
	} else {
		follow(walker, stretch, wait, wait->by);
	}
}

static void walk_blocked(struct why_walker *walker, const struct stretch *stretch, size_t index)
{
	const struct why_interval *interval =
		why_interval_get(walker->data, stretch->thread, index);
	struct why_step step = step_of(walker, stretch, WAFFLE_THREAD_BLOCKED);
	struct why_wait wait;

	if (!walker->path.len)
		walker->instance->blocked_ns += stretch->to_ts - stretch->from_ts;
	if (!why_wait_of(walker->why, walker->data, stretch->thread, index, &wait)) {
		walker->failed = true;
		return;
	}
	if (!walker->path.len) {
		walker->after_fault = wait.kind == WAIT_FAULT;
		walker->fault_wait_ns +=
			walker->after_fault ? stretch->to_ts - stretch->from_ts : 0;
	}
	step.syscall = interval->syscall;
	step.args = interval->args;
	step.task_state = interval->task_state;
	step.by = wait.by;
	step.interrupt = wait.interrupt && !wait.own;
	step.object = wait.object;
	step.wait = wait.wait;
	enter(walker, step);
	if (!walker->failed)
		explain_wait(walker, stretch, &wait, index);
	leave(walker);
}

/* ---- all of a stretch ---- */

static void walk_interval(struct why_walker *walker, const struct stretch *stretch, size_t index)
{
	switch (why_interval_get(walker->data, stretch->thread, index)->state) {
	case WAFFLE_THREAD_RUNNING:
		if (walker->path.len)
			walk_running(walker, stretch);
		else
			walk_own_running(walker, stretch);
		break;
	case WAFFLE_THREAD_RUNNABLE:
		walk_runnable(walker, stretch, index);
		break;
	default:
		walk_blocked(walker, stretch, index);
		break;
	}
}

/* Interval by interval, and the gaps between them. */
static void walk(struct why_walker *walker, const struct stretch *stretch)
{
	size_t index = why_interval_after(walker->data, stretch->thread, stretch->from_ts);
	struct stretch piece = *stretch;

	while (piece.from_ts < stretch->to_ts && !walker->failed) {
		const struct why_interval *interval =
			why_interval_get(walker->data, stretch->thread, index);

		if (walker->work)
			walker->work--;
		piece.to_ts = stretch->to_ts;
		if (!interval || interval->from_ts >= stretch->to_ts) {
			walk_gap(walker, &piece);
		} else if (interval->from_ts > piece.from_ts) {
			piece.to_ts = interval->from_ts;
			walk_gap(walker, &piece);
		} else {
			if (interval->to_ts < piece.to_ts)
				piece.to_ts = interval->to_ts;
			walk_interval(walker, &piece, index++);
		}
		piece.from_ts = piece.to_ts;
	}
}

/* ---- an instance ---- */

int why_walker_new(struct why_walker **walker, struct why *why, struct why_data *data)
{
	*walker = calloc(1, sizeof(**walker));
	if (!*walker)
		return -ENOMEM;
	(*walker)->why = why;
	(*walker)->data = data;
	(*walker)->parts.why = why;
	return 0;
}

void why_walker_free(struct why_walker *walker)
{
	if (!walker)
		return;
	parts_free(&walker->parts);
	vec_free(&walker->path);
	free(walker);
}

int why_explain(struct why_walker *walker, struct why_instance *instance)
{
	struct stretch stretch = {
		.from_ts = instance->from_ts,
		.to_ts = instance->to_ts,
		.thread = instance->thread,
		.grade = likely_unless(!instance->begun_before),
	};

	parts_reset(&walker->parts);
	walker->path.len = 0;
	walker->instance = instance;
	walker->work = WORK_MAX;
	walker->fault_wait_ns = 0;
	walker->after_fault = false;
	walker->failed = false;
	instance->running_ns = 0;
	instance->runnable_ns = 0;
	instance->blocked_ns = 0;
	instance->unknown_ns = 0;
	instance->loss = windows_overlap(&walker->data->losses, instance->from_ts, instance->to_ts);
	walk(walker, &stretch);
	if (!walker->failed)
		why_explain_faults(walker);
	if (walker->failed || !parts_finish(&walker->parts, instance))
		return -ENOMEM;
	return 0;
}
