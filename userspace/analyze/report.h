/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the time of a capture's spans went, by span name.
 *
 * The values count, total, percentiles and max cover whole spans, which begin and end in the
 * capture. Other spans are counted apart, because their duration is unknown. They can still be
 * among the slowest, with the duration that was seen. Percentiles are exact, by nearest rank: the
 * smallest duration that at least p % of the spans do not exceed.
 *
 * The values running, runnable and blocked are sums over whole spans with completely known thread
 * states. sched_ns is the sum of the durations of these spans, so it is the sum of the three.
 *
 * The causes explain all whole spans, and what slow spans have more of than median ones.
 */
#ifndef WAFFLE_ANALYZE_REPORT_H
#define WAFFLE_ANALYZE_REPORT_H

#include "analyze/stragglers.h"
#include "analyze/why/why_aggregate.h"
#include "analyze/why/hang/why_hang.h"
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

/* "total", "count", …; NULL if there is no such sort. */
const char *report_sort_name(unsigned sort);

#define REPORT_SLOWEST_PER_NAME 3

/* Spans of one name and category. The strings belong to the model or its reader. */
struct report_span {
	const char *name, *category;
	uint64_t count, total_ns, p50_ns, p99_ns, max_ns;
	uint64_t unfinished, begun_before; /* a span that is both counts in both */
	uint64_t left;                     /* calls that did not return */
	uint64_t with_loss;                /* of all spans: open while records were dropped */
	uint64_t sched_count, sched_ns;    /* whole spans with known thread states; their time */
	uint64_t running_ns, runnable_ns, blocked_ns;
	uint32_t slowest[REPORT_SLOWEST_PER_NAME]; /* span indexes, then MODEL_NONE */
	uint32_t site;                             /* one of its sites, or MODEL_NONE */
};

/* Events and log messages of one name. */
struct report_event {
	const char *name, *category;
	uint64_t count;
	uint16_t kind; /* enum waffle_site_kind */
};

/* Values of a counter. Values that are not finite numbers count only in `ignored`. */
struct report_counter {
	const char *name, *category;
	uint64_t count, ignored;
	double min, max, last, mean;
};

/* A slow span, and the longest wait of its thread in it. */
struct report_slow {
	uint32_t span;
	uint64_t wait_ns; /* 0: not blocked, or unknown */
	uint64_t wait_from_ts;
	uint16_t task_state;
	int16_t syscall; /* -1: none */
	uint32_t args;   /* index in model.syscall_args */
	uint32_t waker;  /* thread, or MODEL_NONE */
	bool interrupt;  /* an interrupt woke it, not a thread */
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
	VEC(uint32_t) threads;           /* traced threads, the busiest first */
	struct why_aggregate *causes;    /* NULL: the scheduler was not recorded */
	/* If there are no spans: what the busiest thread did in its time, and the thread that
	 * waited longest. NULL: there are spans, or there is no such thread, or the scheduler was
	 * not recorded. */
	struct why *busiest, *waiting;
	struct why_hangs hangs;        /* waits that go on at the end, and deadlocks */
	struct stack_names *names;     /* those of the options */
	struct gpu_timeline *timeline; /* for what is asked of `why`; NULL: none is needed */
	struct stragglers *stragglers; /* how ranks waited for each other */
	struct report_source_loss losses[WAFFLE_SOURCE_COUNT];
	uint64_t bytes_cut; /* of a file that was cut off */
	bool truncated;
	uint64_t bookkeeping; /* calls that `spans` leaves out: see site_is_bookkeeping() */
	uint64_t skipped;     /* see store_reader_skipped() */
};

struct report_options {
	enum report_sort sort;
	uint32_t slowest; /* number of slow spans and collectives to examine */
	/* Symbolizer for causes and stacks, which stays open as long as the report; NULL: none. */
	struct stack_names *names;
};
#define REPORT_OPTIONS_DEFAULT ((struct report_options){REPORT_SORT_TOTAL, 10, NULL})

/* The caller frees the report with report_free(); the model must outlive it. Returns 0 or a
 * negative errno with a message. */
int report_new(struct report **report, const struct model *model,
	       const struct report_options *options, struct error *err);
void report_free(struct report *report);

/* The causes of a row's spans; NULL: unknown, or the row has no whole span. */
const struct why_group *report_causes(const struct report *report, const struct report_span *row);

#endif
