/* SPDX-License-Identifier: Apache-2.0 */
/* Spans that begin on one thread and end on another. */
#ifndef WAFFLE_ANALYZE_WHY_WALK_WHY_HANDOFF_INTERNAL_H
#define WAFFLE_ANALYZE_WHY_WALK_WHY_HANDOFF_INTERNAL_H

#include "analyze/why/why_walk_types.h"

/* Explains an instance whose span ended on another thread. */
void why_walk_handed_over(struct why_walk *walk, struct why_instance *instance);

#endif
