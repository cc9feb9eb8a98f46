/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that are stopped, by a signal or a tracer, while others wait for them. */
#ifndef WAFFLE_ANALYZE_WHY_LOOKUP_WHY_HALTED_H
#define WAFFLE_ANALYZE_WHY_LOOKUP_WHY_HALTED_H

#include "analyze/why/why_walk_types.h"

/* Whether all threads of the process of `thread` are stopped from `from` to `to`. */
bool why_is_halted(struct why_walk *walk, uint32_t thread, uint64_t from, uint64_t to);

/* The main thread of the process at the other end of a connection, or of the one that serves its
 * remote address, if it is stopped from `from` to `to`. MODEL_NONE: it is not, or not known. */
uint32_t why_halted_peer(struct why_walk *walk, const struct store_object *object, uint64_t from,
			 uint64_t to);

/* The main thread of the process that traces a thread and has stopped it, in a wait that goes on
 * when the capture ends. MODEL_NONE: it is not stopped by a tracer. */
uint32_t why_tracer_of(const struct why_walk *walk, uint32_t thread);

#endif
