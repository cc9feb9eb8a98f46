// SPDX-License-Identifier: Apache-2.0
/* Waits that only another waiting thread could end, and the processes that stand still for them. */
#include <stdlib.h>

#include "analyze/why/hang/why_hang_internal.h"
#include "util/memory.h"

/* The threads are not looked at all at once, so each has to have waited for a while before. */
#define STANDSTILL_NS 100000000ull

static const struct model_open_wait *open_wait(const struct model *model,
					       const struct why_hung *hung)
{
	return &model->open_waits.data[hung->wait];
}

static bool is_alive(const struct model_thread *thread)
{
	return thread->traced && !thread->track && !thread->gone && !thread->exit_ts;
}

/* Whether only another thread of the process can end a wait. */
static bool is_inside(const struct model_open_wait *wait)
{
	return wait && wait->flags & WAFFLE_OPEN_WAIT_INSIDE &&
	       wait->ts - wait->from_ts >= STANDSTILL_NS;
}

/* ---- waits that are stuck ---- */

/* By thread: whether another one has woken it during the capture. */
static bool *woken_threads(const struct model *model)
{
	const unsigned interrupts = WAFFLE_SWITCH_WAKER_HARDIRQ | WAFFLE_SWITCH_WAKER_SOFTIRQ;
	bool *woken = memory_zeroed(model->threads.len + 1, sizeof(*woken));

	for (size_t i = 0; i < model->switches.len; i++) {
		const struct model_switch *to = &model->switches.data[i];

		if (to->next < model->threads.len && to->wake_ts && !(to->flags & interrupts))
			woken[to->next] = true;
	}
	return woken;
}

/* Whether a thread has waited in this way for all of the capture, for a lock or the end of a
 * thread. Java looks at a monitor that it waits for once a second. */
static bool has_always_waited(const struct model *model, const struct why_hung *hung,
			      const bool *woken)
{
	const struct model_open_wait *wait = open_wait(model, hung);

	if (hung->deadlock != MODEL_NONE)
		return true;
	if (!is_alive(&model->threads.data[wait->thread]))
		return false;
	if (hung->awaits == WHY_AWAITS_MONITOR)
		return !woken[wait->thread] && wait->ts - wait->from_ts >= STANDSTILL_NS;
	return hung->awaits != WHY_AWAITS_UNKNOWN && wait->before &&
	       (hung->owner != MODEL_NONE || is_inside(wait));
}

/* A wait is not stuck if the thread that is to end it is not. */
static void stuck_spread(struct why_hangs *hangs)
{
	for (bool changed = true; changed;) {
		changed = false;
		for (size_t i = 0; i < hangs->waits.len; i++) {
			struct why_hung *hung = &hangs->waits.data[i];

			if (!hung->stuck || hung->owner == MODEL_NONE ||
			    (hung->next != MODEL_NONE && hangs->waits.data[hung->next].stuck))
				continue;
			hung->stuck = false;
			changed = true;
		}
	}
}

/* ---- processes ---- */

/* What is known of a process while its threads are counted. */
struct counted {
	uint32_t pid, live, inside, stuck;
	uint32_t thread, wait; /* wait: MODEL_NONE: it has no open wait */
	uint32_t locks, passed, holders;
	bool deadlock;
};

static int counted_compare(const void *left, const void *right)
{
	const struct counted *a = left, *b = right;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return (a->thread > b->thread) - (a->thread < b->thread);
}

/* Whether a wait that comes before in the same process is for the same lock. */
static bool is_known_lock(const struct why_hangs *hangs, const struct model *model,
			  const struct counted *rows, size_t number)
{
	const struct why_hung *hung = &hangs->waits.data[rows[number].wait];
	uint64_t lock = open_wait(model, hung)->lock;

	for (size_t i = number; i-- > 0 && rows[i].pid == rows[number].pid;) {
		const struct why_hung *before;

		if (rows[i].wait == MODEL_NONE)
			continue;
		before = &hangs->waits.data[rows[i].wait];
		if (before->stuck && before->awaits == hung->awaits &&
		    open_wait(model, before)->lock == lock)
			return true;
	}
	return false;
}

static void count_wait(struct counted *all, const struct why_hangs *hangs,
		       const struct model *model, const struct counted *rows, size_t number)
{
	const struct why_hung *hung;

	if (rows[number].wait == MODEL_NONE)
		return;
	hung = &hangs->waits.data[rows[number].wait];
	all->inside += is_inside(open_wait(model, hung));
	all->deadlock |= hung->deadlock != MODEL_NONE;
	all->stuck += hung->stuck;
	if (!hung->stuck) {
		all->holders += open_wait(model, hung)->before;
	} else if (hung->owner == MODEL_NONE && !is_known_lock(hangs, model, rows, number)) {
		all->locks += hung->awaits == WHY_AWAITS_LOCK || hung->awaits == WHY_AWAITS_MONITOR;
		all->passed += hung->awaits == WHY_AWAITS_PASSED_LOCK;
	}
}

/* Locks without a recorded owner may be held in turn by threads that wait for work, as in a pool
 * that shares its queue. Two that no such thread can hold are too many for that. */
static bool may_be_deadlock(const struct counted *all)
{
	uint32_t passed = all->passed > all->holders ? all->passed - all->holders : 0;

	return all->locks + passed >= 2;
}

/* Adds up the threads of a process, rows[from] to rows[end - 1]. */
static void process_examine(struct why_hangs *hangs, const struct model *model,
			    const struct counted *rows, size_t from, size_t end)
{
	struct counted all = {.thread = rows[from].thread, .live = (uint32_t)(end - from)};
	bool some;

	for (size_t i = from; i < end; i++)
		count_wait(&all, hangs, model, rows, i);
	some = may_be_deadlock(&all);
	if (!all.deadlock && all.live > 1 && (all.inside == all.live || some))
		vec_add(&hangs->standstills,
			(struct why_standstill){all.thread,
						all.inside == all.live ? all.live : all.stuck,
						all.live});
	for (size_t i = from; i < end && !all.deadlock && !some; i++)
		if (rows[i].wait != MODEL_NONE)
			hangs->waits.data[rows[i].wait].stuck = false;
}

/* The live threads, sorted by process. */
static struct counted *rows_new(size_t *count, const struct why_hangs *hangs,
				const struct model *model)
{
	struct counted *rows = memory_get((model->threads.len + 1) * sizeof(*rows));
	uint32_t wait = 0;

	*count = 0;
	for (uint32_t i = 0; i < model->threads.len; i++) {
		while (wait < hangs->waits.len && model->open_waits.data[wait].thread < i)
			wait++;
		if (is_alive(&model->threads.data[i]))
			rows[(*count)++] = (struct counted){
				.pid = model->threads.data[i].pid,
				.thread = i,
				.wait = wait < hangs->waits.len &&
							model->open_waits.data[wait].thread == i
						? wait
						: MODEL_NONE,
			};
	}
	if (*count)
		qsort(rows, *count, sizeof(*rows), counted_compare);
	return rows;
}

void why_standstills_find(struct why_hangs *hangs, const struct model *model)
{
	bool *woken = woken_threads(model);
	size_t count;
	struct counted *rows = rows_new(&count, hangs, model);

	for (size_t i = 0; i < hangs->waits.len; i++)
		hangs->waits.data[i].stuck = has_always_waited(model, &hangs->waits.data[i], woken);
	stuck_spread(hangs);
	for (size_t from = 0, end; from < count; from = end) {
		for (end = from + 1; end < count && rows[end].pid == rows[from].pid;)
			end++;
		process_examine(hangs, model, rows, from, end);
	}
	free(rows);
	free(woken);
}
