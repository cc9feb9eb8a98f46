/* SPDX-License-Identifier: Apache-2.0 */
/* Wake-ups that do not end a wait: all of them count as one wait, a series. */
#ifndef WAFFLE_ANALYZE_WHY_SERIES_WHY_SERIES_H
#define WAFFLE_ANALYZE_WHY_SERIES_WHY_SERIES_H

#include "analyze/why/series/why_waiting.h"
#include "analyze/why/why_walk_types.h"

/* Whether a wake-up ends a wait although the thread then waits for the same thing again. */
enum why_end_rule {
	WHY_END_ALWAYS, /* it does */
	WHY_END_SIGNAL, /* it does unless a signal caused it */
	WHY_END_LOCK,   /* it does if a thread released the lock: another may have it since */
	WHY_END_LAST,   /* only the last one of the series does */
};
enum why_end_rule why_end_rule_of(const struct why_waiting *waiting);
/* Whether the thread can be woken by events of which it awaits only some, so that the same wait
 * follows. Locks and futexes have rules of their own. */
bool why_waits_for_any(enum wait_kind kind);
/* The series of waits that an interval belongs to; valid until the next call. */
const struct why_series *why_series_of(struct why_walk *walk, const struct why_waiting *waiting,
				       uint32_t thread, size_t index);
/* A loop asked who ends its series only after another wake-up. If the wait `index` of that series
 * ended by a timeout before, after which the loop has not asked yet, the wait goes on to that
 * wake-up. Returns whether it is so, and the series that ends there. */
bool why_series_event(const struct why_walk *walk, const struct why_waiting *waiting,
		      uint32_t thread, size_t index, const struct why_series *series,
		      struct why_series *event);
/* Fills in the fields of a step that describe its series. */
void why_series_describe(const struct why_walk *walk, struct why_step *step);

#endif
