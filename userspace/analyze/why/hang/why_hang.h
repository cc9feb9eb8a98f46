/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits that go on when the capture ends, and deadlocks: cycles of threads of which each waits for
 * a lock that the next one holds. The owners come from the memory of the program, which the capture
 * read at its end (bpf/record.h: waffle_rec_open_wait).
 */
#ifndef WAFFLE_ANALYZE_WHY_HANG_WHY_HANG_H
#define WAFFLE_ANALYZE_WHY_HANG_WHY_HANG_H

#include "model/model.h"
#include "symbolize/stack_names.h"
#include "util/vec.h"

/* What an open wait is for. */
enum why_awaited {
	WHY_AWAITS_UNKNOWN, /* perhaps for work */
	WHY_AWAITS_END,     /* the end of a thread */
	WHY_AWAITS_LOCK,    /* a lock with an owner, or one of Python */
	WHY_AWAITS_PROCESS, /* another process at a pipe, or the end of one, in a deadlock */
	/* A lock whose owner is not recorded. Threads of a pool may hold it in turn while they wait
	 * for work. */
	WHY_AWAITS_PASSED_LOCK,
	/* A lock of Python, or a queue.SimpleQueue: functions of the interpreter have no names. */
	WHY_AWAITS_PERHAPS_LOCK,
	WHY_AWAITS_MONITOR, /* that of an object of Java */
	WHY_AWAITS_PROGRAM, /* a lock that the program made itself: see why_lock_names.h */
	WHY_AWAITS_ANSWER,  /* what another program has to answer, in the same way */
	WHY_AWAITS_ENDED,   /* a mutex whose owner has ended, so that nobody can release it */
	/* One that it shares with its children: only if all of these wait, too, is it stuck. */
	WHY_AWAITS_SHARED,
	WHY_AWAITS_RANKS,   /* the other ranks in a collective */
	WHY_AWAITS_NOTHING, /* the C library stopped the thread: the kernel refused its lock */
};

/* Whether a wait can't end, whatever the other threads do. */
static inline bool why_awaits_in_vain(enum why_awaited awaits)
{
	return awaits == WHY_AWAITS_NOTHING || awaits == WHY_AWAITS_ENDED;
}

/* What is said of such a mutex, with the number of the thread and with why_ended_had(). */
#define WHY_ENDED_TEXT "thread %" PRIu32 " %s it when it ended"
static inline const char *why_ended_had(bool shared)
{
	return shared ? "may have had" : "had";
}

/* An open wait. */
struct why_hung {
	uint32_t wait; /* index in model.open_waits */
	/* The thread that holds the lock or the other end of the pipe, or that has to end, or its
	 * process; MODEL_NONE: unknown. */
	uint32_t owner;
	uint32_t next;     /* index in `waits` of the owner's own wait; MODEL_NONE: it is in none */
	bool sure;         /* a function of the stack shows that it is a lock, or the kernel does */
	bool others;       /* the owner's process has other threads, which may end the wait, too */
	uint32_t deadlock; /* index in `deadlocks`; MODEL_NONE: it is in none */
	enum why_awaited awaits;
	/* It is in a deadlock, or the C library stopped it, or its lock's owner has ended, or it
	 * waits for such a thread. Or it may be so: for all of the capture it has waited for a
	 * lock, the end of a thread or other ranks. */
	bool stuck;
};

/* A cycle; following `next` from `first` leads back to it after `count` waits. */
struct why_deadlock {
	uint32_t first, count;
	bool perhaps; /* some wait for a process, so that a handler of a signal might end it */
	bool others;  /* or another thread of such a process */
};

/* All threads of a process wait for another one of the same process, and none has a timeout; a
 * single thread waits for a lock that no other one can release. Or some do, for all of the capture,
 * and for at least two locks, or since their jobs of a pool wait for others. Who has what they wait
 * for is not known. */
struct why_standstill {
	uint32_t thread; /* one of the process */
	uint32_t threads, of;
	bool all_inside; /* all wait for another thread of the process, and none has a timeout */
	/* `thread` is of a process whose threads, and those of all of its descendants, wait for
	 * each other: for the end of a child, or a lock that they share. */
	bool family;
	/* "a ThreadPoolExecutor": the threads are all that it has, and `thread` is one of them;
	 * NULL: they are of no pool. */
	const char *pool;
};

/* A process that lives when the capture ends, and its parent. */
struct why_child {
	uint32_t ppid, pid;
	uint32_t thread; /* the main one */
};

struct why_hangs {
	/* Those in a deadlock first, in its order; then those that the C library stopped, and those
	 * for a lock whose owner has ended; then others that are stuck; then those with an owner;
	 * then uninterruptible ones; then the others, those of the JVM's own threads last. Of each
	 * kind the longest first. */
	VEC(struct why_hung) waits;
	VEC(struct why_deadlock) deadlocks;
	VEC(struct why_standstill) standstills; /* without processes that have one of the others */
	VEC(struct why_child) children;         /* by parent, then by number */
	uint32_t stopped; /* the number of threads that the C library stopped */
	uint32_t ended;   /* the number of those that wait for a lock of a thread that has ended */
};

/* The owner that an open wait of a model says, unless the functions of its stack show that the wait
 * is for something else. MODEL_NONE: unknown. *sure as in struct why_hung. `names` may be NULL. */
uint32_t why_hang_owner(const struct model *model, struct stack_names *names,
			const struct model_open_wait *wait, bool *sure);

/* Whether functions of the stack show that an open wait is for a mutex, whose owner has ended.
 * `names` may be NULL. */
bool why_hang_is_orphan(const struct model *model, struct stack_names *names,
			const struct model_open_wait *wait);
/* Whether other processes may have the memory of the futex. Then any of them may have written the
 * owner. */
bool why_hang_is_shared(const struct model *model, const struct model_open_wait *wait);

/* Whether functions of the stack show that an open wait is for a lock of the process, whose owner
 * is not recorded. `names` may be NULL. */
bool why_hang_is_lock(const struct model *model, struct stack_names *names,
		      const struct model_open_wait *wait);

/* Whether functions of the stack show that an open wait is for the other ranks in a collective.
 * `names` may be NULL. */
bool why_hang_is_for_ranks(const struct model *model, struct stack_names *names,
			   const struct model_open_wait *wait);

/* Whether functions of the stack show that an open wait is for the end of a thread. `names` may be
 * NULL. */
bool why_hang_is_join(const struct model *model, struct stack_names *names,
		      const struct model_open_wait *wait);

/* Which children a call waits for. */
struct why_wanted_children {
	bool any;
	uint32_t number; /* of the only one, as its parent sees it */
};

/* False: it waits for none, for those of a group of processes, or for that of a pidfd; or its
 * arguments are not known (NULL). */
bool why_wanted_children(struct why_wanted_children *wanted, const char *syscall,
			 const uint64_t *args);

/* So many of the children that a thread waits for are named. */
#define WHY_CHILDREN 3

/* The children that a thread waits for in wait4(2) or waitid(2), as far as the capture has them:
 * the one whose number it has given, or all that live, if any of them ends the wait. Returns their
 * number, and the main threads of the first ones. */
uint32_t why_hang_children(const struct why_hangs *hangs, const struct model *model,
			   const struct model_open_wait *wait, uint32_t children[WHY_CHILDREN]);

/* Whether a process that has ended may have left a lock to its parent and the parent's other
 * children: all are traced, none of these began later, and each waits for a lock that processes
 * share, only for others of its process, or, the parent, for a child. Of a child that ended before
 * the capture it is not known when: then only those count as later that began during the capture.
 * `ended`: its main thread. `names` may be NULL. In why_family.c. */
bool why_hang_children_share(const struct model *model, struct stack_names *names, uint32_t ended);

/* The caller frees the result with why_hangs_free(). */
void why_hangs_find(struct why_hangs *hangs, const struct model *model, struct stack_names *names);
void why_hangs_free(struct why_hangs *hangs);

#endif
