/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a thread may have waited for something else than what ended its wait. */
#ifndef WAFFLE_ANALYZE_WHY_SERIES_WHY_DOUBT_H
#define WAFFLE_ANALYZE_WHY_SERIES_WHY_DOUBT_H

#include "analyze/why/series/why_waiting.h"
#include "analyze/why/why_walk_types.h"

/* Whether the thread may have waited for something else than what ended this wait or its series:
 * the records do not exclude it. */
bool why_is_doubtful(struct why_walk *walk, const struct why_waiting *waiting, uint32_t thread,
		     size_t index);

#endif
