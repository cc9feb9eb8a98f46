/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools of threads that always have a job, so that further jobs wait in a queue. The queue itself
 * is memory of the program, of which nothing is recorded.
 */
#ifndef WAFFLE_ANALYZE_WHY_LOOKUP_WHY_FULL_POOL_H
#define WAFFLE_ANALYZE_WHY_LOOKUP_WHY_FULL_POOL_H

#include "analyze/why/why_walk_types.h"

/* The pool of a thread, as a text in why.texts: "all 4 threads of libuv's pool, such as …". 0: its
 * threads have been without a job at times, or it is of no pool that is known. */
uint32_t why_full_pool_text(struct why_walk *walk, uint32_t thread);
void why_full_pool_free(struct why_walk *walk);

#endif
