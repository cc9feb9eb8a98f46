// SPDX-License-Identifier: Apache-2.0
#include "analyze/origin/origin.h"

#include <errno.h>
#include <stdlib.h>

#include "analyze/origin/origin_internal.h"

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
	if (a->step_count != b->step_count)
		return a->step_count < b->step_count ? -1 : 1;
	if (a_ts != b_ts)
		return a_ts > b_ts ? -1 : 1;
	return a->node.id < b->node.id ? -1 : a->node.id > b->node.id;
}

/* Adds the ends of a walk, each node once. Nodes that are not in the capture have no index, so they
 * are distinguished by their ids. */
static bool ends_add(struct origin *origin, struct map *known, const struct origin_walk *walk,
		     enum origin_basis basis)
{
	bool good = true;

	for (size_t i = 0; good && i < walk->ends.len; i++) {
		size_t count = origin->ends.len, steps = origin->steps.len;
		const struct origin_node *node;

		if (walk->ends.data[i].basis != basis)
			continue;
		good = origin_way_add(origin, walk, &walk->ends.data[i]);
		if (!good)
			break;
		node = &origin->ends.data[count].node;
		if (map_get(&known[node->kind], node->id) == MAP_NONE) {
			good = map_set(&known[node->kind], node->id, 0);
			continue;
		}
		origin->ends.len = count;
		origin->steps.len = steps;
	}
	return good;
}

/* Whether data led to an end. */
static bool is_by_data(const struct origin *origin, const struct origin_end *end)
{
	const struct origin_step *steps = &origin->steps.data[end->step];

	for (size_t i = 0; i < end->step_count; i++)
		if (steps[i].via == ORIGIN_VIA_COLLECTIVE || steps[i].via == ORIGIN_VIA_MESSAGE)
			return true;
	return false;
}

/* Sorts the ends. If there are several, or origins may be missing, any of them may have given the
 * data that matters, so that data leads to none of them for certain. */
static void ends_sort(struct origin *origin)
{
	struct origin_end *ends = origin->ends.data;

	if (!origin->ends.len)
		return;
	qsort_r(ends, origin->ends.len, sizeof(*ends), end_compare, (void *)origin->model);
	if (origin->ends.len == 1 && origin->incomplete == MODEL_NONE && !origin->unmatched)
		return;
	for (size_t i = 0; i < origin->ends.len; i++)
		if (ends[i].grade == WHY_GRADE_CERTAIN && is_by_data(origin, &ends[i]))
			ends[i].grade = WHY_GRADE_LIKELY;
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

static bool ends_find(struct origin *origin, const struct origin_index *index)
{
	struct origin_walk walk, directed;
	struct map known[2] = {0};
	uint8_t kind = origin->symptom.kind;
	uint32_t node = origin->symptom.index;
	bool good = origin_walk_run(&walk, index, false, kind, node);

	good = origin_walk_run(&directed, index, true, kind, node) && good;
	good = good && ends_add(origin, known, &walk, ORIGIN_DECLARED) &&
	       ends_add(origin, known, &directed, ORIGIN_FLOW);
	if (good && !origin->ends.len)
		good = ends_add(origin, known, &directed, ORIGIN_ANY_RANK);
	origin->incomplete = walk.incomplete;
	origin->disorder = disorder_find(origin);
	origin->unmatched = unmatched_count(origin->comm);
	origin->visited = walk.landings.len + directed.landings.len;
	origin_walk_free(&walk);
	origin_walk_free(&directed);
	map_free(&known[0]);
	map_free(&known[1]);
	if (good)
		ends_sort(origin);
	return good;
}

int origin_new(struct origin **origin, const struct origin_index *index, enum model_node_kind kind,
	       uint32_t node, struct error *err)
{
	struct origin *made = calloc(1, sizeof(*made));

	*origin = NULL;
	if (made) {
		const struct model *model = index->model;

		made->model = model;
		made->comm = index->comm;
		made->symptom = (struct origin_node){.id = kind == MODEL_NODE_SPAN
								   ? model->spans.data[node].id
								   : model->events.data[node].id,
						     .index = node,
						     .kind = (uint8_t)kind};
	}
	if (!made || !ends_find(made, index)) {
		origin_free(made);
		return error_set(err, ENOMEM, "out of memory");
	}
	*origin = made;
	return 0;
}

void origin_free(struct origin *origin)
{
	if (!origin)
		return;
	vec_free(&origin->ends);
	vec_free(&origin->steps);
	free(origin);
}

/* ---- records ---- */

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
	size_t most = origin->steps.len + 1, count = 0;
	struct why_record *records = calloc(most, sizeof(*records));
	struct origin_node **nodes = calloc(most, sizeof(struct origin_node *));
	int result = records && nodes ? 0 : error_set(err, ENOMEM, "out of memory");

	for (size_t i = 0; i < most && !result; i++) {
		nodes[count] = i ? &origin->steps.data[i - 1].to : &origin->symptom;
		records[count] = record_of(origin->model, nodes[count]);
		count += records[count].ts != 0;
	}
	if (!result)
		result = why_records_number(origin->model->reader, records, count, NULL, err);
	for (size_t i = 0; i < count && !result; i++)
		nodes[i]->record = records[i].number;
	for (size_t i = 0; i < origin->ends.len && !result; i++) {
		struct origin_end *end = &origin->ends.data[i];

		if (end->step_count)
			end->node.record =
				origin->steps.data[end->step + end->step_count - 1].to.record;
	}
	free(records);
	free(nodes);
	return result;
}
