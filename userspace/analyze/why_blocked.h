/* SPDX-License-Identifier: Apache-2.0 */
/* The parts that explain a stretch of blocked time; inside of why_blocked.c and those parts. */
#ifndef WAFFLE_ANALYZE_WHY_BLOCKED_H
#define WAFFLE_ANALYZE_WHY_BLOCKED_H

#include "analyze/why_walk.h"

/* A stretch of a blocked interval, which is the last step of the path. */
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
	struct why_ender ender;
	uint64_t end_ts; /* when `ender` ended it, perhaps in a later wait for the same */
	bool by_signal;  /* a signal, which it did not wait for, ended it */
	bool first;      /* of the thread that is asked for: nobody waits for this one */
	uint32_t object;
	enum why_grade grade; /* of the way to here, with this wait */
};

/* In why_woken.c. The chain ends here; the grade is at most that of the way to here. */
int why_blocked_end(struct why_walk *walk, const struct why_blocked *blocked, enum why_cause cause,
		    enum why_grade grade, uint32_t culprit);
/* The chain goes on with what another thread did in the same time. */
int why_blocked_follow(struct why_walk *walk, const struct why_blocked *blocked, uint32_t thread,
		       enum why_grade grade);
bool why_blocked_is_on_path(const struct why_walk *walk, uint32_t thread);

/* A thread ended it. */
int why_blocked_woken_by(struct why_walk *walk, struct why_blocked *blocked, enum why_grade grade);
/* What is known of who ended a wait is all that is known of what it did for it. */
enum why_grade why_blocked_grade_of_waker(struct why_walk *walk, const struct why_blocked *blocked);
/* A signal ended it, which the thread did not wait for. */
int why_blocked_signalled(struct why_walk *walk, struct why_blocked *blocked);

/* An interrupt ended it; in why_interrupted.c. */
int why_blocked_interrupted(struct why_walk *walk, struct why_blocked *blocked);
/* Whether it waits for a timer, perhaps among other things. */
bool why_blocked_polls_timer(const struct why_blocked *blocked);
/* Nobody is known to have ended a wait for a futex. */
int why_blocked_timeout(struct why_walk *walk, struct why_blocked *blocked);

/* A device, or a page that has to be read from one; in why_device.c. */
int why_blocked_at_device(struct why_walk *walk, struct why_blocked *blocked, bool write);
int why_blocked_at_fault(struct why_walk *walk, struct why_blocked *blocked);
/* In D state without a file: the requests of the thread tell, if there are any. */
int why_blocked_at_unknown_device(struct why_walk *walk, struct why_blocked *blocked);
/* A request to a device ended a wait for any of several things; 1: that is not known. */
int why_blocked_polled_device(struct why_walk *walk, struct why_blocked *blocked);

/* Asleep, stopped, or held by waffle-bpf; in why_stopped.c. */
int why_blocked_at_sleep(struct why_walk *walk, const struct why_blocked *blocked);
int why_blocked_at_stop(struct why_walk *walk, const struct why_blocked *blocked);
/* The kernel asks waffle-bpf before a new program is opened. */
bool why_blocked_is_own_hold(const struct why_walk *walk, const struct why_blocked *blocked);
int why_blocked_end_held(struct why_walk *walk, const struct why_blocked *blocked, uint32_t thread);

#endif
