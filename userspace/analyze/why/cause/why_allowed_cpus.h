/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that wait for a CPU and may not run on all. */
#ifndef WAFFLE_ANALYZE_WHY_CAUSE_WHY_ALLOWED_CPUS_H
#define WAFFLE_ANALYZE_WHY_CAUSE_WHY_ALLOWED_CPUS_H

#include "analyze/why/why_walk_types.h"

/* why_instance.cpus, by the sums of the instance. */
uint32_t why_allowed_cpus(struct why_walk *walk, const struct why_instance *instance);

#endif
