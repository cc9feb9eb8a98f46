/* SPDX-License-Identifier: Apache-2.0 */
/* What is known about a wait before its series is. */
#ifndef WAFFLE_ANALYZE_WHY_SERIES_WHY_WAITING_H
#define WAFFLE_ANALYZE_WHY_SERIES_WHY_WAITING_H

#include "analyze/why/lookup/why_wait.h"

/* Describes the wait whose series is wanted. */
struct why_waiting {
	enum wait_kind kind;
	bool uninterruptible;
	bool ends;                  /* any wake-up ends it: a barrier, a join */
	bool writes;                /* it waits for room, and any room will do */
	bool lists;                 /* the awaited descriptors are in a list, as of poll(2) */
	bool any;                   /* any wake-up ends it, as for idle threads of Go's runtime */
	bool outside;               /* it is in no span, so nothing shows what it waits for */
	bool idle;                  /* outside, for whatever comes: any event ends it */
	uint64_t from_ts, until_ts; /* waits outside this time do not matter */
};

#endif
