/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The causes of all spans of a name: ranked by time, and what is different about the slow ones.
 * Only whole spans count: those that begin and end in the capture. The causes of a group sum to its
 * explained_ns exactly.
 */
#ifndef WAFFLE_ANALYZE_WHY_AGGREGATE_H
#define WAFFLE_ANALYZE_WHY_AGGREGATE_H

#include "analyze/why.h"

/* Causes of a group that are told apart by their culprits. The smallest of more are put together:
 * first those that differ in their object only, then all of one cause. */
#define WHY_GROUP_CAUSES_MAX 64

/* A cause and its culprit, by names: threads come and go. */
struct why_group_cause {
	enum why_cause cause;
	enum why_grade grade; /* that nine tenths of the time have at least */
	bool own;        /* the culprit is the span's own thread; it computed, slept, … itself */
	uint32_t comm;   /* of the culprit, in model.strings; MODEL_NONE: none, or several */
	uint32_t span;   /* the group that the culprit's span is of, or MODEL_NONE */
	uint32_t object; /* in why_aggregate.why->texts; 0: none, or several */
	uint32_t merged; /* so many culprits were put together here; 0: it is one */
	uint64_t total_ns;
	uint64_t spans;     /* in which it occurs; merged: at least */
	uint64_t slow_ns;   /* of total_ns, in the slow spans */
	uint64_t median_ns; /* in the median ones */
	uint64_t grade_ns[WHY_GRADE_CERTAIN + 1];
	uint32_t last; /* span that was counted */
};

/* Spans of one name and category. Strings belong to the model's reader. */
struct why_group {
	const char *name, *category;
	uint64_t count, total_ns;
	uint64_t explained, explained_ns; /* of these; less only if why_aggregate.partial */
	/* Slow: of at least the 99th percentile. Median: from the 40th to the 60th. Ranks are the
	 * nearest, all counts and sums of explained spans. */
	uint64_t p40_ns, p60_ns, p99_ns;
	uint64_t slow_count, median_count;
	uint64_t slow_total_ns, median_total_ns;
	VEC(struct why_group_cause) causes; /* by falling total_ns */
};

struct why_aggregate {
	const struct model *model;
	struct why *why;              /* texts only */
	VEC(struct why_group) groups; /* one for each name and category of sites */
	uint32_t *group_of;           /* group of each site; last: of spans without one */
	uint32_t site_count;
	bool partial; /* explaining all would have taken too long: spans behind some time are not */
};

struct why_aggregate_options {
	const struct why_names *names; /* NULL: not at hand */
	uint64_t stretches;            /* at most about so many are followed, 0: all */
};

/* Some tens of seconds on the machines of the year 2025. */
#define WHY_AGGREGATE_STRETCHES 300000000ull

/* -ENODATA if the capture has no scheduler records. The model must outlive it. */
int why_aggregate_new(struct why_aggregate **aggregate, const struct model *model,
		      const struct why_aggregate_options *options, struct error *err);
void why_aggregate_free(struct why_aggregate *aggregate);

/* The group of spans of a site; site MODEL_NONE: of unknown ones. */
const struct why_group *why_aggregate_group(const struct why_aggregate *aggregate, uint32_t site);

/* How much longer a cause takes in a slow span than in a median one, on average. */
int64_t why_group_difference(const struct why_group *group, const struct why_group_cause *cause);
uint64_t why_group_mean(uint64_t sum_ns, uint64_t count);

/* The causes that differ most between slow and median spans, the largest difference first; returns
 * how many, at most `max`. None if the slow ones are hardly slower, or too few spans are known. */
size_t why_group_different(const struct why_group *group, uint32_t *causes, size_t max);

#endif
