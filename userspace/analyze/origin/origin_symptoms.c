// SPDX-License-Identifier: Apache-2.0
#include "analyze/origin/origin_symptoms.h"

#include <errno.h>
#include <stdlib.h>

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

	return map_get(&search->seen, key) == MAP_NONE && map_set(&search->seen, key, 0);
}

static int symptom_add(struct symptom_search *search, uint32_t event, struct error *err)
{
	struct origin *origin;
	int result = origin_new(&origin, search->symptoms->index, MODEL_NODE_EVENT, event, err);

	if (result)
		return result;
	search->visited += origin->visited;
	if (!origin->ends.len || origin->ends.data[0].basis != ORIGIN_DECLARED) {
		origin_free(origin);
		return 0;
	}
	if (vec_push(&search->symptoms->origins, origin))
		return 0;
	origin_free(origin);
	return error_set(err, ENOMEM, "out of memory");
}

static int symptoms_find(struct symptom_search *search, struct error *err)
{
	const struct model *model = search->model;
	int result = 0;

	for (size_t i = model->events.len; i-- && !result;) {
		const struct model_event *event = &model->events.data[i];
		const struct site_info *site = model_site(model, event->site);

		if (site->kind == WAFFLE_SITE_COUNTER || site->call || !is_last(search, event))
			continue;
		search->symptoms->more = !search->left || search->visited > VISITED_MAX;
		if (search->symptoms->more)
			break;
		search->left--;
		result = symptom_add(search, (uint32_t)i, err);
	}
	return result;
}

int origin_symptoms_new(struct origin_symptoms **symptoms, const struct model *model,
			bool per_process, size_t most, struct error *err)
{
	struct symptom_search search = {.model = model,
					.symptoms = calloc(1, sizeof(**symptoms)),
					.left = most,
					.per_process = per_process};
	int result = search.symptoms ? 0 : error_set(err, ENOMEM, "out of memory");

	*symptoms = NULL;
	if (!result && has_causes(model))
		result = origin_index_new(&search.symptoms->index, model, err)
				 ?: symptoms_find(&search, err);
	map_free(&search.seen);
	if (result)
		origin_symptoms_free(search.symptoms);
	else
		*symptoms = search.symptoms;
	return result;
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
