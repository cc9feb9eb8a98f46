/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads that wait for the explained one. Without spans, the busiest thread is explained. If
 * that is the one that holds up the others, its own time does not show whom it holds up.
 */
#ifndef WAFFLE_ANALYZE_WHY_WHY_WAITERS_H
#define WAFFLE_ANALYZE_WHY_WHY_WAITERS_H

#include "analyze/why/why.h"

/* A thread, and the part of its time that it waits for the explained thread. */
struct why_waiter {
	uint32_t instance; /* in why.instances: the thread in the window of the query */
	uint64_t ns;       /* whose chains lead to the explained thread, or on from it */
	uint32_t part;     /* the number of the part with the most of it */
	uint32_t more;     /* others of its name that wait as well, in the same system call */
};

struct why_waiters {
	struct why *why;    /* NULL: no thread was examined */
	uint32_t explained; /* the thread for which they wait, in model.threads */
	VEC(struct why_waiter)
	list;     /* main threads first, then by how much they ran */
	bool cut; /* there may be more that were not examined */
	/* Threads of its process whose own sleeps are at least half of their time, in the same
	 * order. `ns` and `part` are of these. */
	VEC(struct why_waiter)
	resting;
};

/* Whether the only thread that is explained sleeps for at least half of its time. Then nothing
 * shows that it, and not one of why_waiters.resting, is what makes the program slow. */
bool why_rests(const struct why *why);

/* The number of the thread that made all explained calls, if they are those of a library of GPUs;
 * 0: there are other spans, or several threads, or none. */
uint32_t why_waiters_caller(const struct why *why);
/* Examines threads for the query, which is for one thread. The caller frees the result with
 * why_waiters_free(), also after an error. */
int why_waiters_find(struct why_waiters *waiters, const struct model *model,
		     const struct why_query *query, struct error *err);
void why_waiters_free(struct why_waiters *waiters);

#endif
