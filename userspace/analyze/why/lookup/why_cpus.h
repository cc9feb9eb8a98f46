/* SPDX-License-Identifier: Apache-2.0 */
/* An index of the switches of each CPU. */
#ifndef WAFFLE_ANALYZE_WHY_LOOKUP_WHY_CPUS_H
#define WAFFLE_ANALYZE_WHY_LOOKUP_WHY_CPUS_H

#include "analyze/why/why_walk_types.h"

/* `like` is that of why_evidence_init(). */
void why_cpus_init(struct why_walk *walk, const struct why_walk *like);
void why_cpus_free(struct why_walk *walk);
/* Index in walk->cpu_switches of a CPU's first switch at or after ts. */
size_t why_cpu_after(struct why_walk *walk, uint16_t cpu, uint64_t ts);
/* The switch at an index of walk->cpu_switches; NULL: it is not one of that CPU. */
const struct model_switch *why_cpu_switch(const struct why_walk *walk, uint16_t cpu, size_t at);

#endif
