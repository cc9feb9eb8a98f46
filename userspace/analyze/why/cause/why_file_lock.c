// SPDX-License-Identifier: Apache-2.0
/*
 * Locks of files that a thread polls: it tries to take one, is refused, sleeps, and tries again. A
 * try does not block, so only the record of its refusal says which file it was, and who had locked
 * it.
 */
#include "analyze/why/cause/why_blocked_internal.h"

#include <stdio.h>
#include <string.h>

#include "analyze/why/lookup/why_evidence.h"
#include "analyze/why/parts/why_sums.h"
#include "analyze/why/why_walk_types.h"
#include "util/memory.h"

/* A thread that sleeps for longer, or that does something else for longer before it sleeps, need
 * not sleep because of the lock. */
#define SLEEP_MAX_NS 1100000000ull
#define BEFORE_MAX_NS 10000000ull
/* Limit of the intervals between the refusal and the sleep. */
#define BETWEEN_MAX 16

/* Whether the calls are the same, or, with `any`, the first one is a system call that may wait for
 * something of another process. */
static bool is_call(const struct why_walk *walk, int16_t call, int16_t sleep, bool any)
{
	return call == sleep ||
	       (any && call >= 0 && call < WHY_SYSCALLS && walk->calls[call] != WAIT_CALL_FUTEX);
}

bool why_has_waited_since(const struct why_walk *walk, const struct why_blocked *blocked,
			  uint64_t ts, bool any)
{
	const struct why_interval *all = walk->intervals.threads[blocked->thread].intervals.data;
	size_t i = blocked->index;

	while (all[i].from_ts > ts) {
		walk->why->searched++;
		if (!i || blocked->index - i > BETWEEN_MAX)
			return true;
		i--;
		if (all[i].to_ts > ts && all[i].state == WAFFLE_THREAD_BLOCKED &&
		    is_call(walk, all[i].syscall, blocked->interval->syscall, any))
			return true;
	}
	return false;
}

static const struct model_lock_refusal *refusal_before(const struct why_walk *walk,
						       const struct why_blocked *blocked)
{
	const struct why_interval *sleep = blocked->interval;
	const struct model_lock_refusal *refusal;

	if (blocked->kind != WAIT_SLEEP || sleep->to_ts - sleep->from_ts > SLEEP_MAX_NS)
		return NULL;
	refusal = model_lock_refusal_before(walk->model, blocked->thread, sleep->from_ts);
	if (!refusal || sleep->from_ts - refusal->ts > BEFORE_MAX_NS ||
	    why_has_waited_since(walk, blocked, refusal->ts, false))
		return NULL;
	return refusal;
}

/* The holder, if it is of another process. The two may as well be two open files of one process,
 * and then any of its threads may be the one. */
static uint32_t holder_of(const struct why_walk *walk, const struct why_blocked *blocked,
			  const struct model_lock_refusal *refusal)
{
	const struct model_thread *threads = walk->model->threads.data;

	return refusal->holder != MODEL_NONE &&
			       threads[refusal->holder].pid != threads[blocked->thread].pid
		       ? refusal->holder
		       : MODEL_NONE;
}

void why_file_lock_find(struct why_walk *walk, struct why_blocked *blocked)
{
	const struct model_lock_refusal *refusal = refusal_before(walk, blocked);
	struct wait_facts facts = {.object = NULL};

	if (!refusal)
		return;
	why_facts_object(walk, &facts, refusal->object);
	blocked->file_lock = refusal;
	blocked->holder = holder_of(walk, blocked, refusal);
	blocked->program_lock = 0;
	blocked->grade = why_grade_least(blocked->grade, WHY_GRADE_LIKELY);
	blocked->object = wait_object_text(walk->why->texts, &facts, WAIT_SLEEP);
}

void why_file_lock_describe(struct why_walk *walk, const struct why_blocked *blocked,
			    struct why_step *step)
{
	const struct model *model = walk->model;
	char text[1024 + 128];
	int len;

	len = snprintf(text, sizeof(text), "was refused the lock of %s",
		       blocked->object ? strtab_get(walk->why->texts, blocked->object) : "a file");
	if (blocked->holder != MODEL_NONE && len < (int)sizeof(text))
		len += snprintf(text + len, sizeof(text) - (size_t)len, ", which %s (%u) had",
				model_thread_name(model, blocked->holder),
				model_pid_real(model, model->threads.data[blocked->holder].tid));
	else if (blocked->file_lock->former && len < (int)sizeof(text))
		len += snprintf(text + len, sizeof(text) - (size_t)len,
				", taken by a process with the number %u, which does not have the "
				"file open any more",
				blocked->file_lock->former);
	if (len < (int)sizeof(text))
		step->meaning = strtab_put(walk->why->texts, text, (size_t)len);
}

struct why_verdict why_blocked_at_file_lock(struct why_walk *walk, struct why_blocked *blocked)
{
	struct why_step *step = &walk->path[walk->depth - 1];
	uint32_t holder = blocked->holder;

	blocked->kind = WAIT_MUTEX;
	if (holder == MODEL_NONE || !model_is_traced(walk->model, holder) ||
	    !why_is_only_thread(walk, holder) || why_walk_is_on_path(walk, holder))
		return why_blocked_end(walk, blocked, WHY_LOCK, WHY_GRADE_LIKELY, holder);
	step->by = holder;
	step->interrupt = false;
	step->locked = true;
	return why_blocked_follow(walk, blocked, holder, WHY_GRADE_LIKELY);
}
