// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/why_median_internal.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/select.h"
#include "analyze/why/why_whole_internal.h"
#include "util/keymap.h"
#include "util/memory.h"

/* A span of one of the names; `name` is the number of that name. */
struct median_candidate {
	uint64_t ns;
	uint32_t name, span;
};

static int candidate_compare(const void *left, const void *right)
{
	const struct median_candidate *a = left, *b = right;

	if (a->name != b->name)
		return a->name < b->name ? -1 : 1;
	if (a->ns != b->ns)
		return a->ns < b->ns ? -1 : 1;
	return a->span < b->span ? -1 : a->span > b->span;
}

/* For each site, the number of its name among those of the instances, or MODEL_NONE. The caller
 * frees it. */
static uint32_t *names_find(const struct why *why)
{
	const struct model *model = why->model;
	uint32_t count = model_site_count(model);
	uint32_t *names = memory_get(((size_t)count + 1) * sizeof(*names));
	struct keymap numbers = {0}; /* of names */

	for (size_t i = 0; i < why->instances.len; i++) {
		uint32_t span = why->instances.data[i].span;
		const char *name;

		if (span >= model->spans.len)
			continue;
		name = model_site(model, model->spans.data[span].site)->name;
		if (keymap_get(&numbers, name, strlen(name)) == MAP_NONE)
			keymap_put(&numbers, name, strlen(name), (uint32_t)numbers.len);
	}
	for (uint32_t i = 0; i <= count; i++) {
		const char *name = model_site(model, i)->name;

		names[i] = keymap_get(&numbers, name, strlen(name));
		if (names[i] == MAP_NONE)
			names[i] = MODEL_NONE;
	}
	keymap_free(&numbers);
	return names;
}

void why_medians_find(struct why_medians *medians, const struct why *why)
{
	const struct model *model = why->model;
	uint32_t *names = names_find(why), sites = model_site_count(model);
	VEC(struct median_candidate) all = {0};

	for (uint32_t i = 0; i < model->spans.len; i++) {
		const struct model_span *span = &model->spans.data[i];
		uint32_t name = names[span->site < sites ? span->site : sites];

		if (name != MODEL_NONE && why_is_whole(model, span))
			vec_add(&all,
				(struct median_candidate){span->end_ts - span->start_ts, name, i});
	}
	if (all.len)
		qsort(all.data, all.len, sizeof(*all.data), candidate_compare);
	for (size_t i = 0, end; i < all.len; i = end) {
		for (end = i; end < all.len && all.data[end].name == all.data[i].name;)
			end++;
		vec_add(&medians->found,
			(struct why_median){all.data[i + select_percentile_rank(end - i, 50)].span,
					    end - i});
	}
	vec_free(&all);
	free(names);
}
