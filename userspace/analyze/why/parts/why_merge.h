/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums up the causes of several instances, such as all workers of one name. Workers come and go,
 * and so do the threads that they wait for. So culprits with the same name count as one.
 */
#ifndef WAFFLE_ANALYZE_WHY_PARTS_WHY_MERGE_H
#define WAFFLE_ANALYZE_WHY_PARTS_WHY_MERGE_H

#include "analyze/why/why_types.h"

struct why_merged_part {
	enum why_cause cause;
	enum why_grade grade; /* the best grade that at least 90 % of the time has */
	uint64_t ns, stretches;
	uint64_t pool_wait_ns; /* as in struct why_part */
	bool own;              /* the culprit is the thread of the instance itself */
	bool idle, capture;    /* as in struct why_part */
	uint32_t threads;      /* number of culprits, unless `own` */
	uint32_t thread;       /* the culprit with the most time; MODEL_NONE: none */
	uint32_t object;       /* in why.texts; 0: none */
	uint32_t connections;  /* as in struct why_part, at least so many */
	struct why_polls polls;
	struct why_neighbour neighbour; /* that with the most bytes of those of all */
	uint64_t grade_ns[WHY_GRADE_CERTAIN + 1];
	/* Where the culprits ran: a range in why_merged.places, as in struct why_part. */
	uint32_t place, place_count;
};

struct why_merged {
	uint64_t ns, running_ns, runnable_ns, blocked_ns, unknown_ns;
	VEC(struct why_merged_part) parts; /* the longest first; their sum is `ns` */
	sample_counts places;
};

/* Merges all instances of `why`. The caller frees the result with why_merged_free(). */
void why_merge(struct why_merged *merged, const struct why *why);
void why_merged_free(struct why_merged *merged);

#endif
