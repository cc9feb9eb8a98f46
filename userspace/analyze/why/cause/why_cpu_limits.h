/* SPDX-License-Identifier: Apache-2.0 */
/* What keeps threads that wait for a CPU from it. */
#ifndef WAFFLE_ANALYZE_WHY_CAUSE_WHY_CPU_LIMITS_H
#define WAFFLE_ANALYZE_WHY_CAUSE_WHY_CPU_LIMITS_H

#include "analyze/why/why_walk_types.h"

/* why_instance.cpus, by the sums of the instance. */
uint32_t why_cpu_limits(struct why_walk *walk, const struct why_instance *instance);

#endif
