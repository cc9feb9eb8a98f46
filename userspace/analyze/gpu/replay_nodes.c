// SPDX-License-Identifier: Apache-2.0
/* The nodes of a replay, and the queues of the host's threads. */
#include <stdlib.h>
#include <string.h>

#include "analyze/gpu/replay_build_internal.h"
#include "util/memory.h"

/* A node that is not yet in the graph, and not yet in order. */
struct draft {
	uint64_t begin_ts; /* a call that waits: when it began to */
	uint64_t start_ts; /* a call that waits: when all it waits for was done */
	uint64_t end_ts;
	uint32_t index;  /* of its origin */
	uint32_t thread; /* MODEL_NONE: an operation */
	uint8_t kind;    /* enum replay_origin_kind */
};
typedef VEC(struct draft) drafts;

static uint64_t max(uint64_t left, uint64_t right)
{
	return left > right ? left : right;
}

static uint64_t min(uint64_t left, uint64_t right)
{
	return left < right ? left : right;
}

static struct draft draft_launch(const struct gpu_timeline *timeline, uint32_t index)
{
	const struct gpu_timeline_launch *launch = &timeline->launches.data[index];
	struct draft draft = {launch->ts, launch->ts,     launch->ts,
			      index,      launch->thread, REPLAY_ORIGIN_LAUNCH};

	if (launch->host != MODEL_NONE && launch->host_kind == MODEL_NODE_SPAN)
		draft.end_ts = max(launch->ts, timeline->model->spans.data[launch->host].end_ts);
	return draft;
}

static struct draft draft_sync(const struct gpu_timeline *timeline, uint32_t index)
{
	const struct gpu_timeline_sync *sync = &timeline->syncs.data[index];
	struct draft draft = {sync->start_ts, sync->start_ts, sync->end_ts,
			      index,          sync->thread,   REPLAY_ORIGIN_SYNC};

	for (uint32_t i = 0; i < sync->op_count; i++) {
		uint32_t op = timeline->awaited.data[sync->op + i];

		draft.start_ts = max(draft.start_ts, timeline->ops.data[op].end_ts);
	}
	draft.start_ts = min(draft.start_ts, draft.end_ts);
	return draft;
}

/* When a kernel of a collective began to transfer. */
static uint64_t transfer_ts(const struct replay_build *build, uint32_t index)
{
	const struct gpu_timeline_op *op = &build->timeline->ops.data[index];

	return min(max(op->start_ts, build->meet_ts[index]), op->end_ts);
}

/* At one instant: launches, then in a collective arrivals and their meeting, the operations, and
 * what waits for them. */
static int draft_compare(const void *left, const void *right)
{
	static const uint8_t rank[] = {[REPLAY_ORIGIN_LAUNCH] = 0,
				       [REPLAY_ORIGIN_ARRIVAL] = 1,
				       [REPLAY_ORIGIN_MEETING] = 2,
				       [REPLAY_ORIGIN_OP] = 3,
				       [REPLAY_ORIGIN_SYNC] = 4};
	const struct draft *a = left, *b = right;

	if (a->start_ts != b->start_ts)
		return a->start_ts < b->start_ts ? -1 : 1;
	if (a->kind != b->kind)
		return rank[a->kind] < rank[b->kind] ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

static void drafts_make(const struct replay_build *build, drafts *all)
{
	const struct gpu_timeline *timeline = build->timeline;

	vec_need(all, timeline->ops.len + timeline->launches.len + timeline->syncs.len);
	for (uint32_t i = 0; i < timeline->ops.len; i++) {
		const struct gpu_timeline_op *op = &timeline->ops.data[i];

		if (!replay_op_counts(op))
			continue;
		if (build->meet_ts[i])
			vec_add(all, (struct draft){op->start_ts, op->start_ts, op->start_ts, i,
						    MODEL_NONE, REPLAY_ORIGIN_ARRIVAL});
		vec_add(all, (struct draft){op->start_ts, transfer_ts(build, i), op->end_ts, i,
					    MODEL_NONE, REPLAY_ORIGIN_OP});
	}
	for (uint32_t i = 0; i < build->meetings.len; i++) {
		uint64_t ts = build->meetings.data[i].ts;

		vec_add(all, (struct draft){ts, ts, ts, i, MODEL_NONE, REPLAY_ORIGIN_MEETING});
	}
	for (uint32_t i = 0; i < timeline->launches.len; i++)
		vec_add(all, draft_launch(timeline, i));
	for (uint32_t i = 0; i < timeline->syncs.len; i++)
		vec_add(all, draft_sync(timeline, i));
	if (all->len)
		qsort(all->data, all->len, sizeof(*all->data), draft_compare);
	memory_require(all->len < REPLAY_NONE);
}

/* The number of a thread's queue. */
static uint32_t queue_of(struct replay_build *build, struct map *queues, uint32_t thread)
{
	uint32_t queue = map_get(queues, thread);

	if (queue == MAP_NONE) {
		queue = build->graph.queue_count++;
		map_put(queues, thread, queue);
	}
	return queue;
}

/* A call follows another one of its thread. Calls of a thread do not overlap: a launch within a
 * call that waits, as in a synchronous copy, is over when the waiting begins. */
static void gap_set(struct replay_node *previous, uint64_t begin_ts)
{
	begin_ts = max(begin_ts, previous->start_ts);
	previous->dur_ns = min(previous->dur_ns, begin_ts - previous->start_ts);
	previous->gap_ns = begin_ts - previous->start_ts - previous->dur_ns;
}

static void node_add(struct replay_build *build, const struct draft *draft, uint32_t queue)
{
	struct replay_node node = {
		.start_ts = draft->start_ts,
		.dur_ns = draft->end_ts - draft->start_ts,
		.queue = queue,
		.engine = REPLAY_NONE,
		.operation = draft->kind == REPLAY_ORIGIN_OP ? draft->index : REPLAY_NONE,
	};

	vec_add(&build->graph.nodes, node);
	vec_add(&build->origins, (struct replay_origin){draft->index, draft->kind});
}

void replay_nodes_add(struct replay_build *build, const struct replay_node_numbers *numbers)
{
	uint32_t *const nodes_of[] = {[REPLAY_ORIGIN_OP] = build->op_node,
				      [REPLAY_ORIGIN_LAUNCH] = numbers->launch,
				      [REPLAY_ORIGIN_SYNC] = numbers->sync,
				      [REPLAY_ORIGIN_ARRIVAL] = numbers->arrival,
				      [REPLAY_ORIGIN_MEETING] = numbers->meeting};
	struct map queues = {0};
	VEC(uint32_t) last = {0}; /* by queue */
	drafts all = {0};

	drafts_make(build, &all);
	vec_need(&build->graph.nodes, all.len);
	vec_need(&build->origins, all.len);
	for (uint32_t i = 0; i < all.len; i++) {
		const struct draft *draft = &all.data[i];
		uint32_t queue = REPLAY_NONE;
		bool first = false;

		if (draft->thread != MODEL_NONE) {
			queue = queue_of(build, &queues, draft->thread);
			if (queue == last.len)
				vec_add(&last, REPLAY_NONE);
			first = last.data[queue] == REPLAY_NONE;
			if (!first)
				gap_set(&build->graph.nodes.data[last.data[queue]],
					draft->begin_ts);
			last.data[queue] = i;
		}
		nodes_of[draft->kind][draft->index] = i;
		node_add(build, draft, queue);
		/* Nothing else says when a thread begins. */
		if (first)
			build->graph.nodes.data[i].release_ts = draft->begin_ts;
	}
	vec_free(&last);
	vec_free(&all);
	map_free(&queues);
}

/* ---- engines ---- */

struct engine {
	uint64_t end_ts; /* of the copies so far */
	bool overlap;
};

static bool engine_key(const struct replay_build *build, uint32_t node, uint64_t *key)
{
	const struct gpu_timeline_op *op;

	if (build->origins.data[node].kind != REPLAY_ORIGIN_OP)
		return false;
	op = &build->timeline->ops.data[build->origins.data[node].index];
	*key = (uint64_t)gpu_timeline_device_of(build->timeline, op) << 32 | op->copy;
	return op->kind == GPU_OP_COPY && op->copy;
}

void replay_engines_find(struct replay_build *build)
{
	struct replay_graph *graph = &build->graph;
	VEC(struct engine) engines = {0};
	struct map numbers = {0};
	uint64_t key;

	for (uint32_t i = 0; i < graph->nodes.len; i++) {
		struct replay_node *node = &graph->nodes.data[i];

		if (!engine_key(build, i, &key))
			continue;
		node->engine = map_get(&numbers, key);
		if (node->engine == MAP_NONE) {
			node->engine = (uint32_t)engines.len;
			vec_add(&engines, (struct engine){0});
			map_put(&numbers, key, node->engine);
		}
		engines.data[node->engine].overlap |=
			node->start_ts < engines.data[node->engine].end_ts;
		engines.data[node->engine].end_ts =
			max(engines.data[node->engine].end_ts, node->start_ts + node->dur_ns);
	}
	for (uint32_t i = 0; i < graph->nodes.len; i++) {
		struct replay_node *node = &graph->nodes.data[i];

		if (node->engine != REPLAY_NONE && engines.data[node->engine].overlap)
			node->engine = REPLAY_NONE;
	}
	graph->engine_count = (uint32_t)engines.len;
	vec_free(&engines);
	map_free(&numbers);
}
