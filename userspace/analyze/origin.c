// SPDX-License-Identifier: Apache-2.0
#include "analyze/origin.h"

#include <errno.h>
#include <stdlib.h>

#include "analyze/why/why.h"

const char *const origin_via_names[] = {
	[ORIGIN_START] = "start",
	[ORIGIN_LINK] = "link",
	[ORIGIN_INSIDE] = "inside",
};

struct origin_walk {
	struct origin *origin;
	const struct model *model;
	struct map first;              /* node → its first link */
	uint32_t *next;                /* link → next link of the same node, or MODEL_NONE */
	struct map seen;               /* nodes that are in the result */
	VEC(struct origin_node) ahead; /* stack of the nodes to visit */
};

static uint64_t key_of(uint8_t kind, uint32_t index)
{
	return (uint64_t)kind << 32 | index;
}

static bool index_links(struct origin_walk *walk)
{
	const struct model *model = walk->model;

	walk->next = calloc(model->links.len + 1, sizeof(*walk->next));
	if (!walk->next)
		return false;
	/* Backwards, so that the links of a node stay in order. */
	for (size_t i = model->links.len; i--;) {
		const struct model_link *link = &model->links.data[i];
		uint64_t key = key_of(link->from_kind, link->from);

		walk->next[i] = map_get(&walk->first, key);
		if (!map_set(&walk->first, key, (uint32_t)i))
			return false;
	}
	return true;
}

static struct origin_node node_of(const struct model *model, uint8_t kind, uint32_t index)
{
	return (struct origin_node){.id = kind == MODEL_NODE_SPAN ? model->spans.data[index].id
								  : model->events.data[index].id,
				    .index = index,
				    .kind = kind};
}

static uint32_t parent_of(const struct model *model, const struct origin_node *node)
{
	return node->kind == MODEL_NODE_SPAN ? model->spans.data[node->index].parent
					     : model->events.data[node->index].parent;
}

/* The innermost span around a node that has links. */
static uint32_t linked_around(const struct origin_walk *walk, const struct origin_node *node)
{
	uint32_t span = parent_of(walk->model, node);

	/* A parent's index is less than its child's, so this ends. */
	while (span != MODEL_NONE &&
	       map_get(&walk->first, key_of(MODEL_NODE_SPAN, span)) == MAP_NONE)
		span = walk->model->spans.data[span].parent;
	return span;
}

/* Pushes what a node leads to, in reverse order. False: out of memory. */
static bool look_ahead(struct origin_walk *walk, struct origin_node *node)
{
	size_t from = walk->ahead.len;
	uint32_t around;

	if (node->index == MODEL_NONE || node->repeated)
		return true;
	for (uint32_t i = map_get(&walk->first, key_of(node->kind, node->index)); i != MAP_NONE;
	     i = walk->next[i]) {
		const struct model_link *link = &walk->model->links.data[i];
		struct origin_node to = {.id = link->to_id,
					 .index = link->to,
					 .kind = link->to_kind,
					 .via = ORIGIN_LINK,
					 .depth = node->depth + 1};

		if (!vec_push(&walk->ahead, to))
			return false;
	}
	if (walk->ahead.len == from) {
		around = linked_around(walk, node);
		node->root = around == MODEL_NONE;
		if (node->root)
			return true;
		if (!vec_push(&walk->ahead, node_of(walk->model, MODEL_NODE_SPAN, around)))
			return false;
		walk->ahead.data[from].via = ORIGIN_INSIDE;
		walk->ahead.data[from].depth = node->depth + 1;
	}
	for (size_t a = from, b = walk->ahead.len - 1; a < b; a++, b--) {
		struct origin_node swap = walk->ahead.data[a];

		walk->ahead.data[a] = walk->ahead.data[b];
		walk->ahead.data[b] = swap;
	}
	return true;
}

static bool tell(struct origin_walk *walk, struct origin_node node)
{
	if (node.index == MODEL_NONE) {
		node.root = true;
	} else {
		uint64_t key = key_of(node.kind, node.index);

		node.repeated = map_get(&walk->seen, key) != MAP_NONE;
		if (!map_set(&walk->seen, key, 0))
			return false;
	}
	return look_ahead(walk, &node) && vec_push(&walk->origin->nodes, node);
}

static bool walk_back(struct origin_walk *walk, struct origin_node start)
{
	if (!index_links(walk) || !vec_push(&walk->ahead, start))
		return false;
	while (walk->ahead.len)
		if (!tell(walk, walk->ahead.data[--walk->ahead.len]))
			return false;
	return true;
}

int origin_new(struct origin **origin, const struct model *model, enum model_node_kind kind,
	       uint32_t index, struct error *err)
{
	struct origin_walk walk = {.model = model, .origin = calloc(1, sizeof(**origin))};
	bool done = walk.origin && walk_back(&walk, node_of(model, (uint8_t)kind, index));

	*origin = NULL;
	map_free(&walk.first);
	map_free(&walk.seen);
	free(walk.next);
	vec_free(&walk.ahead);
	if (!done) {
		origin_free(walk.origin);
		return error_set(err, ENOMEM, "out of memory");
	}
	walk.origin->model = model;
	*origin = walk.origin;
	return 0;
}

/* The key to a node's record; `ts` 0: it is not in the capture. */
static struct why_record record_of(const struct model *model, const struct origin_node *node)
{
	struct why_record record = {.role = WHY_ROLE_SPAN};
	struct model_node found;

	if (model_node_find(model, node->kind, node->index, &found) &&
	    found.thread < model->threads.len) {
		record.ts = found.ts;
		record.tid = model->threads.data[found.thread].tid;
	}
	return record;
}

int origin_find_records(struct origin *origin, struct error *err)
{
	struct why_record *records = calloc(origin->nodes.len + 1, sizeof(*records));
	size_t *nodes = calloc(origin->nodes.len + 1, sizeof(*nodes)), count = 0;
	int result = records && nodes ? 0 : error_set(err, ENOMEM, "out of memory");

	for (size_t i = 0; i < origin->nodes.len && !result; i++) {
		records[count] = record_of(origin->model, &origin->nodes.data[i]);
		nodes[count] = i;
		count += records[count].ts != 0;
	}
	if (!result)
		result = why_records_number(origin->model->reader, records, count, NULL, err);
	for (size_t i = 0; i < count && !result; i++)
		origin->nodes.data[nodes[i]].record = records[i].number;
	free(records);
	free(nodes);
	return result;
}

void origin_free(struct origin *origin)
{
	if (!origin)
		return;
	vec_free(&origin->nodes);
	free(origin);
}
