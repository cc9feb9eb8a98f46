// SPDX-License-Identifier: Apache-2.0
#include "usdt/gpu/graphs.h"

#include <errno.h>

#include "usdt/gpu/operations.h"

static const uint32_t watched[] = {CUPTI_GRAPHNODE_CREATED, CUPTI_GRAPHNODE_CLONED,
				   CUPTI_GRAPHEXEC_CREATED};

void graphs_watch(const struct cupti *cupti, void *subscriber, bool on)
{
	if (!cupti->call.GetGraphId || !cupti->call.GetGraphNodeId)
		return;
	for (unsigned i = 0; i < sizeof(watched) / sizeof(watched[0]); i++)
		cupti->call.EnableCallback(on, subscriber, CUPTI_RESOURCE, watched[i]);
}

/* 0: it has none. */
static uint64_t graph_id(const struct cupti *cupti, void *graph)
{
	uint32_t id;

	return graph && cupti->call.GetGraphId(graph, &id) == CUPTI_OK ? id : 0;
}

static uint64_t node_id(const struct cupti *cupti, void *node)
{
	uint64_t id;

	return node && cupti->call.GetGraphNodeId(node, &id) == CUPTI_OK ? id : 0;
}

void graphs_changed(const struct cupti *cupti, waffle_name_t *name, uint32_t cbid,
		    const struct cupti_resource *resource)
{
	const struct cupti_graph *graph = resource ? resource->descriptor : NULL;
	uint64_t node = 0, from = 0, id;
	int code = errno;
	uint32_t exec;

	if (!graph || !waffle_name_armed(name))
		return;
	id = graph_id(cupti, graph->graph);
	if (cbid == CUPTI_GRAPHEXEC_CREATED) {
		from = id;
		if (!cupti->call.GetGraphExecId ||
		    cupti->call.GetGraphExecId(graph->exec, &exec) != CUPTI_OK)
			return;
		id = exec;
	} else {
		node = node_id(cupti, graph->node);
		if (cbid == CUPTI_GRAPHNODE_CLONED)
			from = node_id(cupti, graph->original_node);
	}
	waffle_event_named(name, WAFFLE_VALUES(waffle_u64(id), waffle_u64(node), waffle_u64(from),
					       OPERATIONS_SIMULATED));
	errno = code;
}
