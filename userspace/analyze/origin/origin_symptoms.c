// SPDX-License-Identifier: Apache-2.0
#include "analyze/origin/origin_symptoms.h"

#include <stdlib.h>

#include "util/memory.h"

/* Number of places that all searches together may look at: about a second of CPU time. */
#define VISITED_MAX 2000000

struct symptom_search {
	struct origin_symptoms *symptoms;
	const struct model *model;
	struct map seen; /* sites, or sites and processes */
	size_t left;     /* number of events that may still be looked at */
	size_t visited;  /* number of places that were looked at */
	bool per_process;
};

/* Whether the program has declared any cause. Without one there is no declared origin. */
static bool has_causes(const struct model *model)
{
	for (size_t i = 0; i < model->links.len; i++) {
		const struct model_link *link = &model->links.data[i];
		uint32_t site = link->from_kind == MODEL_NODE_SPAN
					? model->spans.data[link->from].site
					: model->events.data[link->from].site;

		if (!model_site(model, site)->call)
			return true;
	}
	return false;
}

/* Whether an event is the last one of its kind. */
static bool is_last(struct symptom_search *search, const struct model_event *event)
{
	uint32_t pid = search->model->threads.data[event->thread].pid;
	uint64_t key = (uint64_t)event->site << 32 | (search->per_process ? pid : 0);

	if (map_get(&search->seen, key) != MAP_NONE)
		return false;
	map_put(&search->seen, key, 0);
	return true;
}

static void symptom_add(struct symptom_search *search, uint32_t event)
{
	struct origin *origin = origin_new(search->symptoms->index, MODEL_NODE_EVENT, event);

	search->visited += origin->visited;
	if (origin->ends.len && origin->ends.data[0].basis == ORIGIN_DECLARED)
		vec_add(&search->symptoms->origins, origin);
	else
		origin_free(origin);
}

static void symptoms_find(struct symptom_search *search)
{
	const struct model *model = search->model;

	for (size_t i = model->events.len; i--;) {
		const struct model_event *event = &model->events.data[i];
		const struct site_info *site = model_site(model, event->site);

		if (site->kind == WAFFLE_SITE_COUNTER || site->call || !is_last(search, event))
			continue;
		search->symptoms->more = !search->left || search->visited > VISITED_MAX;
		if (search->symptoms->more)
			break;
		search->left--;
		symptom_add(search, (uint32_t)i);
	}
}

struct origin_symptoms *origin_symptoms_new(const struct model *model, bool per_process,
					    size_t most)
{
	struct symptom_search search = {.model = model,
					.symptoms = memory_zeroed(1, sizeof(*search.symptoms)),
					.left = most,
					.per_process = per_process};

	if (has_causes(model)) {
		search.symptoms->index = origin_index_new(model);
		symptoms_find(&search);
	}
	map_free(&search.seen);
	return search.symptoms;
}

void origin_symptoms_free(struct origin_symptoms *symptoms)
{
	if (!symptoms)
		return;
	for (size_t i = 0; i < symptoms->origins.len; i++)
		origin_free(symptoms->origins.data[i]);
	vec_free(&symptoms->origins);
	origin_index_free(symptoms->index);
	free(symptoms);
}
