// SPDX-License-Identifier: Apache-2.0
/* Links: collected from frames as ids, resolved when every span and event is in its place. */
#include "model/build.h"

int links_add(struct model *model, enum model_node_kind from_kind, uint32_t from, uint32_t site,
	      uint32_t frame)
{
	struct value_walk walk = model_values(model, site, frame);
	struct value value;

	while (value_walk_next(&walk, &value)) {
		struct model_link link = {
			.from_kind = (uint8_t)from_kind,
			.to_kind = value.type == WAFFLE_KEY_CAUSE_EVENT ? MODEL_NODE_EVENT
									: MODEL_NODE_SPAN,
			.from = from,
			.to = MODEL_NONE,
			.to_id = value.u64,
		};

		if (value.type != WAFFLE_KEY_CAUSE_SPAN && value.type != WAFFLE_KEY_CAUSE_EVENT)
			continue;
		if (link.to_id && !vec_push(&model->links, link))
			return -ENOMEM;
	}
	return 0;
}

/* Only events that a link leads to need to be found by id: the map stays small. */
static int map_wanted_events(struct model *model)
{
	struct map found = {0};
	bool wanted = false;

	for (size_t i = 0; i < model->links.len; i++) {
		if (model->links.data[i].to_kind != MODEL_NODE_EVENT)
			continue;
		wanted = true;
		if (!map_set(&model->event_ids, model->links.data[i].to_id, 0))
			return -ENOMEM;
	}
	if (!wanted)
		return 0;
	for (size_t i = 0; i < model->events.len; i++) {
		uint64_t id = model->events.data[i].id;

		if (id && map_get(&model->event_ids, id) != MAP_NONE &&
		    !map_set(&found, id, (uint32_t)i)) {
			map_free(&found);
			return -ENOMEM;
		}
	}
	map_free(&model->event_ids);
	model->event_ids = found;
	return 0;
}

int links_resolve(struct model *model)
{
	if (map_wanted_events(model))
		return -ENOMEM;
	for (size_t i = 0; i < model->links.len; i++) {
		struct model_link *link = &model->links.data[i];

		link->to = map_get(link->to_kind == MODEL_NODE_EVENT ? &model->event_ids
								     : &model->span_ids,
				   link->to_id);
	}
	return 0;
}
