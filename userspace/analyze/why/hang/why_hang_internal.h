/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of why_hangs_find(). */
#ifndef WAFFLE_ANALYZE_WHY_HANG_WHY_HANG_INTERNAL_H
#define WAFFLE_ANALYZE_WHY_HANG_WHY_HANG_INTERNAL_H

#include "analyze/why/hang/why_hang.h"

/* What an open wait is for, by the functions of its stack and the arguments of its call. `names`
 * may be NULL. In why_awaited.c. */
enum why_awaited why_awaited_by(const struct model *model, struct stack_names *names,
				const struct model_open_wait *wait);

/* Whether a wait of a process's only thread can never end: it is for a lock, or for something else
 * that only another thread could do. */
static inline bool why_awaits_lock(enum why_awaited awaits)
{
	return awaits == WHY_AWAITS_LOCK || awaits == WHY_AWAITS_PASSED_LOCK ||
	       awaits == WHY_AWAITS_PERHAPS_LOCK;
}

static inline bool why_hang_is_alive(const struct model_thread *thread)
{
	return thread->traced && !thread->track && !thread->gone && !thread->exit_ts;
}

/* The threads are not looked at all at once, so each has to have waited for a while before. */
#define WHY_STANDSTILL_NS 100000000ull

/* Whether only another thread of the process can end a wait. */
static inline bool why_hang_is_inside(const struct model_open_wait *wait)
{
	return wait->flags & WAFFLE_OPEN_WAIT_INSIDE &&
	       wait->ts - wait->from_ts >= WHY_STANDSTILL_NS;
}

/* Whether a thread does nothing that others may wait for: since before the capture it has waited
 * for another one of its process itself; it sleeps; or it waits for a signal, or as the main thread
 * for a connection. A sleep may end, and what the thread does then is not known. In
 * why_idle_thread.c. */
bool why_hang_is_idle(const struct model *model, uint32_t thread);

/* Finds the owners of locks of files. Finds also the threads at the other ends of pipes, and those
 * of children that are waited for: these count only in a deadlock, and why_ends_check() takes back
 * the others. Needs hangs->children. In why_ends.c. */
void why_ends_find(struct why_hangs *hangs, const struct model *model);
void why_ends_check(struct why_hangs *hangs);

/* Fills hangs->children. In why_children.c. */
void why_children_find(struct why_hangs *hangs, const struct model *model);

/* The same for processes that wait for each other and for their children: marks the waits for a
 * lock that they share. In why_family.c. */
void why_families_find(struct why_hangs *hangs, const struct model *model);

/* A thread that lives when the capture ends. */
struct why_live_thread {
	uint32_t pid, thread;
	uint32_t wait; /* index in `waits`; MODEL_NONE: it has no open wait */
};

/* The same for the threads of a process that are in pools. In why_pool_hang.c. */
void why_pool_examine(struct why_hangs *hangs, const struct model *model, struct stack_names *names,
		      const struct why_live_thread *list, uint32_t count);

/* Marks the waits that are stuck, and adds the processes at a standstill. The waits are in the
 * order of the model, and have their owners and deadlocks. In why_standstill.c. */
void why_standstills_find(struct why_hangs *hangs, const struct model *model,
			  struct stack_names *names);

#endif
