/* SPDX-License-Identifier: Apache-2.0 */
/* Limits and neighbours that made the memory slow. */
#ifndef WAFFLE_ANALYZE_WHY_CAUSE_WHY_PRESSURE_H
#define WAFFLE_ANALYZE_WHY_CAUSE_WHY_PRESSURE_H

#include "analyze/why/why_walk_types.h"

/* why_instance.memory, by the sums of the instance. */
uint32_t why_pressure_memory(struct why_walk *walk, const struct why_instance *instance);

#endif
