/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up switches by time. */
#ifndef WAFFLE_ANALYZE_WHY_LOOKUP_WHY_SWITCHES_H
#define WAFFLE_ANALYZE_WHY_LOOKUP_WHY_SWITCHES_H

#include "analyze/why/why_types.h"

/* Index of the first switch at or after ts. */
size_t why_switch_after(const struct model *model, uint64_t ts);
/* The switch at ts that brought the thread in, or NULL. `first` is why_switch_after() of ts. */
const struct model_switch *why_switch_in(const struct model *model, size_t first, uint32_t thread,
					 uint64_t ts);

#endif
