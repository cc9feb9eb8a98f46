// SPDX-License-Identifier: Apache-2.0
/* Links: we collect them from frames as ids, and resolve them when spans and events are sorted. */
#include <stdlib.h>
#include <string.h>

#include "model/build.h"
#include "model/order.h"
#include "util/memory.h"
#include "util/search.h"

void links_add(struct model *model, enum model_node_kind from_kind, uint32_t from, uint32_t site,
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
		if (link.to_id)
			vec_add(&model->links, link);
	}
}

/* Only events that are the target of a link must be found by id, so the map stays small. */
static void map_wanted_events(struct model *model)
{
	struct map found = {0};
	bool wanted = false;

	for (size_t i = 0; i < model->links.len; i++) {
		if (model->links.data[i].to_kind != MODEL_NODE_EVENT)
			continue;
		wanted = true;
		map_put(&model->event_ids, model->links.data[i].to_id, 0);
	}
	if (!wanted)
		return;
	for (size_t i = 0; i < model->events.len; i++) {
		uint64_t id = model->events.data[i].id;

		if (id && map_get(&model->event_ids, id) != MAP_NONE)
			map_put(&found, id, (uint32_t)i);
	}
	map_free(&model->event_ids);
	model->event_ids = found;
}

void links_resolve(struct model *model)
{
	map_wanted_events(model);
	for (size_t i = 0; i < model->links.len; i++) {
		struct model_link *link = &model->links.data[i];

		link->to = link->to_kind == MODEL_NODE_EVENT
				   ? map_get(&model->event_ids, link->to_id)
				   : model_span_find(model, link->to_id);
	}
}

static uint64_t link_key(const struct model_link *link)
{
	return (uint64_t)link->from_kind << 32 | link->from;
}

void links_order(struct model *model)
{
	size_t count = model->links.len;
	struct order_item *items;
	struct model_link *links;
	bool ordered = true;

	for (size_t i = 1; ordered && i < count; i++)
		ordered = link_key(&model->links.data[i - 1]) <= link_key(&model->links.data[i]);
	if (ordered)
		return;
	memory_require(count < MODEL_NONE);
	items = memory_get(count * sizeof(*items));
	links = memory_get(count * sizeof(*links));
	for (size_t i = 0; i < count; i++)
		items[i] = (struct order_item){link_key(&model->links.data[i]), (uint32_t)i};
	order_sort(items, count);
	for (size_t i = 0; i < count; i++)
		links[i] = model->links.data[items[i].index];
	memcpy(model->links.data, links, count * sizeof(*links));
	free(items);
	free(links);
}

size_t model_links_from(const struct model *model, uint8_t kind, uint32_t index, size_t *first)
{
	struct model_link wanted = {.from_kind = kind, .from = index};
	uint64_t key = link_key(&wanted);

	*first = lower_bound(model->links.len, i, link_key(&model->links.data[i]) < key);
	return lower_bound(model->links.len, i, link_key(&model->links.data[i]) <= key) - *first;
}
