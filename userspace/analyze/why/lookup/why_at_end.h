/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack of a wait in Java ends at the innermost method, since code of the JVM keeps no frame
 * pointers: it is LockSupport.park() for a pool of connections, a queue and a lock. Only a wait
 * that goes on when the capture ends has the methods around that one. If it is like an earlier one
 * of its thread, they suggest where that was.
 */
#ifndef WAFFLE_ANALYZE_WHY_LOOKUP_WHY_AT_END_H
#define WAFFLE_ANALYZE_WHY_LOOKUP_WHY_AT_END_H

#include "analyze/why/why_walk_types.h"

/* The wait in which the thread of `wait` (an index in model.waits) is when the capture ends, as an
 * index in model.open_waits, if both are in the same system call and have the same frames up to the
 * innermost method of Java. `timed`: a timeout ended `wait`, so the other one needs one, too.
 * MODEL_NONE: it is in none, or in another one, or not in Java. */
uint32_t why_wait_at_end(const struct why_walk *walk, uint32_t wait, bool timed);

#endif
