// SPDX-License-Identifier: Apache-2.0
/* Waits that only another waiting thread could end, and the processes that stand still for them. */
#include <stdlib.h>

#include "analyze/why/hang/why_hang_internal.h"
#include "analyze/why/lookup/why_jvm.h"
#include "analyze/why/lookup/why_roots.h"
#include "util/memory.h"

static const struct model_open_wait *open_wait(const struct model *model,
					       const struct why_hung *hung)
{
	return &model->open_waits.data[hung->wait];
}

/* ---- polled locks ---- */

/* A thread that waits for a monitor of Java, or a lock that its program made, looks at it about
 * once a second, and does nothing else. So it runs for less than this part of the capture; of a
 * short one, for less than a millisecond. */
#define LOOKS_PARTS 1000
#define LOOKS_NS 1000000ull

static bool runs_much(const struct model *model, uint32_t thread)
{
	uint64_t ns = model->threads.data[thread].running_ns;

	return ns > LOOKS_NS && ns > (model->end_ts - model->start_ts) / LOOKS_PARTS;
}

/* A timeout is an interrupt, but no softirq. */
static bool is_woken_by_other(const struct model_switch *to)
{

	return to->wake_ts &&
	       (to->flags & WAFFLE_SWITCH_WAKER_INTERRUPT) != WAFFLE_SWITCH_WAKER_HARDIRQ;
}

/* Whether a program waits in a way of its own. */
static bool is_of_program(const struct why_hung *hung)
{
	return hung->awaits == WHY_AWAITS_PROGRAM || hung->awaits == WHY_AWAITS_ANSWER;
}

/* Whether another process may have to end a wait, so that the threads of its own do not decide. */
static bool is_for_others(const struct why_hung *hung)
{
	return is_of_program(hung) || hung->awaits == WHY_AWAITS_RANKS;
}

static bool is_polled(const struct why_hung *hung)
{
	return hung->awaits == WHY_AWAITS_MONITOR || is_of_program(hung);
}

/* Takes back that a thread polls a lock if the thread does more than that: it was woken by
 * something else than a timeout, it has waited in another system call, or it runs much. */
static void polled_check(struct why_hangs *hangs, const struct model *model)
{
	struct map polled = {0}; /* thread → its wait */

	for (uint32_t i = 0; i < hangs->waits.len; i++) {
		struct why_hung *hung = &hangs->waits.data[i];
		uint32_t thread = open_wait(model, hung)->thread;

		if (!is_polled(hung))
			continue;
		if (runs_much(model, thread))
			hung->awaits = WHY_AWAITS_UNKNOWN;
		else
			map_put(&polled, thread, i);
	}
	for (size_t i = 0; polled.len && i < model->switches.len; i++) {
		const struct model_switch *sw = &model->switches.data[i];
		uint32_t prev = map_get(&polled, sw->prev), next = map_get(&polled, sw->next);

		if (next != MAP_NONE && is_woken_by_other(sw))
			hangs->waits.data[next].awaits = WHY_AWAITS_UNKNOWN;
		if (prev != MAP_NONE && model_switch_blocks(sw) &&
		    sw->syscall != open_wait(model, &hangs->waits.data[prev])->syscall)
			hangs->waits.data[prev].awaits = WHY_AWAITS_UNKNOWN;
	}
	map_free(&polled);
}

/* ---- waits that are stuck ---- */

/* Whether a thread has waited for all of the capture: for a lock, the end of a thread, or other
 * ranks. */
static bool has_always_waited(const struct model *model, const struct why_hung *hung)
{
	const struct model_open_wait *wait = open_wait(model, hung);

	if (hung->deadlock != MODEL_NONE || why_awaits_in_vain(hung->awaits))
		return true;
	if (!why_hang_is_alive(&model->threads.data[wait->thread]))
		return false;
	if (is_polled(hung))
		return wait->ts - wait->from_ts >= WHY_STANDSTILL_NS;
	if (hung->awaits == WHY_AWAITS_RANKS)
		return wait->before;
	return hung->awaits != WHY_AWAITS_UNKNOWN && hung->awaits != WHY_AWAITS_PERHAPS_LOCK &&
	       hung->awaits != WHY_AWAITS_SHARED && wait->before &&
	       (hung->owner != MODEL_NONE || why_hang_is_inside(wait));
}

/* A wait is not stuck if the thread that is to end it is not. Each chain of waits ends at one that
 * decides for all before it: one without a next one, or one of another chain, which is decided. In
 * a cycle all are stuck. */
static void stuck_spread(struct why_hangs *hangs)
{
	struct why_hung *waits = hangs->waits.data;
	bool *known = memory_zeroed(hangs->waits.len + 1, sizeof(*known));

	for (uint32_t i = 0; i < hangs->waits.len; i++) {
		uint32_t end = i;
		bool stuck;

		while (end != MODEL_NONE && !known[end] && waits[end].stuck &&
		       waits[end].owner != MODEL_NONE) {
			known[end] = true;
			end = waits[end].next;
		}
		stuck = end != MODEL_NONE && waits[end].stuck;
		for (uint32_t at = i; at != end; at = waits[at].next)
			waits[at].stuck = stuck;
	}
	free(known);
}

/* ---- processes ---- */

/* What the threads of a process wait for. */
struct process_waits {
	uint32_t inside, stuck;
	/* The locks without an owner that are waited for; those that a thread which waits for work
	 * may hold; and the threads that may be such. */
	struct map locks, passed;
	uint32_t holders;
	/* There is one, or a thread whose wait can't end otherwise: all that is known. */
	bool deadlock;
};

static int live_compare(const void *left, const void *right)
{
	const struct why_live_thread *a = left, *b = right;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return (a->thread > b->thread) - (a->thread < b->thread);
}

static void add_wait(struct process_waits *all, const struct why_hung *hung,
		     const struct model_open_wait *wait)
{
	if (hung->awaits == WHY_AWAITS_RANKS)
		return;
	all->inside += why_hang_is_inside(wait);
	all->deadlock |= hung->deadlock != MODEL_NONE || why_awaits_in_vain(hung->awaits);
	all->stuck += hung->stuck;
	if (!hung->stuck)
		all->holders += wait->before;
	else if (hung->owner != MODEL_NONE)
		return;
	else if (hung->awaits == WHY_AWAITS_PASSED_LOCK)
		map_put(&all->passed, wait->lock, 1);
	else if (hung->awaits == WHY_AWAITS_LOCK || hung->awaits == WHY_AWAITS_MONITOR)
		map_put(&all->locks, wait->lock, 1);
}

/* Locks without a recorded owner may be held in turn by threads that wait for work, as in a pool
 * that shares its queue. Only if two locks or more are left that no such thread can hold, the
 * threads that wait for them may be in a deadlock. */
static bool may_be_deadlock(const struct process_waits *all)
{
	size_t passed = all->passed.len > all->holders ? all->passed.len - all->holders : 0;

	return all->locks.len + passed >= 2;
}

/* Examines the threads of a process. A single one may be idle until a signal comes, unless
 * functions show that it waits for a lock. */
static void process_examine(struct why_hangs *hangs, const struct model *model,
			    const struct why_live_thread *threads, uint32_t count)
{
	struct process_waits all = {0};
	struct why_standstill standstill = {.thread = threads[0].thread, .of = count};
	bool some;

	for (uint32_t i = 0; i < count; i++)
		if (threads[i].wait != MODEL_NONE)
			add_wait(&all, &hangs->waits.data[threads[i].wait],
				 &model->open_waits.data[threads[i].wait]);
	some = may_be_deadlock(&all);
	standstill.all_inside =
		all.inside == count &&
		(count > 1 || why_awaits_lock(hangs->waits.data[threads[0].wait].awaits));
	standstill.threads = standstill.all_inside ? count : all.stuck;
	if (!all.deadlock && (standstill.all_inside || some))
		vec_add(&hangs->standstills, standstill);
	for (uint32_t i = 0; i < count && !all.deadlock && !some; i++)
		if (threads[i].wait != MODEL_NONE &&
		    !is_for_others(&hangs->waits.data[threads[i].wait]))
			hangs->waits.data[threads[i].wait].stuck =
				count == 1 && standstill.all_inside;
	map_free(&all.locks);
	map_free(&all.passed);
}

/* Whether a thread is one of the JVM's own that waits for work: it says nothing of the program. If
 * one of them runs, or has just begun to wait for another, it may do what the program waits for,
 * such as collect garbage. Some of these run code of the program, as the one for finalizers does,
 * and may wait for its locks. */
static bool is_idle_jvm(const struct model *model, struct stack_names *names, uint32_t thread,
			const struct why_hung *hung)
{
	const struct model_open_wait *wait = hung ? open_wait(model, hung) : NULL;

	if (!wait)
		return false;
	if (why_jvm_is_launcher(model, names, thread))
		return true;
	return why_jvm_is_own_thread(model, names, thread) && hung->awaits == WHY_AWAITS_UNKNOWN &&
	       (!(wait->flags & WAFFLE_OPEN_WAIT_INSIDE) || why_hang_is_inside(wait));
}

/* The live threads, sorted by process, without idle ones of the JVM. */
static struct why_live_thread *live_threads_new(uint32_t *count, const struct why_hangs *hangs,
						const struct model *model,
						struct stack_names *names)
{
	struct why_live_thread *threads = memory_get((model->threads.len + 1) * sizeof(*threads));
	uint32_t wait = 0;
	bool has_wait;

	*count = 0;
	for (uint32_t i = 0; i < model->threads.len; i++) {
		while (wait < hangs->waits.len && model->open_waits.data[wait].thread < i)
			wait++;
		has_wait = wait < hangs->waits.len && model->open_waits.data[wait].thread == i;
		if (why_hang_is_alive(&model->threads.data[i]) && !why_is_of_waker(model, i) &&
		    !is_idle_jvm(model, names, i, has_wait ? &hangs->waits.data[wait] : NULL))
			threads[(*count)++] = (struct why_live_thread){
				.pid = model->threads.data[i].pid,
				.thread = i,
				.wait = has_wait ? wait : MODEL_NONE,
			};
	}
	if (*count)
		qsort(threads, *count, sizeof(*threads), live_compare);
	return threads;
}

void why_standstills_find(struct why_hangs *hangs, const struct model *model,
			  struct stack_names *names)
{
	uint32_t count;
	struct why_live_thread *threads = live_threads_new(&count, hangs, model, names);

	polled_check(hangs, model);
	for (size_t i = 0; i < hangs->waits.len; i++)
		hangs->waits.data[i].stuck = has_always_waited(model, &hangs->waits.data[i]);
	stuck_spread(hangs);
	for (uint32_t from = 0, end; from < count; from = end) {
		for (end = from + 1; end < count && threads[end].pid == threads[from].pid;)
			end++;
		process_examine(hangs, model, &threads[from], end - from);
		why_pool_examine(hangs, model, names, &threads[from], end - from);
	}
	free(threads);
	why_families_find(hangs, model);
}
