// SPDX-License-Identifier: Apache-2.0
#include "analyze/gpu/replay_graph.h"

#include <stdlib.h>
#include <string.h>

#include "util/memory.h"

static uint32_t edge_end(const struct replay_edge *edge, bool to)
{
	return to ? edge->to : edge->from;
}

static inline __attribute__((always_inline)) struct replay_index
index_make(const struct replay_graph *graph, bool to)
{
	size_t nodes = graph->nodes.len, edges = graph->edges.len;
	struct replay_index index = {
		.first = memory_zeroed(nodes + 2, sizeof(*index.first)),
		.edges = memory_get(edges * sizeof(*index.edges)),
	};

	memory_require(edges < UINT32_MAX); /* which its numbers can count */
	/* first[n + 2] counts, then first[n + 1] is where the next edge of n goes, and in the end
	 * where those of n + 1 begin. */
	for (size_t i = 0; i < edges; i++)
		index.first[edge_end(&graph->edges.data[i], to) + 2]++;
	for (size_t i = 2; i < nodes + 2; i++)
		index.first[i] += index.first[i - 1];
	for (size_t i = 0; i < edges; i++)
		index.edges[index.first[edge_end(&graph->edges.data[i], to) + 1]++] = (uint32_t)i;
	return index;
}

struct replay_index replay_index_from(const struct replay_graph *graph)
{
	return index_make(graph, false);
}

struct replay_index replay_index_to(const struct replay_graph *graph)
{
	return index_make(graph, true);
}

void replay_index_free(struct replay_index *index)
{
	free(index->first);
	free(index->edges);
	*index = (struct replay_index){0};
}

uint32_t *replay_numbers_none(size_t count)
{
	uint32_t *numbers = memory_get(count * sizeof(*numbers));

	memset(numbers, 0xff, count * sizeof(*numbers));
	return numbers;
}

void replay_graph_free(struct replay_graph *graph)
{
	vec_free(&graph->nodes);
	vec_free(&graph->edges);
	free(graph->release_ts);
	graph->release_ts = NULL;
}

void replay_result_free(struct replay_result *result)
{
	free(result->start_ts);
	*result = (struct replay_result){0};
}
