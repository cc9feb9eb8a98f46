/* SPDX-License-Identifier: Apache-2.0 */
/* What a futex is used for. */
#ifndef WAFFLE_ANALYZE_WHY_LOOKUP_WHY_FUTEX_H
#define WAFFLE_ANALYZE_WHY_LOOKUP_WHY_FUTEX_H

#include "analyze/why/why_walk_types.h"

/* What the program's functions show about the futex of a wait. */
enum futex_use why_futex_use(struct why_walk *walk, uint32_t thread,
			     const struct why_interval *interval, const struct model_wait *wait);

#endif
