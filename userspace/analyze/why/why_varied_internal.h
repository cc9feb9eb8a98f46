/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the spans that a reader sees first. The slowest spans of a server may all be of one
 * route, and have one cause, while another route is nearly as slow for another reason.
 */
#ifndef WAFFLE_ANALYZE_WHY_WHY_VARIED_INTERNAL_H
#define WAFFLE_ANALYZE_WHY_WHY_VARIED_INTERNAL_H

#include "analyze/why/why_types.h"

/* How many of the slowest instances are explained for each that is shown. */
#define WHY_VARIED_OF 8

/* Keeps `count` instances, which are explained and sorted: the slowest one, and those at least half
 * as long of which the largest cause and its culprit's name are new. If these are too few, the
 * slowest of the others. They stay sorted. */
void why_varied_keep(struct why *why, uint32_t count);

#endif
