/* SPDX-License-Identifier: Apache-2.0 */
/* Waits in which Go's runtime has nothing to run on a thread. */
#ifndef WAFFLE_ANALYZE_WHY_LOOKUP_WHY_GO_IDLE_H
#define WAFFLE_ANALYZE_WHY_LOOKUP_WHY_GO_IDLE_H

#include "analyze/why/why_walk_types.h"

/* Learns what idle threads of Go's runtime wait for. */
void why_go_idle_init(struct why_walk *walk);

/* Whether the runtime has nothing to run on the thread in a blocked interval. */
bool why_go_is_idle(struct why_walk *walk, uint32_t thread, const struct why_interval *interval);

#endif
