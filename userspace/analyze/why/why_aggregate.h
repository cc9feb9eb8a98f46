/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The causes of all spans of one name: sorted by time, with the difference between slow and median
 * spans. Only whole spans count, which begin and end in the capture. The causes of a group sum to
 * its explained_ns exactly.
 */
#ifndef WAFFLE_ANALYZE_WHY_WHY_AGGREGATE_H
#define WAFFLE_ANALYZE_WHY_WHY_AGGREGATE_H

#include "analyze/why/lookup/why_shares.h"
#include "analyze/why/why.h"

/* Maximum number of causes that a group keeps apart by culprit. Beyond that it merges the smallest:
 * first those that differ only in their object, then all of one cause. */
#define WHY_GROUP_CAUSES_MAX 64

/* A cause and its culprit. Threads come and go, so culprits are compared by name. */
struct why_group_cause {
	enum why_cause cause;
	enum why_grade grade; /* that at least 90 % of the time has */
	bool own;             /* the culprit is the span's own thread */
	uint32_t comm;        /* culprit's name in model.strings; MODEL_NONE: none, or several */
	uint32_t span;        /* group of the culprit's span, or MODEL_NONE */
	uint32_t object;      /* in why_aggregate.why->texts; 0: none, or several */
	uint32_t connections; /* number of those to the server that `object` names; 0: no such */
	uint32_t merged;      /* number of culprits merged here; 0: a single one */
	uint64_t total_ns;
	uint64_t ran_ns;    /* of these, as in struct why_part */
	uint64_t spans;     /* spans in which it occurs; if merged, a lower bound */
	uint64_t slow_ns;   /* part of total_ns in slow spans */
	uint64_t median_ns; /* part of total_ns in median spans */
	uint64_t grade_ns[WHY_GRADE_CERTAIN + 1];
	/* The culprit's process with three quarters of the time, as an index in model.processes;
	 * MODEL_NONE: there is none. */
	uint32_t process;
	sample_counts places; /* where the culprit ran, by its samples */
	/* While collecting: all processes; the last span that was counted; the texts of the
	 * connections. */
	why_shares processes;
	uint32_t last;
	struct map sockets;
};

/* The time for which a process of the target is to blame, whatever the causes. */
struct why_group_process {
	uint32_t process; /* index in model.processes */
	uint64_t ns;
	uint64_t others_ns; /* of these, in spans of other processes */
};
/* How many a group tells apart; others are left out. */
#define WHY_GROUP_PROCESSES_MAX 64

/* Spans of one name and category. The strings belong to the model or its reader. */
struct why_group {
	const char *name, *category;
	uint64_t count, total_ns;
	uint64_t explained, explained_ns; /* of these; fewer only if why_aggregate.partial */
	/* Spans whose end is not in the capture, and not lost, which are none of these: the time
	 * until the capture ended. */
	uint64_t unfinished, unfinished_ns;
	/* Slow spans have at least the 99th percentile, median spans lie between the 40th and the
	 * 60th (nearest rank). The counts and sums below cover explained spans. */
	uint64_t p40_ns, p60_ns, p99_ns;
	uint64_t slow_count, median_count;
	uint64_t slow_total_ns, median_total_ns;
	VEC(struct why_group_cause) causes;      /* by descending total_ns */
	VEC(struct why_group_process) processes; /* by descending ns */
};

struct why_aggregate {
	const struct model *model;
	struct why *why;              /* keeps only texts */
	VEC(struct why_group) groups; /* one per name and category of sites */
	uint32_t *group_of;           /* group of each site; the last one is for unknown sites */
	uint32_t site_count;
	/* Explaining all spans would have taken too long: later ones are not explained. */
	bool partial;
};

struct why_aggregate_options {
	struct stack_names *names; /* symbolizer; NULL: none */
	uint64_t stretches;        /* approximate limit of the stretches to follow; 0: none */
	const struct gpu_timeline *timeline; /* as in a why_query */
};

/* Takes some tens of seconds on a machine of 2025. */
#define WHY_AGGREGATE_STRETCHES 300000000ull

/* The caller frees the aggregate with why_aggregate_free(); the model must outlive it. Returns 0 or
 * a negative errno with a message; -ENODATA if the capture has no scheduler records. */
int why_aggregate_new(struct why_aggregate **aggregate, const struct model *model,
		      const struct why_aggregate_options *options, struct error *err);
void why_aggregate_free(struct why_aggregate *aggregate);

/* The group of a site's spans; MODEL_NONE: of spans with an unknown site. */
const struct why_group *why_aggregate_group(const struct why_aggregate *aggregate, uint32_t site);

/* The process that has three quarters of a cause's time, if the group has another one of its name.
 * NULL: there is none. */
const struct model_process *why_group_cause_process(const struct why_aggregate *aggregate,
						    const struct why_group *group,
						    const struct why_group_cause *cause);

/* How much longer the cause takes in an average slow span than in an average median span. */
int64_t why_group_difference(const struct why_group *group, const struct why_group_cause *cause);
uint64_t why_group_mean(uint64_t sum_ns, uint64_t count);

/*
 * Writes the causes that differ most between slow and median spans, the largest difference first.
 * Returns their number, at most `max`. It is 0 if the slow spans are hardly slower, or if there are
 * too few spans.
 */
size_t why_group_different(const struct why_group *group, uint32_t *causes, size_t max);

#endif
