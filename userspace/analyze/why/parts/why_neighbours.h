/* SPDX-License-Identifier: Apache-2.0 */
/* Who else used the disks of a part. */
#ifndef WAFFLE_ANALYZE_WHY_PARTS_WHY_NEIGHBOURS_H
#define WAFFLE_ANALYZE_WHY_PARTS_WHY_NEIGHBOURS_H

#include "analyze/why/why_walk_types.h"

/* Adds what the disk did in a wait to a sum. */
void why_neighbours_add(struct why_walk *walk, struct why_sum *sum, const struct why_disk_use *use);
/* Adds the neighbours of `from` to those of `to`. */
void why_neighbours_join(struct why_walk *walk, struct why_sum *to, const struct why_sum *from);
/* The neighbour that the disk was shared with in the waits of a sum; bytes 0: there is none. */
struct why_neighbour why_neighbours_most(const struct why_walk *walk, const struct why_sum *sum);

#endif
