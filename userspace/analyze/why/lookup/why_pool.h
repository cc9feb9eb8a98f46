/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools: threads of a process that work for the same thread of it, as those of libuv do for the
 * loop of Node.js. Whichever of them has a CPU does the work that the thread waits for.
 */
#ifndef WAFFLE_ANALYZE_WHY_LOOKUP_WHY_POOL_H
#define WAFFLE_ANALYZE_WHY_LOOKUP_WHY_POOL_H

#include "analyze/why/why_walk_types.h"

/* Whether both threads work for a third one of their process: their names differ at most in
 * numbers, and each of them has ended a wait of that one. The first thread of a process is in no
 * pool. */
bool why_pool_works_for(struct why_walk *walk, uint32_t waiter, uint32_t worker, uint32_t other);
void why_pool_free(struct why_walk *walk);

#endif
