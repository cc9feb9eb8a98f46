/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What changed between two captures: for each name of spans, how long a span takes on average, and
 * which causes take more or less of it. Spans are compared by name and category, and culprits by
 * their names, since the numbers of threads and the addresses of locks differ in every run.
 */
#ifndef WAFFLE_ANALYZE_WHY_WHY_COMPARE_H
#define WAFFLE_ANALYZE_WHY_WHY_COMPARE_H

#include "analyze/why/why_aggregate.h"

enum why_side { WHY_BEFORE, WHY_AFTER, WHY_SIDES };

/* A cause with one culprit, in both captures. */
struct why_change {
	/* NULL: this capture does not have it. If it has several of this key, the largest. */
	const struct why_group_cause *cause[WHY_SIDES];
	double ns[WHY_SIDES]; /* in an average span */
};

/* The spans of one name. */
struct why_change_name {
	const struct why_group *group[WHY_SIDES]; /* NULL: this capture has no such whole span */
	double ns[WHY_SIDES];                     /* duration of an average span; 0 without spans */
	/* How much time the change makes in the later capture, or in the earlier one if the later
	 * one has no such spans. */
	double weight_ns;
	/* The largest change first, whatever its sign. Their sum is the change of the duration. */
	VEC(struct why_change) causes;
};

struct why_comparison {
	const struct why_aggregate *of[WHY_SIDES];
	VEC(struct why_change_name) names; /* the largest weight_ns first */
};

/* `name` NULL: all names. The aggregates must outlive the comparison, which the caller frees with
 * why_comparison_free(). */
void why_compare(struct why_comparison *comparison, const struct why_aggregate *before,
		 const struct why_aggregate *after, const char *name);
/* True: in both captures, an average span has less than half a nanosecond of the cause. Such causes
 * come last. */
bool why_change_is_nothing(const struct why_change *change);
void why_comparison_free(struct why_comparison *comparison);

#endif
