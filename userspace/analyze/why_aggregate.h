/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For each span name: its causes over all its whole spans, and what is different about the slow
 * ones. Slow are those of at least the 99th percentile; they are held against the usual ones, which
 * lie between the 40th and the 60th. Percentiles are by nearest rank, as in a report.
 *
 * What a span's own thread is the culprit of is one cause whichever thread it was, so that workers
 * of a pool are not told apart.
 */
#ifndef WAFFLE_ANALYZE_WHY_AGGREGATE_H
#define WAFFLE_ANALYZE_WHY_AGGREGATE_H

#include "analyze/why.h"

struct why_sum {
	enum why_cause cause;
	enum why_grade grade;
	bool own;         /* the culprit is the span's own thread */
	bool rest;        /* causes of this kind that were too many to be told apart */
	const char *comm; /* of the culprit; NULL: none, or own */
	const char *span; /* name of its span; NULL: none */
	const char *object;
	uint64_t instances; /* of which it is a cause */
	uint64_t ns;
	uint64_t slow_ns, usual_ns; /* sums over the slow and the usual ones */
	int64_t more_ns;            /* mean of the slow ones less that of the usual ones */
};

struct why_name {
	const char *name, *category;
	uint64_t count, total_ns; /* whole spans */
	uint64_t slow_from_ns;    /* duration from which on a span is slow */
	uint64_t usual_from_ns, usual_to_ns;
	uint64_t slow_count, usual_count;
	uint64_t slow_total_ns, usual_total_ns;
	uint32_t sum, sum_count; /* in aggregate.sums, the most time first */
	uint32_t different; /* in aggregate.different: so many again, those with most more_ns first
			     */
};

struct why_aggregate {
	const struct model *model;
	struct strtab *texts;       /* strings of the sums */
	VEC(struct why_name) names; /* the most time first */
	VEC(struct why_sum) sums;
	VEC(uint32_t) different; /* indexes of sums, those with most more_ns first */
};

/* The model must outlive it. `names` may be NULL. -ENOMEM with a message. */
int why_aggregate_new(struct why_aggregate **aggregate, const struct model *model,
		      const struct why_names *names, struct error *err);
void why_aggregate_free(struct why_aggregate *aggregate);

#endif
