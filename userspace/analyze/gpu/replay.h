/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schedules recorded work again by its dependencies: the algorithm of Daydream (Zhu et al., USENIX
 * ATC 2020, algorithm 1) with dependencies between streams. This file knows neither captures nor
 * CUDA; replay_build.h makes a graph of a capture.
 *
 * A node occupies its queue (a host thread or a stream) from its start until `gap_ns` after its
 * end. A node starts when all these are true:
 *
 *	- the nodes before it in its queue have left the queue,
 *	- each of its edges allows it,
 *	- its engine, if it has one, is free. Of the nodes that want an engine, the one goes first
 *	  that was ready first.
 *
 * Times are nanoseconds. All functions end the process when memory runs out (util/memory.h).
 */
#ifndef WAFFLE_ANALYZE_GPU_REPLAY_H
#define WAFFLE_ANALYZE_GPU_REPLAY_H

#include "analyze/gpu/replay_graph.h"

/* Nodes that wait for each other in a cycle are not executed. */
void replay_run(const struct replay_graph *graph, const struct replay_change *change,
		struct replay_result *result);
/* The replayed time as a part of the measured one, minus 1: 0 is exact. */
double replay_error(const struct replay_result *result);

/* A dependency that the recorded times contradict: `to` started early_ns too early. */
struct replay_violation {
	uint32_t from, to;
	uint64_t early_ns;
	bool in_queue; /* `from` stands directly before `to` in its queue */
};
typedef VEC(struct replay_violation) replay_violations;

/* Checks the order of the queues and then the edges against the recorded times, without lags and
 * gaps. `selected` NULL: of all nodes. Returns the number of dependencies that it checked. */
uint64_t replay_check(const struct replay_graph *graph, const bool *selected,
		      replay_violations *violations);

#endif
