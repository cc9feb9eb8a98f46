// SPDX-License-Identifier: Apache-2.0
/*
 * Spans are explained one after another and only their sums are kept. What the explanation needs of
 * the model is loaded for a stretch of time at once, so that it takes a bounded share of memory.
 */
#include "analyze/why_aggregate.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/select.h"
#include "analyze/why_internal.h"

/* Causes of a name that are told apart. */
#define SUMS_MAX 1000
/* A stretch has at least so many switches, and no less than a quarter of all. */
#define BATCH_SWITCHES 1000000

/* A sum while it grows. */
struct growing {
	struct why_sum sum;
	struct why_weight weight;
	uint64_t last_instance;    /* that was counted */
	uint32_t name, comm, span; /* numbers of texts; 0: none */
	uint32_t object;
};

struct making {
	struct why_aggregate *aggregate;
	const struct model *model;
	struct why *why; /* the instance being explained */
	struct why_data data;
	struct why_walker *walker;
	uint32_t site_count;
	uint32_t *rows;       /* of each site, in names; MODEL_NONE: none */
	uint32_t *site_texts; /* name of each site */
	uint32_t *sum_counts; /* of each name */
	VEC(struct growing) growing;
	struct map found;
	uint64_t instances;
};

static uint32_t site_slot(const struct making *making, uint32_t site)
{
	return site < making->site_count ? site : making->site_count;
}

static bool is_whole(const struct model_span *span)
{
	return !(span->flags & (MODEL_SPAN_UNFINISHED | MODEL_SPAN_BEGUN_BEFORE));
}

/* ---- names ---- */

/* Sites of the same name and category share a row. */
static bool make_rows(struct making *making)
{
	struct why_aggregate *aggregate = making->aggregate;
	struct map found = {0};
	bool good = true;

	for (uint32_t slot = 0; good && slot <= making->site_count; slot++) {
		const struct site_info *site = model_site(making->model, slot);
		uint32_t name = strtab_add(aggregate->texts, site->name, strlen(site->name));
		uint32_t category =
			strtab_add(aggregate->texts, site->category, strlen(site->category));
		uint64_t key = (uint64_t)name << 32 | category;
		uint32_t row;

		if (name == STRTAB_NONE || category == STRTAB_NONE) {
			good = false;
			break;
		}
		row = map_get(&found, key);
		making->site_texts[slot] = name;
		if (row == MAP_NONE) {
			row = (uint32_t)aggregate->names.len;
			good = map_set(&found, key, row) &&
			       vec_push(&aggregate->names,
					(struct why_name){.name = site->name,
							  .category = site->category});
		}
		making->rows[slot] = row;
	}
	map_free(&found);
	return good;
}

static struct why_name *name_of(const struct making *making, const struct model_span *span)
{
	return &making->aggregate->names.data[making->rows[site_slot(making, span->site)]];
}

/* Which durations are slow and which are usual. */
static bool find_groups(struct making *making)
{
	const struct model *model = making->model;
	struct why_aggregate *aggregate = making->aggregate;
	uint64_t *durations = malloc((model->spans.len + 1) * sizeof(*durations));
	size_t *ends = calloc(aggregate->names.len + 1, sizeof(*ends)), at = 0;
	bool good = durations && ends;

	for (size_t i = 0; good && i < model->spans.len; i++)
		if (is_whole(&model->spans.data[i]))
			name_of(making, &model->spans.data[i])->count++;
	for (size_t i = 0; good && i < aggregate->names.len; i++) {
		ends[i] = at;
		at += aggregate->names.data[i].count;
	}
	for (size_t i = 0; good && i < model->spans.len; i++) {
		const struct model_span *span = &model->spans.data[i];
		struct why_name *name = name_of(making, span);

		if (!is_whole(span))
			continue;
		durations[ends[name - aggregate->names.data]++] = span->end_ts - span->start_ts;
		name->total_ns += span->end_ts - span->start_ts;
	}
	for (size_t i = 0; good && i < aggregate->names.len; i++) {
		struct why_name *name = &aggregate->names.data[i];
		uint64_t *first = durations + ends[i] - name->count;

		if (!name->count)
			continue;
		name->slow_from_ns =
			select_rank(first, name->count, select_percentile_rank(name->count, 99));
		name->usual_from_ns =
			select_rank(first, name->count, select_percentile_rank(name->count, 40));
		name->usual_to_ns =
			select_rank(first, name->count, select_percentile_rank(name->count, 60));
	}
	free(durations);
	free(ends);
	return good;
}

/* ---- sums ---- */

static bool same(const struct growing *a, const struct growing *b)
{
	return a->name == b->name && a->comm == b->comm && a->span == b->span &&
	       a->object == b->object && a->sum.cause == b->sum.cause && a->sum.own == b->sum.own &&
	       a->sum.rest == b->sum.rest;
}

static uint64_t key_of(const struct growing *growing)
{
	const uint64_t words[] = {growing->name, growing->comm, growing->span, growing->object,
				  (uint64_t)growing->sum.cause << 2 | growing->sum.own << 1 |
					  growing->sum.rest};
	uint64_t hash = 0;

	for (unsigned i = 0; i < sizeof(words) / sizeof(*words); i++) {
		/* splitmix64's finalizer (Vigna 2015) */
		hash = (hash ^ words[i]) * 0xbf58476d1ce4e5b9ull;
		hash = (hash ^ hash >> 31) * 0x94d049bb133111ebull;
	}
	return hash;
}

/* The sum of the same culprit, or else added; NULL: out of memory. */
static struct growing *find(struct making *making, struct growing wanted)
{
	uint64_t key = key_of(&wanted);
	uint32_t index;

	while ((index = map_get(&making->found, key)) != MAP_NONE) {
		if (same(&making->growing.data[index], &wanted))
			return &making->growing.data[index];
		key++;
	}
	if (!wanted.sum.rest && making->sum_counts[wanted.name] >= SUMS_MAX) {
		wanted = (struct growing){.name = wanted.name,
					  .sum = {.cause = wanted.sum.cause, .rest = true}};
		return find(making, wanted);
	}
	making->sum_counts[wanted.name]++;
	index = (uint32_t)making->growing.len;
	if (!map_set(&making->found, key, index) || !vec_push(&making->growing, wanted))
		return NULL;
	return &making->growing.data[index];
}

static bool fold_part(struct making *making, const struct why_instance *instance,
		      const struct why_part *part)
{
	const struct model *model = making->model;
	const struct model_span *span = &model->spans.data[instance->span];
	uint64_t length = instance->to_ts - instance->from_ts;
	const struct why_name *name = name_of(making, span);
	struct growing wanted = {.name = (uint32_t)(name - making->aggregate->names.data),
				 .object = part->object,
				 .sum = {.cause = part->cause}};
	struct growing *growing;

	wanted.sum.own = part->thread == instance->thread;
	if (part->thread != MODEL_NONE && !wanted.sum.own)
		wanted.comm = model->threads.data[part->thread].comm;
	/* Its own time is in the span itself or in those inside: these are explained as well. */
	if (part->span != MODEL_NONE && !wanted.sum.own)
		wanted.span =
			making->site_texts[site_slot(making, model->spans.data[part->span].site)];
	growing = find(making, wanted);
	if (!growing)
		return false;
	growing->sum.instances += growing->last_instance != making->instances;
	growing->last_instance = making->instances;
	growing->sum.ns += part->ns;
	growing->weight.by_grade[part->grade] += part->ns;
	if (length >= name->slow_from_ns)
		growing->sum.slow_ns += part->ns;
	if (length >= name->usual_from_ns && length <= name->usual_to_ns)
		growing->sum.usual_ns += part->ns;
	return true;
}

static int fold_span(struct making *making, uint32_t index)
{
	struct why_instance instance = why_instance_of(making->model, index);
	struct why_name *name = name_of(making, &making->model->spans.data[index]);
	uint64_t length = instance.to_ts - instance.from_ts;
	struct why *why = making->why;
	int result = why_explain(making->walker, &instance);

	making->instances++;
	if (length >= name->slow_from_ns) {
		name->slow_count++;
		name->slow_total_ns += length;
	}
	if (length >= name->usual_from_ns && length <= name->usual_to_ns) {
		name->usual_count++;
		name->usual_total_ns += length;
	}
	for (uint32_t i = 0; !result && i < instance.part_count; i++)
		if (!fold_part(making, &instance, &why->parts.data[instance.part + i]))
			result = -ENOMEM;
	why->parts.len = 0;
	why->steps.len = 0;
	return result;
}

/* ---- stretch after stretch ---- */

static size_t switches_before(const struct model *model, uint64_t ts)
{
	size_t low = 0, high = model->switches.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (model->switches.data[middle].ts < ts)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Spans from `first` on that begin within so many switches; their windows, in order. */
static bool next_batch(const struct model *model, size_t first, size_t *end,
		       struct why_windows *windows)
{
	size_t limit =
		model->switches.len / 4 > BATCH_SWITCHES ? model->switches.len / 4 : BATCH_SWITCHES;
	size_t last_switch = switches_before(model, model->spans.data[first].start_ts) + limit;
	uint64_t until_ts = last_switch < model->switches.len ? model->switches.data[last_switch].ts
							      : UINT64_MAX;

	for (*end = first; *end < model->spans.len; ++*end) {
		const struct model_span *span = &model->spans.data[*end];
		struct why_window *last =
			windows->list.len ? &windows->list.data[windows->list.len - 1] : NULL;

		if (span->start_ts > until_ts && *end > first)
			break;
		if (!is_whole(span))
			continue;
		if (!last || span->start_ts > last->to_ts) {
			if (!vec_push(&windows->list,
				      (struct why_window){span->start_ts, span->end_ts}))
				return false;
		} else if (span->end_ts > last->to_ts) {
			last->to_ts = span->end_ts;
		}
	}
	return true;
}

static int fold_all(struct making *making)
{
	const struct model *model = making->model;
	int result = 0;

	for (size_t first = 0, end; !result && first < model->spans.len; first = end) {
		struct why_windows windows = {0};

		if (!next_batch(model, first, &end, &windows)) {
			vec_free(&windows.list);
			return -ENOMEM;
		}
		result = why_data_load(&making->data, &windows);
		for (size_t i = first; !result && i < end; i++)
			if (is_whole(&model->spans.data[i]))
				result = fold_span(making, (uint32_t)i);
	}
	return result;
}

/* ---- what comes out ---- */

static int growing_compare(const void *left, const void *right)
{
	const struct growing *a = left, *b = right;

	if (a->name != b->name)
		return a->name < b->name ? -1 : 1;
	if (a->sum.ns != b->sum.ns)
		return a->sum.ns > b->sum.ns ? -1 : 1;
	return a->sum.cause < b->sum.cause ? -1 : a->sum.cause > b->sum.cause;
}

static int different_compare(const void *left, const void *right, void *arg)
{
	const struct why_sum *sums = arg;
	const struct why_sum *a = &sums[*(const uint32_t *)left];
	const struct why_sum *b = &sums[*(const uint32_t *)right];

	if (a->more_ns != b->more_ns)
		return a->more_ns > b->more_ns ? -1 : 1;
	return a < b ? -1 : a > b;
}

static int name_compare(const void *left, const void *right)
{
	const struct why_name *a = left, *b = right;

	if (a->total_ns != b->total_ns)
		return a->total_ns > b->total_ns ? -1 : 1;
	return a->sum < b->sum ? -1 : a->sum > b->sum;
}

static bool add_sum(struct making *making, const struct growing *growing)
{
	struct why_aggregate *aggregate = making->aggregate;
	struct why_name *name = &aggregate->names.data[growing->name];
	struct why_sum sum = growing->sum;
	const char *object = strtab_get(making->why->texts, growing->object);
	uint32_t text = strtab_add(aggregate->texts, object, strlen(object));

	if (text == STRTAB_NONE)
		return false;
	sum.grade = why_weight_grade(&growing->weight);
	sum.comm = growing->comm ? strtab_get(making->model->strings, growing->comm) : NULL;
	sum.span = growing->span ? strtab_get(aggregate->texts, growing->span) : NULL;
	sum.object = strtab_get(aggregate->texts, text);
	sum.more_ns = (int64_t)(name->slow_count ? sum.slow_ns / name->slow_count : 0) -
		      (int64_t)(name->usual_count ? sum.usual_ns / name->usual_count : 0);
	if (!name->sum_count++)
		name->sum = (uint32_t)aggregate->sums.len;
	return vec_push(&aggregate->different, (uint32_t)aggregate->sums.len) &&
	       vec_push(&aggregate->sums, sum);
}

static bool finish(struct making *making)
{
	struct why_aggregate *aggregate = making->aggregate;
	size_t kept = 0;

	if (making->growing.len)
		qsort(making->growing.data, making->growing.len, sizeof(struct growing),
		      growing_compare);
	for (size_t i = 0; i < making->growing.len; i++)
		if (!add_sum(making, &making->growing.data[i]))
			return false;
	for (size_t i = 0; i < aggregate->names.len; i++) {
		struct why_name *name = &aggregate->names.data[i];

		if (!name->count)
			continue;
		name->different = name->sum;
		if (name->sum_count)
			qsort_r(aggregate->different.data + name->different, name->sum_count,
				sizeof(uint32_t), different_compare, aggregate->sums.data);
		aggregate->names.data[kept++] = *name;
	}
	aggregate->names.len = kept;
	if (kept)
		qsort(aggregate->names.data, kept, sizeof(struct why_name), name_compare);
	return true;
}

static int make(struct making *making)
{
	struct why_aggregate *aggregate = making->aggregate;
	size_t slots = (size_t)making->site_count + 1;
	int result;

	making->rows = malloc(slots * sizeof(*making->rows));
	making->site_texts = malloc(slots * sizeof(*making->site_texts));
	making->sum_counts = calloc(slots, sizeof(*making->sum_counts));
	making->why = why_alloc(making->model);
	if (!making->rows || !making->site_texts || !making->sum_counts || !making->why ||
	    !make_rows(making) || !find_groups(making) || !vec_reserve(&aggregate->different, 1))
		return -ENOMEM;
	result = why_walker_new(&making->walker, making->why, &making->data);
	if (!result)
		result = fold_all(making);
	if (!result && !finish(making))
		result = -ENOMEM;
	return result;
}

int why_aggregate_new(struct why_aggregate **out, const struct model *model,
		      const struct why_names *names, struct error *err)
{
	struct making making = {.aggregate = calloc(1, sizeof(**out)),
				.model = model,
				.site_count = store_reader_site_count(model->reader)};
	int result = -ENOMEM;

	*out = NULL;
	if (making.aggregate) {
		making.aggregate->model = model;
		making.aggregate->texts = strtab_new();
	}
	if (making.aggregate && making.aggregate->texts &&
	    !why_data_init(&making.data, model, names)) {
		result = make(&making);
		why_walker_free(making.walker);
		why_data_free(&making.data);
	}
	why_free(making.why);
	free(making.rows);
	free(making.site_texts);
	free(making.sum_counts);
	vec_free(&making.growing);
	map_free(&making.found);
	if (result) {
		why_aggregate_free(making.aggregate);
		return error_set(err, -result, "out of memory");
	}
	*out = making.aggregate;
	return 0;
}

void why_aggregate_free(struct why_aggregate *aggregate)
{
	if (!aggregate)
		return;
	strtab_free(aggregate->texts);
	vec_free(&aggregate->names);
	vec_free(&aggregate->sums);
	vec_free(&aggregate->different);
	free(aggregate);
}
