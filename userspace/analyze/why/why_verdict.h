/* SPDX-License-Identifier: Apache-2.0 */
/* What a classifier is asked, and what it decides. */
#ifndef WAFFLE_ANALYZE_WHY_WHY_VERDICT_H
#define WAFFLE_ANALYZE_WHY_WHY_VERDICT_H

#include "analyze/why/why_walk_types.h"

static inline enum why_grade why_grade_least(enum why_grade a, enum why_grade b)
{
	return a < b ? a : b;
}

enum why_verdict_kind {
	WHY_VERDICT_NONE,   /* undecided: another rule decides */
	WHY_VERDICT_END,    /* the chain ends here */
	WHY_VERDICT_FOLLOW, /* what `thread` did during the last step explains it */
	WHY_VERDICT_JOIN,   /* it goes on, and counts as the thread's earlier waits in `sum` */
};

/* The samples that show what a piece of running time was spent on. They are those taken in page
 * faults, or all others; those from faults_from_ts on count as others in any case, as the faults of
 * no record. */
struct why_sampling {
	uint64_t from_ts, to_ts; /* the same: none */
	uint64_t faults_from_ts;
	bool faults;
};

/* What a classifier decides about the last step of the path. The classifier makes that step and
 * adds its evidence. It never follows another thread: if the verdict says so, why_walk.c does. */
struct why_verdict {
	enum why_verdict_kind kind;
	uint32_t thread; /* the culprit, or the thread to follow */
	/* WHY_VERDICT_END */
	enum why_cause cause;
	enum why_grade grade;
	uint32_t span; /* the culprit's */
	uint32_t object;
	bool idle;      /* as in struct why_part */
	bool pool_wait; /* the time is in pool_wait_ns of struct why_part */
	struct why_polls polls;
	struct why_disk_use disk;
	struct why_sampling sampling;
	/* WHY_VERDICT_FOLLOW */
	struct why_link link;
	/* WHY_VERDICT_JOIN */
	uint32_t sum; /* index in why_walk.sums */
};

#define WHY_UNDECIDED ((struct why_verdict){.kind = WHY_VERDICT_NONE})

/* The time of a thread in one state that is explained at once. */
struct why_stretch {
	uint32_t thread;
	size_t index; /* of the interval */
	const struct why_interval *interval;
	uint64_t from, to;           /* within the interval */
	const struct why_link *link; /* NULL: the instance's own thread */
	enum why_grade grade;        /* of the chain so far */
	struct why_await await;
};

#endif
