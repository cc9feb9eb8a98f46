/* SPDX-License-Identifier: Apache-2.0 */
/* Private to why_blocked.c and the files that explain kinds of blocked time. */
#ifndef WAFFLE_ANALYZE_WHY_CAUSE_WHY_BLOCKED_INTERNAL_H
#define WAFFLE_ANALYZE_WHY_CAUSE_WHY_BLOCKED_INTERNAL_H

#include "analyze/why/series/why_waiting.h"
#include "analyze/why/why_verdict.h"
#include "analyze/why/why_walk_types.h"

/* A stretch of a blocked interval. It is the last step of the path. */
struct why_blocked {
	uint32_t thread;
	const struct why_interval *interval;
	size_t index;
	uint64_t from, to;
	const struct model_wait *wait;
	struct wait_facts facts;
	enum wait_kind kind;
	struct why_stack stack;
	struct why_waiting waiting;
	struct why_waker waker;
	uint64_t end_ts; /* when `waker` ended it, possibly in a later wait of the series */
	bool by_signal;  /* a signal that it did not wait for ended it */
	bool missed;     /* what it waited for may have come later, while it was awake */
	const struct why_link *link; /* NULL: it belongs to the instance's own thread */
	uint32_t object;
	uint32_t program_lock; /* text of the lock of the program's own that it is for; 0: none */
	/* It sleeps to try to lock a file again, which `holder` had locked; NULL: it does not. */
	const struct model_lock_refusal *file_lock;
	uint32_t holder;      /* main thread of another process; MODEL_NONE: unknown */
	enum why_grade grade; /* of the chain up to and including this wait */
};

/* ---- why_pressure.c ---- */

/* The text of the awaited object, and of the limit that made the wait long. Fills in `disk`, which
 * is all 0, if the wait was for one. */
uint32_t why_pressure(struct why_walk *walk, const struct why_blocked *blocked,
		      enum why_cause cause, struct why_disk_use *disk);

/* ---- why_woken.c ---- */

/* The chain ends at this wait. The verdict's grade is at most blocked->grade. */
struct why_verdict why_blocked_end(struct why_walk *walk, const struct why_blocked *blocked,
				   enum why_cause cause, enum why_grade grade, uint32_t culprit);
/* Whether the thread is a server that waits for a client, or for the client's next request. */
bool why_blocked_serves(struct why_walk *walk, const struct why_blocked *blocked);
/* The chain continues with another thread, for the same time. */
struct why_verdict why_blocked_follow(struct why_walk *walk, const struct why_blocked *blocked,
				      uint32_t thread, enum why_grade grade);

/* The cause of the part says what the chain says, too: "socket:[7] (tcp …): neither end sends". */
uint32_t why_blocked_object_with(struct why_walk *walk, uint32_t object, const char *text);

/* Both ends of the connection wait for each other: a packet was held back or lost on its way. */
struct why_verdict why_blocked_neither_sends(struct why_walk *walk, struct why_blocked *blocked);
/* A client waits for the answer of a server, and something else ends the wait: a timeout, a signal
 * or the end of the capture. The chain continues with the server. Undecided if it is not known
 * which thread serves the client. In why_interrupted.c. */
struct why_verdict why_blocked_for_answer(struct why_walk *walk, struct why_blocked *blocked);
/* Continues with the server that a client waits for. */
struct why_verdict why_blocked_follow_server(struct why_walk *walk,
					     const struct why_blocked *blocked, uint32_t server);
/* The same if the server's wait is on the path. */
struct why_verdict why_blocked_unanswered(struct why_walk *walk, struct why_blocked *blocked,
					  uint32_t server);
/* The server's wait, for whatever comes next, while the client waits for it as above. Undecided if
 * this is no such wait. */
struct why_verdict why_blocked_silent(struct why_walk *walk, struct why_blocked *blocked);
/* The chain continues with the thread that ended the wait. */
struct why_verdict why_blocked_woken_by(struct why_walk *walk, struct why_blocked *blocked,
					enum why_grade grade);
/* How sure it is that the waker's work was what the wait was for. */
enum why_grade why_blocked_grade_of_waker(struct why_walk *walk, const struct why_blocked *blocked);
/* Whether readers may have held the kernel's lock: several at once, of which the last one woke the
 * thread. */
bool why_blocked_is_shared(const struct why_blocked *blocked);
/* Whether it polls a timer, possibly among other things. */
bool why_blocked_polls_timer(const struct why_blocked *blocked);
/* A signal that the thread did not wait for ended the wait. */
struct why_verdict why_blocked_signalled(struct why_walk *walk, struct why_blocked *blocked);

/* Sets the object of a wait in epoll_wait() to the file that became ready, and that of a poll() to
 * its only connection (why_polled.h); in why_ready.c. If the
 * series of the wait ended with a later interval `last`, that is the object of `last`. If something
 * else ended the wait, the object is unknown. Returns whether the object has changed. */
bool why_blocked_find_ready(const struct why_walk *walk, struct why_blocked *blocked, size_t last);

/* An interrupt ended the wait; in why_interrupted.c. */
struct why_verdict why_blocked_interrupted(struct why_walk *walk, struct why_blocked *blocked);
/* Explains a futex wait that nobody is known to have ended: its timeout expired, or the holder of
 * Python's lock released it just when the thread checked. */
struct why_verdict why_blocked_timeout(struct why_walk *walk, struct why_blocked *blocked);
/* The waker of a wait for the GIL may itself have waited for something else nearly all the time,
 * without the GIL. Then the thread that ran meanwhile becomes the waker. */
void why_blocked_find_holder(struct why_walk *walk, struct why_blocked *blocked);

/* Whether a thread of a program ended the wait. It released something, such as a lock. A device's
 * interrupt, or a kernel thread on its behalf, ends a wait for the device. */
bool why_blocked_by_program(const struct why_walk *walk, const struct why_blocked *blocked);
/* A wait for a device, or for a page to be read from one; in why_device.c. */
struct why_verdict why_blocked_at_device(struct why_walk *walk, struct why_blocked *blocked,
					 bool write);
/* A writer that the kernel throttles until dirty pages are written. */
struct why_verdict why_blocked_dirty_throttled(struct why_walk *walk, struct why_blocked *blocked);
struct why_verdict why_blocked_at_fault(struct why_walk *walk, struct why_blocked *blocked);
/* An uninterruptible (D) wait without a known file: the thread's own requests decide, if it has
 * any. */
struct why_verdict why_blocked_at_unknown_device(struct why_walk *walk,
						 struct why_blocked *blocked);
/* A device request ended a wait for several things. Undecided if that is not certain enough. */
struct why_verdict why_blocked_polled_device(struct why_walk *walk, struct why_blocked *blocked);

/* The wait goes on when the capture ends, and nothing shows who has to end it. If its thread has
 * waited at this place for the same thing before, for at least as long, what explained most of
 * that explains it. Otherwise undecided; in why_earlier.c. */
struct why_verdict why_blocked_as_earlier(const struct why_walk *walk,
					  const struct why_blocked *blocked);

/* These explain a wait that goes on when the capture ends by the state of the other end of the pipe
 * or connection (why_other_end.c), or return WHY_UNDECIDED. */
/* All processes that hold the other end, or the lock of the file, are stopped, recorded or not. */
struct why_verdict why_blocked_at_stopped_holders(struct why_walk *walk,
						  const struct why_blocked *blocked);
/* The other end has gone, but has not closed the connection: nothing comes any more. */
struct why_verdict why_blocked_at_gone(struct why_walk *walk, struct why_blocked *blocked);
/* `peer`, the only thread at the other end, polls and has not read what it has got. */
struct why_verdict why_blocked_at_unread(struct why_walk *walk, struct why_blocked *blocked,
					 uint32_t peer);

/* The sleep, if the thread polls; in why_polling.c. */
struct why_polls why_polls_of(const struct why_walk *walk, const struct why_blocked *blocked);
/* Text of the program's own lock that it waits for, if its functions show that; 0: they do not. In
 * why_program_lock.c. */
uint32_t why_program_lock(struct why_walk *walk, const struct why_blocked *blocked);
/* Finds the file that the thread sleeps to lock, and whoever has locked it; in why_file_lock.c. */
void why_file_lock_find(struct why_walk *walk, struct why_blocked *blocked);
void why_file_lock_describe(struct why_walk *walk, const struct why_blocked *blocked,
			    struct why_step *step);
/* Whether the thread has waited in the system call of its sleep, or with `any` in another one but
 * futex(), between a time and the sleep. True if that is not known: a capture's window has only
 * some of the intervals. */
bool why_has_waited_since(const struct why_walk *walk, const struct why_blocked *blocked,
			  uint64_t ts, bool any);
/* Text of the failed request that the thread sleeps after, "after HTTP status 503 from
 * 10.0.0.2:80"; 0: there is none. In why_failed_request.c. */
uint32_t why_failed_request(struct why_walk *walk, const struct why_blocked *blocked);
/* Whether the thread's timer slack makes the sleep much longer. Then that is its object; in
 * why_late_sleep.c. */
bool why_late_sleep(struct why_walk *walk, struct why_blocked *blocked);
/* The chain continues with the holder if that is known to be the one thread of a traced process. */
struct why_verdict why_blocked_at_file_lock(struct why_walk *walk, struct why_blocked *blocked);
/* If the thread is in no span, and Go's runtime had nothing to run on it, the thread waited for
 * nothing that a goroutine needs. Then the cause says so, unless something outside of the program
 * ended the wait. The same holds for all threads of a program that is explained as a whole.
 * Otherwise returns `verdict`, which is the one on the wait; in why_go_wait.c. */
struct why_verdict why_go_at_idle(struct why_walk *walk, struct why_blocked *blocked,
				  struct why_verdict verdict);

/* Whether each wake-up ends the wait, because the runtime of Go then has something to run on the
 * thread. This matters if the program is explained as a whole, or if another process waits for it.
 * Then only the last wake-up before the answer counts of those that may be for other clients. To be
 * called when the wait is on the path. */
bool why_go_is_any(struct why_walk *walk, const struct why_blocked *blocked);

/* The wait goes on when the capture ends, and its functions show that it is for the other ranks in
 * a collective. Otherwise undecided; in why_ranks.c. */
struct why_verdict why_blocked_for_ranks(struct why_walk *walk, struct why_blocked *blocked);

/* Sleeping, stopped, or held by waffle-bpf; in why_stopped.c. */
struct why_verdict why_blocked_at_sleep(struct why_walk *walk, struct why_blocked *blocked);
struct why_verdict why_blocked_at_stop(struct why_walk *walk, struct why_blocked *blocked);
/* Whether the freezer of the cgroup ended the wait. */
bool why_blocked_is_thawed(const struct why_blocked *blocked);
/* The cgroup of the thread was frozen. */
struct why_verdict why_blocked_at_freeze(struct why_walk *walk, struct why_blocked *blocked);
/* What it waited for did not come, and the process that should have sent it is stopped. The chain
 * continues there. Undecided if none is. */
struct why_verdict why_blocked_at_halted(struct why_walk *walk, struct why_blocked *blocked);
/* Whether waffle-bpf held a new program: the kernel asks it before it opens the file. */
bool why_blocked_is_own_hold(const struct why_walk *walk, const struct why_blocked *blocked);
struct why_verdict why_blocked_end_held(struct why_walk *walk, const struct why_blocked *blocked,
					uint32_t thread);

#endif
