/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first process that the user named is the one in question. If it has no requests, but others
 * have, or if only threads of others are left that are idle, or that it does not wait for, one of
 * its own threads is explained, provided that this one works or is held up.
 */
#ifndef WAFFLE_ANALYZE_WHY_WHY_FIRST_INTERNAL_H
#define WAFFLE_ANALYZE_WHY_WHY_FIRST_INTERNAL_H

#include "analyze/why/hang/why_hang.h"
#include "analyze/why/why.h"

/* If all spans are requests, and none of them is the first process's, makes the query, whose names
 * the caller has set, one for a thread of that process, or for the Go program that it is, and for
 * the whole capture. If descendants of the process have requests, its waits for them do not
 * count, except for their locks. False: that changes nothing, since no thread works, or is held up,
 * for half of the time.
 */
bool why_first_before_requests(struct why_query *query, const struct model *model);

/* The same for a thread of the process or of its descendants, whatever spans there are. If there is
 * none, it is one that hangs: it still waits when the capture ends, for something else than work,
 * and has done so all the time. `all`: the waits that go on then. */
bool why_first_before_idle(struct why_query *query, const struct model *model,
			   const struct why_hangs *all);

/* The same without one that hangs, if thread `idle_tid` of the process or its descendants, which
 * runs most but next to never, is not held up, or for less than three quarters of the time and less
 * than the other: it only lets time pass. None of these threads may wait for it. Then query->held
 * is set instead of query->first. If no process is the first, as with
 * --comm, all that are recorded count. */
bool why_first_before_pause(struct why_query *query, const struct model *model, uint32_t idle_tid);

/* The same, without one that hangs, if none of these threads waits for a busy one of another
 * process. A thread may then also sleep for half of the time, unless it polls. */
bool why_first_before_busy(struct why_query *query, const struct model *model, uint32_t busy_tid);

#endif
