/* SPDX-License-Identifier: Apache-2.0 */
/* When any thread of a Go program runs, or waits for a CPU. */
#ifndef WAFFLE_ANALYZE_WHY_LOOKUP_WHY_GO_BUSY_H
#define WAFFLE_ANALYZE_WHY_LOOKUP_WHY_GO_BUSY_H

#include "analyze/why/why_walk_types.h"

/* How long all threads of a Go program were blocked from `from` to `to`, as far as intervals are
 * loaded. */
uint64_t why_go_idle_ns(struct why_walk *walk, uint32_t pid, uint64_t from, uint64_t to);
void why_go_busy_free(struct why_walk *walk);

#endif
