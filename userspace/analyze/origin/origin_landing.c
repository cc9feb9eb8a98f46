// SPDX-License-Identifier: Apache-2.0
/* Landings of a walk, and the places that it remembers. */
#include <stdlib.h>

#include "analyze/origin/origin_internal.h"
#include "util/memory.h"

uint64_t origin_place_key(enum origin_place place, uint32_t index)
{
	return (uint64_t)place << 32 | index;
}

bool origin_place_enter(struct origin_walk *walk, enum origin_place place, uint32_t index)
{
	uint64_t key = origin_place_key(place, index);

	if (map_get(&walk->seen, key) != MAP_NONE)
		return false;
	map_put(&walk->seen, key, 0);
	return true;
}

uint64_t origin_mark_raise(struct origin_walk *walk, uint64_t key, uint8_t grade, uint64_t ts)
{
	unsigned row = grade != WHY_GRADE_CERTAIN;
	uint32_t at = map_get(&walk->marks, key);
	struct origin_mark *mark;
	uint64_t previous;

	if (at == MAP_NONE) {
		at = (uint32_t)walk->mark_list.len;
		vec_add(&walk->mark_list, (struct origin_mark){{0, 0}});
		map_put(&walk->marks, key, at);
	}
	mark = &walk->mark_list.data[at];
	previous = mark->ts[0];
	if (row && mark->ts[1] > previous)
		previous = mark->ts[1];
	if (mark->ts[row] < ts)
		mark->ts[row] = ts;
	return previous;
}

uint64_t origin_node_ts(const struct model *model, uint8_t kind, uint32_t index)
{
	return kind == MODEL_NODE_SPAN ? model->spans.data[index].start_ts
				       : model->events.data[index].ts;
}

uint32_t origin_node_thread(const struct model *model, uint8_t kind, uint32_t index)
{
	return kind == MODEL_NODE_SPAN ? model->spans.data[index].thread
				       : model->events.data[index].thread;
}

uint32_t origin_node_parent(const struct model *model, uint8_t kind, uint32_t index)
{
	return kind == MODEL_NODE_SPAN ? model->spans.data[index].parent
				       : model->events.data[index].parent;
}

uint64_t origin_node_id(const struct model *model, uint8_t kind, uint32_t index)
{
	return kind == MODEL_NODE_SPAN ? model->spans.data[index].id : model->events.data[index].id;
}

static uint8_t weaker(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

/* ---- landings ---- */

struct origin_landing origin_landing_from(const struct origin_climb *climb, enum origin_via via,
					  uint8_t step_grade)
{
	bool own = climb->kind == climb->from.kind && climb->index == climb->from.index;

	return (struct origin_landing){
		.ts = climb->from.ts,
		.ts_thread = climb->from.ts_thread,
		.kind = MODEL_NODE_SPAN,
		.prev = climb->at,
		.anchor = own ? MODEL_NONE : climb->index,
		.collective = MODEL_NONE,
		.from_call = MODEL_NONE,
		.to_call = MODEL_NONE,
		.steps = climb->from.steps + 1,
		.via = (uint8_t)via,
		.grade = weaker(climb->from.grade, step_grade),
		.step_grade = step_grade,
		.flowed = climb->from.flowed,
		.head = climb->from.head,
	};
}

uint32_t origin_landing_add(struct origin_walk *walk, struct origin_landing landing)
{
	uint32_t at = (uint32_t)walk->landings.len;

	if (landing.index != MODEL_NONE)
		landing.id = origin_node_id(walk->index->model, landing.kind, landing.index);
	memory_require(at != MODEL_NONE);
	landing.head = landing.steps <= ORIGIN_WAY_HALF ? at : landing.head;
	vec_add(&walk->landings, landing);
	return at;
}

void origin_landing_push(struct origin_walk *walk, struct origin_landing landing)
{
	uint32_t at = origin_landing_add(walk, landing);

	vec_add(&walk->queue[landing.grade != WHY_GRADE_CERTAIN], at);
}

void origin_end_add(struct origin_walk *walk, uint32_t landing, enum origin_basis basis)
{
	vec_add(&walk->ends, (struct origin_reached){landing, (uint8_t)basis});
}
