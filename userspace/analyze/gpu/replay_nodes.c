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
	uint32_t host = gpu_launch_host_span(launch);
	struct draft draft = {launch->ts, launch->ts,     launch->ts,
			      index,      launch->thread, REPLAY_ORIGIN_LAUNCH};

	if (host != MODEL_NONE)
		draft.end_ts = max(launch->ts, timeline->model->spans.data[host].end_ts);
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

	return min(max(op->start_ts, replay_meet_ts(build, index)), op->end_ts);
}

/* ---- the order ---- */

/*
 * Launches are in order, and so are the operations of each stream. The rest is sorted, and all of
 * them are merged. A collective's operations belong to the rest: their nodes have other times.
 *
 * At one instant: launches, then in a collective arrivals and their meeting, the operations, and
 * what waits for them.
 */
struct draft_source {
	uint64_t ts, rank; /* of its next draft */
	uint32_t next, end;
	uint8_t kind; /* enum replay_origin_kind; REPLAY_ORIGIN_SYNC stands for the rest */
};

struct draft_merge {
	const struct replay_build *build;
	drafts rest;
	VEC(struct draft_source) heap; /* the next draft of all is that of the first one */
};

static uint64_t draft_rank(unsigned kind, uint32_t index)
{
	static const uint8_t rank[] = {[REPLAY_ORIGIN_LAUNCH] = 0,
				       [REPLAY_ORIGIN_ARRIVAL] = 1,
				       [REPLAY_ORIGIN_MEETING] = 2,
				       [REPLAY_ORIGIN_OP] = 3,
				       [REPLAY_ORIGIN_SYNC] = 4};

	return (uint64_t)rank[kind] << 32 | index;
}

static int draft_compare(const void *left, const void *right)
{
	const struct draft *a = left, *b = right;
	uint64_t rank_a = draft_rank(a->kind, a->index), rank_b = draft_rank(b->kind, b->index);

	if (a->start_ts != b->start_ts)
		return a->start_ts < b->start_ts ? -1 : 1;
	return rank_a < rank_b ? -1 : rank_a > rank_b;
}

static void rest_make(struct draft_merge *merge)
{
	const struct replay_build *build = merge->build;
	const struct gpu_timeline *timeline = build->timeline;
	drafts *rest = &merge->rest;

	for (uint32_t i = 0; build->meet_ts && i < timeline->ops.len; i++) {
		const struct gpu_timeline_op *op = &timeline->ops.data[i];

		if (!replay_op_counts(op) || !build->meet_ts[i])
			continue;
		vec_add(rest, (struct draft){op->start_ts, op->start_ts, op->start_ts, i,
					     MODEL_NONE, REPLAY_ORIGIN_ARRIVAL});
		vec_add(rest, (struct draft){op->start_ts, transfer_ts(build, i), op->end_ts, i,
					     MODEL_NONE, REPLAY_ORIGIN_OP});
	}
	for (uint32_t i = 0; i < build->meetings.len; i++) {
		uint64_t ts = build->meetings.data[i].ts;

		vec_add(rest, (struct draft){ts, ts, ts, i, MODEL_NONE, REPLAY_ORIGIN_MEETING});
	}
	for (uint32_t i = 0; i < timeline->syncs.len; i++)
		vec_add(rest, draft_sync(timeline, i));
	if (rest->len)
		qsort(rest->data, rest->len, sizeof(*rest->data), draft_compare);
}

/* Sets ts and rank of the next draft. False: there is none. */
static bool source_look(const struct draft_merge *merge, struct draft_source *source)
{
	const struct gpu_timeline *timeline = merge->build->timeline;
	const struct gpu_timeline_op *ops = timeline->ops.data;
	const struct draft *rest = merge->rest.data;

	if (source->kind == REPLAY_ORIGIN_OP)
		while (source->next < source->end && (!replay_op_counts(&ops[source->next]) ||
						      replay_meet_ts(merge->build, source->next)))
			source->next++;
	if (source->next == source->end)
		return false;
	source->ts = source->kind == REPLAY_ORIGIN_OP ? ops[source->next].start_ts
		     : source->kind == REPLAY_ORIGIN_LAUNCH
			     ? timeline->launches.data[source->next].ts
			     : rest[source->next].start_ts;
	source->rank = source->kind == REPLAY_ORIGIN_SYNC
			       ? draft_rank(rest[source->next].kind, rest[source->next].index)
			       : draft_rank(source->kind, source->next);
	return true;
}

static bool source_before(const struct draft_source *a, const struct draft_source *b)
{
	return a->ts < b->ts || (a->ts == b->ts && a->rank < b->rank);
}

/* Moves the source at `at` down to its place. */
static void heap_sink(struct draft_merge *merge, size_t at)
{
	struct draft_source *heap = merge->heap.data, source = heap[at];
	size_t child;

	for (; (child = 2 * at + 1) < merge->heap.len; at = child) {
		if (child + 1 < merge->heap.len && source_before(&heap[child + 1], &heap[child]))
			child++;
		if (!source_before(&heap[child], &source))
			break;
		heap[at] = heap[child];
	}
	heap[at] = source;
}

static void source_add(struct draft_merge *merge, unsigned kind, size_t first, size_t count)
{
	struct draft_source source = {
		.next = (uint32_t)first, .end = (uint32_t)(first + count), .kind = (uint8_t)kind};

	memory_require(count <= REPLAY_ORIGIN_INDEX_MAX);
	if (source_look(merge, &source))
		vec_add(&merge->heap, source);
}

static void merge_open(struct draft_merge *merge)
{
	const struct gpu_timeline *timeline = merge->build->timeline;

	rest_make(merge);
	source_add(merge, REPLAY_ORIGIN_SYNC, 0, merge->rest.len);
	source_add(merge, REPLAY_ORIGIN_LAUNCH, 0, timeline->launches.len);
	for (size_t i = 0; i < timeline->streams.len; i++)
		source_add(merge, REPLAY_ORIGIN_OP, timeline->streams.data[i].op,
			   timeline->streams.data[i].op_count);
	for (size_t i = merge->heap.len / 2; i--;)
		heap_sink(merge, i);
}

/* Takes the next draft. False: there is none. */
static bool merge_next(struct draft_merge *merge, struct draft *draft)
{
	const struct gpu_timeline *timeline = merge->build->timeline;
	struct draft_source *source = merge->heap.data;
	const struct gpu_timeline_op *op;

	if (!merge->heap.len)
		return false;
	if (source->kind == REPLAY_ORIGIN_LAUNCH) {
		*draft = draft_launch(timeline, source->next);
	} else if (source->kind == REPLAY_ORIGIN_OP) {
		op = &timeline->ops.data[source->next];
		*draft = (struct draft){op->start_ts, op->start_ts, op->end_ts,
					source->next, MODEL_NONE,   REPLAY_ORIGIN_OP};
	} else {
		*draft = merge->rest.data[source->next];
	}
	source->next++;
	if (!source_look(merge, source))
		*source = merge->heap.data[--merge->heap.len];
	if (merge->heap.len)
		heap_sink(merge, 0);
	return true;
}

static void merge_close(struct draft_merge *merge)
{
	vec_free(&merge->rest);
	vec_free(&merge->heap);
}

/* A call follows another one of its thread. Calls of a thread do not overlap: a launch within a
 * call that waits, as in a synchronous copy, is over when the waiting begins. */
static void gap_set(struct replay_node *previous, uint64_t begin_ts)
{
	begin_ts = max(begin_ts, previous->start_ts);
	previous->dur_ns = min(previous->dur_ns, begin_ts - previous->start_ts);
	previous->gap_ns = (begin_ts - previous->start_ts - previous->dur_ns) & INT64_MAX;
}

/* ---- nodes ---- */

/* The queues of threads. */
struct queue_scan {
	uint32_t *of;             /* thread -> queue, or REPLAY_NONE */
	VEC(uint32_t) last;       /* node of each queue */
	VEC(uint64_t) release_ts; /* of each queue */
};

/* Puts a call into the queue of its thread, as node `index`. */
static uint32_t queue_put(struct replay_build *build, struct queue_scan *queues,
			  const struct draft *draft, uint32_t index)
{
	uint32_t *queue = &queues->of[draft->thread];

	if (*queue == REPLAY_NONE) {
		*queue = build->graph.queue_count++;
		vec_add(&queues->last, index);
		/* Nothing else says when a thread begins. */
		vec_add(&queues->release_ts, draft->begin_ts);
		return *queue;
	}
	gap_set(&build->graph.nodes.data[queues->last.data[*queue]], draft->begin_ts);
	queues->last.data[*queue] = index;
	return *queue;
}

static void node_add(struct replay_build *build, const struct draft *draft, uint32_t queue)
{
	struct replay_node node = {
		.start_ts = draft->start_ts,
		.dur_ns = draft->end_ts - draft->start_ts,
		.queue = queue,
		.engine = REPLAY_NONE,
		.is_operation = draft->kind == REPLAY_ORIGIN_OP,
	};

	memory_require(draft->index <= REPLAY_ORIGIN_INDEX_MAX);
	vec_add(&build->graph.nodes, node);
	vec_add(&build->origins,
		(struct replay_origin){draft->index & REPLAY_ORIGIN_INDEX_MAX, draft->kind & 7});
}

void replay_nodes_add(struct replay_build *build, const struct replay_node_numbers *numbers)
{
	const struct gpu_timeline *timeline = build->timeline;
	uint32_t *const nodes_of[] = {[REPLAY_ORIGIN_OP] = build->op_node,
				      [REPLAY_ORIGIN_LAUNCH] = numbers->launch,
				      [REPLAY_ORIGIN_SYNC] = numbers->sync,
				      [REPLAY_ORIGIN_ARRIVAL] = numbers->arrival,
				      [REPLAY_ORIGIN_MEETING] = numbers->meeting};
	struct queue_scan queues = {.of = replay_numbers_none(timeline->model->threads.len)};
	struct draft_merge merge = {.build = build};
	struct draft draft;

	merge_open(&merge);
	vec_need(&build->graph.nodes, timeline->ops.len + timeline->launches.len + merge.rest.len);
	vec_need(&build->origins, timeline->ops.len + timeline->launches.len + merge.rest.len);
	for (uint32_t i = 0; merge_next(&merge, &draft); i++) {
		uint32_t queue = draft.thread == MODEL_NONE ? REPLAY_NONE
							    : queue_put(build, &queues, &draft, i);

		memory_require(i < REPLAY_NONE);
		nodes_of[draft.kind][draft.index] = i;
		node_add(build, &draft, queue);
	}
	build->graph.release_ts = queues.release_ts.data;
	merge_close(&merge);
	vec_free(&queues.last);
	free(queues.of);
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
