/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a signal ended a wait. */
#ifndef WAFFLE_ANALYZE_WHY_LOOKUP_WHY_SIGNALS_H
#define WAFFLE_ANALYZE_WHY_LOOKUP_WHY_SIGNALS_H

#include "analyze/why/why_walk_types.h"

/* Whether a signal that the thread did not wait for ended a wait at ts. */
bool why_ended_by_signal(const struct why_walk *walk, uint32_t thread, uint64_t ts,
			 const struct why_waker *waker, enum wait_kind kind);
/* Whether the waker sent the thread a signal that a program may wait for. */
bool why_is_signalled(const struct why_walk *walk, uint32_t thread, uint64_t ts,
		      const struct why_waker *waker);

#endif
