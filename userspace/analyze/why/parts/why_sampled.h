/* SPDX-License-Identifier: Apache-2.0 */
/* The samples of the running time that a part sums up. */
#ifndef WAFFLE_ANALYZE_WHY_PARTS_WHY_SAMPLED_H
#define WAFFLE_ANALYZE_WHY_PARTS_WHY_SAMPLED_H

#include "analyze/why/why_verdict.h"
#include "analyze/why/why_walk_types.h"

/* Adds the samples of the path's last step to a sum, if a thread's code ran in that step. */
void why_sampled_add(struct why_walk *walk, struct why_sum *sum, const struct why_verdict *verdict);
/* Appends the samples of `from` to those of `to`. */
void why_sampled_join(struct why_walk *walk, struct why_sum *to, const struct why_sum *from);
/* Sums up the samples of a sum by place. Writes them to why.places, and the range to `part`. */
void why_sampled_take(struct why_walk *walk, const struct why_sum *sum, struct why_part *part);

#endif
