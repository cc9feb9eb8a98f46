// SPDX-License-Identifier: Apache-2.0
#include "analyze/origin/origin.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/origin/origin_internal.h"
#include "util/memory.h"

const char *const origin_via_names[] = {
	[ORIGIN_VIA_LINK] = "link",
	[ORIGIN_VIA_INSIDE] = "inside",
	[ORIGIN_VIA_COLLECTIVE] = "collective",
	[ORIGIN_VIA_MESSAGE] = "message",
	[ORIGIN_VIA_CONTEXT] = "context",
};

const char *const origin_basis_names[] = {
	[ORIGIN_DECLARED] = "declared",
	[ORIGIN_FLOW] = "flow",
	[ORIGIN_ANY_RANK] = "any rank",
};

/* ---- the ends ---- */

static uint64_t end_ts(const struct model *model, const struct origin_end *end)
{
	struct model_node node;

	return model_node_find(model, end->node.kind, end->node.index, &node) ? node.ts : 0;
}

static int end_compare(const void *left, const void *right, void *arg)
{
	const struct origin_end *a = left, *b = right;
	uint64_t a_ts = end_ts(arg, a), b_ts = end_ts(arg, b);

	if (a->basis != b->basis)
		return a->basis < b->basis ? -1 : 1;
	if (a->grade != b->grade)
		return a->grade > b->grade ? -1 : 1;
	if (a->steps != b->steps)
		return a->steps < b->steps ? -1 : 1;
	if (a_ts != b_ts)
		return a_ts > b_ts ? -1 : 1;
	return a->node.id < b->node.id ? -1 : a->node.id > b->node.id;
}

/* Copies a landing of a walk, and those on the way to it, unless they were copied before. `copied`
 * has for each landing its index in origin->landings, or MODEL_NONE. Returns that index. */
static uint32_t way_copy(struct origin *origin, const struct origin_walk *walk, uint32_t *copied,
			 uint32_t at)
{
	VEC(uint32_t) path = {0};

	for (uint32_t i = at; i != MODEL_NONE && copied[i] == MODEL_NONE;
	     i = walk->landings.data[i].prev)
		vec_add(&path, i);
	while (path.len) {
		uint32_t from = path.data[--path.len];
		struct origin_landing landing = walk->landings.data[from];

		copied[from] = (uint32_t)origin->landings.len;
		landing.head = copied[landing.head];
		if (landing.prev != MODEL_NONE)
			landing.prev = copied[landing.prev];
		vec_add(&origin->landings, landing);
	}
	vec_free(&path);
	return copied[at];
}

static uint8_t end_grade(const struct origin_landing *landing, uint8_t basis)
{
	if (basis == ORIGIN_ANY_RANK)
		return WHY_GRADE_UNKNOWN;
	return basis == ORIGIN_FLOW && landing->grade > WHY_GRADE_LIKELY ? WHY_GRADE_LIKELY
									 : landing->grade;
}

/* Adds the ends of a walk, each node once. Nodes that are not in the capture have no index, so they
 * are distinguished by their ids. */
static void ends_add(struct origin *origin, struct map *known, const struct origin_walk *walk,
		     enum origin_basis basis)
{
	uint32_t *copied = memory_get(walk->landings.len * sizeof(*copied));

	memset(copied, 0xff, walk->landings.len * sizeof(*copied));
	for (size_t i = 0; i < walk->ends.len; i++) {
		const struct origin_reached *reached = &walk->ends.data[i];
		const struct origin_landing *landing = &walk->landings.data[reached->landing];
		struct origin_end end = {.node = origin_end_node(origin->model, landing),
					 .steps = landing->steps,
					 .basis = reached->basis,
					 .grade = end_grade(landing, reached->basis)};

		if (reached->basis != basis ||
		    map_get(&known[end.node.kind], end.node.id) != MAP_NONE)
			continue;
		map_put(&known[end.node.kind], end.node.id, 0);
		end.landing = way_copy(origin, walk, copied, reached->landing);
		vec_add(&origin->ends, end);
	}
	free(copied);
}

static void ends_sort(struct origin *origin)
{
	if (origin->ends.len)
		qsort_r(origin->ends.data, origin->ends.len, sizeof(*origin->ends.data),
			end_compare, (void *)origin->model);
}

/* The disorder of the incomplete collective's communicator, at or before its number. */
static uint32_t disorder_find(const struct origin *origin)
{
	const struct model_collective *collective;

	if (origin->incomplete == MODEL_NONE)
		return MODEL_NONE;
	collective = model_collective_at(origin->comm, origin->incomplete);
	for (size_t i = 0; i < model_disorder_count(origin->comm); i++) {
		const struct model_disorder *disorder = model_disorder_at(origin->comm, i);

		if (collective->flow != FLOW_PAIR && disorder->comm == collective->comm &&
		    disorder->seq <= collective->seq)
			return (uint32_t)i;
	}
	return MODEL_NONE;
}

/* Counts calls that were not matched. The model does not count a call that is alone because the
 * number of ranks is unknown, so those are counted here. */
static uint64_t unmatched_count(const struct model_comm *comm)
{
	uint64_t alone = 0, unaligned = model_collectives_unaligned(comm);

	for (size_t i = 0; i < model_collective_count(comm); i++) {
		const struct model_collective *collective = model_collective_at(comm, i);

		alone += collective->alignment == COLLECTIVE_ALONE && !collective->nranks &&
			 collective->flow != FLOW_NONE;
	}
	return alone > unaligned ? alone : unaligned;
}

static void ends_find(struct origin *origin, const struct origin_index *index)
{
	struct origin_walk walk, directed;
	struct map known[2] = {0};
	uint8_t kind = origin->symptom.kind;
	uint32_t node = origin->symptom.index;

	origin_walk_run(&walk, index, false, kind, node);
	origin_walk_run(&directed, index, true, kind, node);
	ends_add(origin, known, &walk, ORIGIN_DECLARED);
	ends_add(origin, known, &directed, ORIGIN_FLOW);
	if (!origin->ends.len)
		ends_add(origin, known, &directed, ORIGIN_ANY_RANK);
	origin->incomplete = walk.incomplete;
	origin->disorder = disorder_find(origin);
	origin->unmatched = unmatched_count(origin->comm);
	origin->visited = walk.landings.len + directed.landings.len;
	origin_walk_free(&walk);
	origin_walk_free(&directed);
	map_free(&known[0]);
	map_free(&known[1]);
	ends_sort(origin);
}

struct origin *origin_new(const struct origin_index *index, enum model_node_kind kind,
			  uint32_t node)
{
	struct origin *origin = memory_zeroed(1, sizeof(*origin));

	origin->model = index->model;
	origin->comm = index->comm;
	origin->symptom =
		(struct origin_node){.id = origin_node_id(index->model, (uint8_t)kind, node),
				     .index = node,
				     .kind = (uint8_t)kind};
	ends_find(origin, index);
	return origin;
}

void origin_free(struct origin *origin)
{
	if (!origin)
		return;
	vec_free(&origin->ends);
	vec_free(&origin->landings);
	vec_free(&origin->records);
	map_free(&origin->known[0]);
	map_free(&origin->known[1]);
	free(origin);
}

/* ---- records ---- */

/* The nodes whose record numbers are wanted, in the order of origin->records. */
struct wanted_records {
	struct origin *origin;
	VEC(struct why_record) list;
};

/* Adds a node, unless it was added before or is not in the capture. */
static void node_want(struct wanted_records *wanted, const struct origin_node *node)
{
	const struct model *model = wanted->origin->model;
	struct map *known = &wanted->origin->known[node->kind];
	struct model_node found;

	if (map_get(known, node->id) != MAP_NONE ||
	    !model_node_find(model, node->kind, node->index, &found) ||
	    found.thread >= model->threads.len)
		return;
	map_put(known, node->id, (uint32_t)wanted->list.len);
	vec_add(&wanted->list, (struct why_record){.role = WHY_ROLE_SPAN,
						   .ts = found.ts,
						   .tid = model->threads.data[found.thread].tid});
}

static void node_number(const struct origin *origin, struct origin_node *node)
{
	uint32_t at = map_get(&origin->known[node->kind], node->id);

	if (at != MAP_NONE)
		node->record = origin->records.data[at];
}

int origin_find_records(struct origin *origin, struct error *err)
{
	struct wanted_records wanted = {.origin = origin};
	int result;

	node_want(&wanted, &origin->symptom);
	for (size_t i = 0; i < origin->ends.len; i++) {
		struct origin_way way;

		origin_way_find(&way, origin, &origin->ends.data[i]);
		for (size_t step = 0; step < way.steps.len; step++)
			node_want(&wanted, &way.steps.data[step].to);
		origin_way_free(&way);
	}
	vec_need(&origin->records, wanted.list.len);
	result = why_records_number(origin->model->reader, wanted.list.data, wanted.list.len, NULL,
				    err);
	for (size_t i = 0; i < wanted.list.len; i++)
		vec_add(&origin->records, result ? 0 : wanted.list.data[i].number);
	vec_free(&wanted.list);
	node_number(origin, &origin->symptom);
	for (size_t i = 0; i < origin->ends.len; i++)
		node_number(origin, &origin->ends.data[i].node);
	return result;
}
