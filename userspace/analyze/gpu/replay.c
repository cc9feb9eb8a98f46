// SPDX-License-Identifier: Apache-2.0
#include "analyze/gpu/replay.h"

#include "analyze/gpu/replay_run_internal.h"
#include "util/memory.h"

/* A range of time that grows. */
struct extent {
	uint64_t from_ts, to_ts;
};

static void extent_add(struct extent *extent, uint64_t start_ts, uint64_t dur_ns)
{
	if (start_ts < extent->from_ts)
		extent->from_ts = start_ts;
	replay_later(&extent->to_ts, clock_after(start_ts, dur_ns));
}

static uint64_t extent_ns(const struct extent *extent)
{
	return extent->from_ts <= extent->to_ts ? extent->to_ts - extent->from_ts : 0;
}

static void makespans_measure(const struct replay_graph *graph, const struct replay_change *change,
			      struct replay_result *result)
{
	struct extent measured = {UINT64_MAX, 0}, replayed = {UINT64_MAX, 0};

	for (uint32_t i = 0; i < graph->nodes.len; i++) {
		const struct replay_node *node = &graph->nodes.data[i];

		if (!replay_is_selected(change, i))
			continue;
		result->nodes_total++;
		result->operations_total += node->is_operation;
		if (change->ignored && change->ignored[i])
			continue;
		extent_add(&measured, node->start_ts, node->dur_ns);
		if (result->start_ts[i] != UINT64_MAX)
			extent_add(&replayed, result->start_ts[i],
				   replay_duration(graph, change, i));
	}
	result->measured_ns = extent_ns(&measured);
	result->replayed_ns = extent_ns(&replayed);
}

void replay_run(const struct replay_graph *graph, const struct replay_change *change,
		struct replay_result *result)
{
	static const struct replay_change unchanged;
	size_t nodes = graph->nodes.len;
	uint64_t *start_ts = memory_get(nodes * sizeof(*start_ts));

	change = change ?: &unchanged;
	*result = (struct replay_result){.start_ts = start_ts};
	if (!replay_run_pass(graph, change, result)) {
		*result = (struct replay_result){.start_ts = start_ts};
		replay_run_heap(graph, change, result);
	}
	makespans_measure(graph, change, result);
}

double replay_error(const struct replay_result *result)
{
	return result->measured_ns ? (double)result->replayed_ns / (double)result->measured_ns - 1
				   : 0;
}
