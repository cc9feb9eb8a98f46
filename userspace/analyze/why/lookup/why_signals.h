/* SPDX-License-Identifier: Apache-2.0 */
/* Signals that ended a wait, or took the time of a thread. */
#ifndef WAFFLE_ANALYZE_WHY_LOOKUP_WHY_SIGNALS_H
#define WAFFLE_ANALYZE_WHY_LOOKUP_WHY_SIGNALS_H

#include "analyze/why/why_walk_types.h"

/* Whether a signal that the thread did not wait for ended a wait at ts. */
bool why_ended_by_signal(const struct why_walk *walk, uint32_t thread, uint64_t ts,
			 const struct why_waker *waker, enum wait_kind kind);
/* Whether the waker sent the thread a signal that a program may wait for. */
bool why_is_signalled(const struct why_walk *walk, uint32_t thread, uint64_t ts,
		      const struct why_waker *waker);
void why_signals_init(struct why_walk *walk);
/* The signals that were sent to a thread in a time, of which it ran for `ran_ns`. */
struct why_signals why_signals_of(const struct why_walk *walk, uint32_t thread, uint64_t from,
				  uint64_t to, uint64_t ran_ns);

#endif
