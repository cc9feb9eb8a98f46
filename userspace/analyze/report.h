/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the time of a capture's spans went, by name.
 *
 * count, total, percentiles and max are of whole spans: those that begin and end in the capture.
 * Spans that were open at its begin or its end are counted apart and are in none of these, as their
 * lengths are not known; they can be among the slowest, with what was seen of them. Percentiles are
 * exact, by nearest rank: the smallest duration that at least p % of the spans do not exceed.
 *
 * running, runnable and blocked are sums over those whole spans whose thread states are known from
 * begin to end; sched_ns is the sum of their durations, of which the three are shares.
 *
 * The causes are those of all whole spans, and what the slow ones have more of than the median
 * ones.
 */
#ifndef WAFFLE_ANALYZE_REPORT_H
#define WAFFLE_ANALYZE_REPORT_H

#include "analyze/why_aggregate.h"
#include "model/model.h"

enum report_sort {
	REPORT_SORT_TOTAL,
	REPORT_SORT_COUNT,
	REPORT_SORT_P50,
	REPORT_SORT_P99,
	REPORT_SORT_MAX,
	REPORT_SORT_RUNNING,
	REPORT_SORT_RUNNABLE,
	REPORT_SORT_BLOCKED,
	REPORT_SORT_NAME,
	REPORT_SORT_COUNT_OF
};

/* "total", "count", …; NULL for what is no sort. */
const char *report_sort_name(unsigned sort);

#define REPORT_SLOWEST_PER_NAME 3

/* Spans of one name and category. Strings belong to the model's reader. */
struct report_span {
	const char *name, *category;
	uint64_t count, total_ns, p50_ns, p99_ns, max_ns;
	uint64_t unfinished, begun_before; /* a span can be both only if counted in both */
	uint64_t left;                     /* calls that did not return */
	uint64_t with_loss;                /* of all of them, those open while records were lost */
	uint64_t sched_count, sched_ns;    /* whole spans of known thread states, their time */
	uint64_t running_ns, runnable_ns, blocked_ns;
	uint32_t slowest[REPORT_SLOWEST_PER_NAME]; /* span indexes, MODEL_NONE behind the last */
	uint32_t site;                             /* one of its sites, or MODEL_NONE */
};

/* Events and log messages of one name. */
struct report_event {
	const char *name, *category;
	uint64_t count;
	uint16_t kind; /* enum waffle_site_kind */
};

/* Values of a counter; all were finite numbers, others are only in `ignored`. */
struct report_counter {
	const char *name, *category;
	uint64_t count, ignored;
	double min, max, last, mean;
};

/* A slow span and the longest time that its thread was blocked in it. */
struct report_slow {
	uint32_t span;
	uint64_t wait_ns; /* 0: it was not blocked, or that is not known */
	uint64_t wait_from_ts;
	uint16_t task_state;
	int16_t syscall; /* -1: none */
	uint32_t args;   /* into model.syscall_args */
	uint32_t waker;  /* thread, or MODEL_NONE */
	bool interrupt;  /* woken by an interrupt, not by a thread */
};

struct report_source_loss {
	uint64_t count, intervals;
};

struct report {
	const struct model *model;
	VEC(struct report_span) spans;
	VEC(struct report_event) events;
	VEC(struct report_counter) counters;
	VEC(struct report_slow) slowest; /* slowest first */
	VEC(uint32_t) threads;           /* traced ones, the busiest first */
	struct why_aggregate *causes;    /* NULL: the scheduler was not recorded */
	struct report_source_loss losses[WAFFLE_SOURCE_COUNT];
	uint64_t bytes_cut; /* of a file that was cut off */
	bool truncated;
	uint64_t skipped; /* store_reader_skipped() */
};

struct report_options {
	enum report_sort sort;
	uint32_t slowest;              /* how many slow spans to look at */
	const struct why_names *names; /* of what causes are at; NULL: not at hand */
};
#define REPORT_OPTIONS_DEFAULT ((struct report_options){REPORT_SORT_TOTAL, 10, NULL})

/* The model must outlive the report. */
int report_new(struct report **report, const struct model *model,
	       const struct report_options *options, struct error *err);
void report_free(struct report *report);

/* The causes of a row's spans; NULL: not known, or none of them is whole. */
const struct why_group *report_causes(const struct report *report, const struct report_span *row);

#endif
