/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The causes of all spans of a name: ranked by time, and what is different about the slow ones.
 * Only whole spans count: those that begin and end in the capture.
 */
#ifndef WAFFLE_ANALYZE_WHY_AGGREGATE_H
#define WAFFLE_ANALYZE_WHY_AGGREGATE_H

#include "analyze/why.h"

/* A cause and its culprit, by names: threads come and go. */
struct why_group_cause {
	enum why_cause cause;
	enum why_grade grade; /* the weakest of what was summed up */
	uint32_t comm;        /* of the culprit, in model.strings; 0: none */
	uint32_t site;        /* of the culprit's span, or MODEL_NONE */
	uint64_t total_ns;
	uint64_t spans;     /* in which it occurs */
	uint64_t slow_ns;   /* of total_ns, in the slow spans */
	uint64_t median_ns; /* in the median ones */
	uint64_t most_ns;   /* in one span … */
	uint32_t most;      /* … which is this one */
	uint32_t last;      /* span that was counted */
};

/* Spans of one name and category. Strings belong to the model's reader. */
struct why_group {
	const char *name, *category;
	uint64_t count, total_ns;
	/* Slow: of at least the 99th percentile. Median: from the 40th to the 60th. */
	uint64_t p40_ns, p60_ns, p99_ns;
	uint64_t slow_count, median_count;
	uint64_t slow_total_ns, median_total_ns;
	uint64_t with_loss;
	VEC(struct why_group_cause) causes; /* by falling total_ns */
};

struct why_aggregate {
	const struct model *model;
	VEC(struct why_group) groups; /* by falling total_ns */
};

/* -ENODATA if the capture has no scheduler records. The model must outlive it. */
int why_aggregate_new(struct why_aggregate **aggregate, const struct model *model,
		      struct error *err);
void why_aggregate_free(struct why_aggregate *aggregate);

/* How much longer a cause takes in a slow span than in a median one, on average. */
int64_t why_group_difference(const struct why_group *group, const struct why_group_cause *cause);

#endif
