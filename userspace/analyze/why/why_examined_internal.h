/* SPDX-License-Identifier: Apache-2.0 */
/* Explains some threads for all of the capture, to see which of them wait, and for what. */
#ifndef WAFFLE_ANALYZE_WHY_WHY_EXAMINED_INTERNAL_H
#define WAFFLE_ANALYZE_WHY_WHY_EXAMINED_INTERNAL_H

#include "analyze/why/why.h"

/* The largest number of threads to examine. */
#define WHY_EXAMINED_MAX 16

typedef bool (*why_examined_fn)(const struct model *model, uint32_t thread, const void *arg);

/* Chooses among the threads that `wanted` accepts. Their windows are that of the query, and
 * `windows` has room for WHY_EXAMINED_MAX. Returns their number. */
size_t why_examined_choose(struct why_window *windows, const struct model *model,
			   const struct why_query *query, why_examined_fn wanted, const void *arg);

/* The order in which they are chosen: first the threads that processes began with, then those that
 * do most: threads that only wait for work, as a garbage collector's, are the last. */
int why_examined_compare(const struct model *model, uint32_t left, uint32_t right);

/* Whether the thread of an instance waits for whoever has work for it, though it may be the thread
 * `tid` that comes next. So does a worker that waits for the thread of its process that waits for
 * clients. A main thread may do so, too. The query had `through_tid`. */
bool why_waits_for_work(const struct why *why, const struct why_part *part, uint32_t tid);

#endif
