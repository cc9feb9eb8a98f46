/* SPDX-License-Identifier: Apache-2.0 */
/* Explains the longest spans and waits of a capture. The work is bounded by the number of switches,
 * so it can be part of every export. */
#ifndef WAFFLE_ANALYZE_WHY_WHY_LONGEST_H
#define WAFFLE_ANALYZE_WHY_WHY_LONGEST_H

#include "analyze/why/why.h"

/* Shorter spans and waits are left out. */
#define WHY_LONG_NS 1000000ull

/* A span that is whole and selected, or a wait: a time in which a traced thread was blocked. */
struct why_long {
	uint64_t from_ts, to_ts;
	uint32_t span; /* MODEL_NONE: a wait */
	uint32_t thread;
	/* The members below are those of a wait. */
	uint32_t by;     /* the thread that ended it; MODEL_NONE: unknown */
	int16_t syscall; /* -1: none */
	bool interrupt;  /* an interrupt ended it, and `by` is only what it interrupted */
};

/* As why_each_fn. */
typedef void (*why_longest_fn)(const struct why *why, const struct why_instance *instance,
			       const struct why_long *of, void *arg);

/*
 * Calls `each` for spans and waits of at least WHY_LONG_NS, in order of from_ts. If explaining all
 * is too much work, it takes the longest spans and the cheapest waits, and adds the number of waits
 * that are left out to *left_out. Of the query, only the symbolizer and the timeline count.
 * Afterwards *why holds only texts.
 */
int why_longest(struct why **why, const struct model *model, const struct why_query *query,
		why_longest_fn each, void *arg, uint64_t *left_out, struct error *err);

#endif
