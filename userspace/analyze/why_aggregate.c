// SPDX-License-Identifier: Apache-2.0
#include "analyze/why_aggregate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Causes of a name that are told apart by their culprit; beyond, by themselves only. */
#define CAUSES_MAX 64

struct duration {
	uint32_t group;
	uint64_t ns;
};

struct gather {
	struct why_aggregate *aggregate;
	uint32_t *groups; /* of each site, and last of spans without one */
	uint32_t sites;
};

static uint32_t group_of(const struct gather *gather, const struct model_span *span)
{
	return gather->groups[span->site < gather->sites ? span->site : gather->sites];
}

static bool is_whole(const struct model_span *span)
{
	return !(span->flags & (MODEL_SPAN_BEGUN_BEFORE | MODEL_SPAN_UNFINISHED));
}

/* ---- groups ---- */

static bool groups_make(struct gather *gather)
{
	struct why_aggregate *aggregate = gather->aggregate;

	gather->sites = store_reader_site_count(aggregate->model->reader);
	gather->groups = malloc((gather->sites + 1) * sizeof(*gather->groups));
	if (!gather->groups)
		return false;
	for (uint32_t i = 0; i <= gather->sites; i++) {
		const struct site_info *site = model_site(aggregate->model, i);
		struct why_group group = {.name = site->name, .category = site->category};
		size_t at;

		for (at = 0; at < aggregate->groups.len; at++)
			if (!strcmp(aggregate->groups.data[at].name, group.name) &&
			    !strcmp(aggregate->groups.data[at].category, group.category))
				break;
		if (at == aggregate->groups.len && !vec_push(&aggregate->groups, group))
			return false;
		gather->groups[i] = (uint32_t)at;
	}
	return true;
}

static int duration_compare(const void *left, const void *right)
{
	const struct duration *a = left, *b = right;

	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	return a->ns < b->ns ? -1 : a->ns > b->ns;
}

/* By nearest rank. */
static uint64_t percentile(const struct duration *sorted, uint64_t count, unsigned percent)
{
	uint64_t rank = (count * percent + 99) / 100;

	return sorted[rank ? rank - 1 : 0].ns;
}

static bool percentiles_find(struct gather *gather)
{
	const struct model *model = gather->aggregate->model;
	struct duration *sorted = malloc((model->spans.len + 1) * sizeof(*sorted));
	size_t count = 0, end;

	if (!sorted)
		return false;
	for (size_t i = 0; i < model->spans.len; i++) {
		const struct model_span *span = &model->spans.data[i];

		if (is_whole(span))
			sorted[count++] = (struct duration){group_of(gather, span),
							    span->end_ts - span->start_ts};
	}
	qsort(sorted, count, sizeof(*sorted), duration_compare);
	for (size_t begin = 0; begin < count; begin = end) {
		struct why_group *group = &gather->aggregate->groups.data[sorted[begin].group];

		for (end = begin; end < count && sorted[end].group == sorted[begin].group; end++)
			group->total_ns += sorted[end].ns;
		group->count = end - begin;
		group->p40_ns = percentile(&sorted[begin], group->count, 40);
		group->p60_ns = percentile(&sorted[begin], group->count, 60);
		group->p99_ns = percentile(&sorted[begin], group->count, 99);
	}
	free(sorted);
	return true;
}

/* ---- causes ---- */

static struct why_group_cause *cause_find(struct why_group *group, struct why_group_cause key)
{
	for (size_t i = 0; i < group->causes.len; i++) {
		struct why_group_cause *cause = &group->causes.data[i];

		if (cause->cause == key.cause && cause->comm == key.comm && cause->site == key.site)
			return cause;
	}
	if (group->causes.len >= CAUSES_MAX && (key.comm || key.site != MODEL_NONE))
		return cause_find(group, (struct why_group_cause){.cause = key.cause,
								  .grade = key.grade,
								  .site = MODEL_NONE,
								  .most = MODEL_NONE,
								  .last = MODEL_NONE});
	return vec_push(&group->causes, key) ? &group->causes.data[group->causes.len - 1] : NULL;
}

static int add_part(struct why_group *group, const struct model *model, uint32_t span,
		    const struct why_part *part)
{
	uint64_t ns = model->spans.data[span].end_ts - model->spans.data[span].start_ts;
	struct why_group_cause key = {
		.cause = part->cause, .grade = part->grade, .site = MODEL_NONE, .most = MODEL_NONE};
	struct why_group_cause *cause;

	if (part->thread < model->threads.len)
		key.comm = model->threads.data[part->thread].comm;
	if (part->span < model->spans.len)
		key.site = model->spans.data[part->span].site;
	cause = cause_find(group, key);
	if (!cause)
		return -ENOMEM;
	cause->total_ns += part->ns;
	if (cause->last != span)
		cause->spans++;
	cause->last = span;
	if (part->grade < cause->grade)
		cause->grade = part->grade;
	if (ns >= group->p99_ns)
		cause->slow_ns += part->ns;
	if (ns >= group->p40_ns && ns <= group->p60_ns)
		cause->median_ns += part->ns;
	if (part->ns > cause->most_ns) {
		cause->most_ns = part->ns;
		cause->most = span;
	}
	return 0;
}

static int add_instance(const struct why *why, const struct why_instance *instance, void *arg)
{
	const struct gather *gather = arg;
	const struct model_span *span = &why->model->spans.data[instance->span];
	uint64_t ns = span->end_ts - span->start_ts;
	struct why_group *group;
	int result = 0;

	if (!is_whole(span))
		return 0;
	group = &gather->aggregate->groups.data[group_of(gather, span)];
	group->with_loss += instance->loss;
	if (ns >= group->p99_ns) {
		group->slow_count++;
		group->slow_total_ns += ns;
	}
	if (ns >= group->p40_ns && ns <= group->p60_ns) {
		group->median_count++;
		group->median_total_ns += ns;
	}
	for (uint32_t i = 0; i < instance->part_count && !result; i++)
		result = add_part(group, why->model, instance->span,
				  &why->parts.data[instance->part + i]);
	return result;
}

/* ---- order ---- */

static int cause_compare(const void *left, const void *right)
{
	const struct why_group_cause *a = left, *b = right;

	if (a->total_ns != b->total_ns)
		return a->total_ns > b->total_ns ? -1 : 1;
	if (a->cause != b->cause)
		return a->cause < b->cause ? -1 : 1;
	return a->comm < b->comm ? -1 : a->comm > b->comm;
}

static int group_compare(const void *left, const void *right)
{
	const struct why_group *a = left, *b = right;

	if (a->total_ns != b->total_ns)
		return a->total_ns > b->total_ns ? -1 : 1;
	return strcmp(a->name, b->name);
}

static void sort(struct why_aggregate *aggregate)
{
	size_t kept = 0;

	for (size_t i = 0; i < aggregate->groups.len; i++) {
		struct why_group *group = &aggregate->groups.data[i];

		if (group->causes.len)
			qsort(group->causes.data, group->causes.len, sizeof(*group->causes.data),
			      cause_compare);
		if (group->count)
			aggregate->groups.data[kept++] = *group;
	}
	aggregate->groups.len = kept;
	if (kept)
		qsort(aggregate->groups.data, kept, sizeof(*aggregate->groups.data), group_compare);
}

int why_aggregate_new(struct why_aggregate **aggregate, const struct model *model,
		      struct error *err)
{
	struct why_aggregate *made = calloc(1, sizeof(*made));
	struct gather gather = {.aggregate = made};
	int result = -ENOMEM;

	*aggregate = NULL;
	if (!made)
		return error_set(err, ENOMEM, "out of memory");
	made->model = model;
	if (groups_make(&gather) && percentiles_find(&gather))
		result = why_each(model, &(struct why_query){0}, add_instance, &gather, err);
	else
		error_set(err, ENOMEM, "out of memory");
	free(gather.groups);
	if (result) {
		why_aggregate_free(made);
		return result;
	}
	sort(made);
	*aggregate = made;
	return 0;
}

void why_aggregate_free(struct why_aggregate *aggregate)
{
	if (!aggregate)
		return;
	for (size_t i = 0; i < aggregate->groups.len; i++)
		vec_free(&aggregate->groups.data[i].causes);
	vec_free(&aggregate->groups);
	free(aggregate);
}

int64_t why_group_difference(const struct why_group *group, const struct why_group_cause *cause)
{
	uint64_t slow = group->slow_count ? cause->slow_ns / group->slow_count : 0;
	uint64_t median = group->median_count ? cause->median_ns / group->median_count : 0;

	return (int64_t)slow - (int64_t)median;
}
