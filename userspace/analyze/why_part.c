// SPDX-License-Identifier: Apache-2.0
#include "analyze/why_internal.h"

#include <stdlib.h>

void parts_reset(struct why_parts *parts)
{
	parts->list.len = 0;
	parts->steps.len = 0;
	parts->weights.len = 0;
	map_free(&parts->found);
}

void parts_free(struct why_parts *parts)
{
	vec_free(&parts->list);
	vec_free(&parts->steps);
	vec_free(&parts->weights);
	map_free(&parts->found);
}

/* Spans of one site are one culprit: a loop's rounds are not told apart. */
static uint32_t site_of(const struct why_parts *parts, uint32_t span)
{
	return span == MODEL_NONE ? MODEL_NONE : parts->why->model->spans.data[span].site;
}

static bool same(const struct why_parts *parts, const struct why_part *part,
		 const struct why_stretch *stretch)
{
	return part->cause == stretch->cause && part->thread == stretch->thread &&
	       part->object == stretch->object &&
	       (part->span == MODEL_NONE) == (stretch->span == MODEL_NONE) &&
	       site_of(parts, part->span) == site_of(parts, stretch->span);
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	/* splitmix64's finalizer (Vigna 2015) */
	hash = (hash ^ value) * 0xbf58476d1ce4e5b9ull;
	return (hash ^ hash >> 31) * 0x94d049bb133111ebull;
}

/* The part of a stretch, added if new. MAP_NONE: out of memory. */
static uint32_t find(struct why_parts *parts, const struct why_stretch *stretch)
{
	uint64_t key =
		mix(mix(mix(stretch->cause, stretch->thread), stretch->object),
		    (uint64_t)site_of(parts, stretch->span) << 1 | (stretch->span == MODEL_NONE));
	uint32_t index;

	while ((index = map_get(&parts->found, key)) != MAP_NONE) {
		if (same(parts, &parts->list.data[index], stretch))
			return index;
		key++;
	}
	index = (uint32_t)parts->list.len;
	if (!vec_push(&parts->list, (struct why_part){.cause = stretch->cause,
						      .thread = stretch->thread,
						      .span = stretch->span,
						      .object = stretch->object}) ||
	    !vec_push(&parts->weights, (struct why_weight){0}) ||
	    !map_set(&parts->found, key, index))
		return MAP_NONE;
	return index;
}

bool parts_add(struct why_parts *parts, const struct why_stretch *stretch)
{
	uint32_t index = find(parts, stretch);
	struct why_weight *weight;
	struct why_part *part;

	if (index == MAP_NONE)
		return false;
	part = &parts->list.data[index];
	part->ns += stretch->ns;
	part->stretches++;
	weight = &parts->weights.data[index];
	weight->by_grade[stretch->grade] += stretch->ns;
	if (stretch->ns <= weight->longest_ns)
		return true;
	weight->longest_ns = stretch->ns;
	part->span = stretch->span;
	part->step = (uint32_t)parts->steps.len;
	part->step_count = stretch->step_count;
	for (uint32_t i = 0; i < stretch->step_count; i++)
		if (!vec_push(&parts->steps, stretch->steps[i]))
			return false;
	return true;
}

bool parts_move_running(struct why_parts *parts, uint32_t thread, const struct why_stretch *stretch)
{
	struct why_stretch moved = *stretch;

	for (size_t i = 0; i < parts->list.len; i++) {
		struct why_part *part = &parts->list.data[i];

		if (part->cause != WHY_RUNNING || part->thread != thread)
			continue;
		if (moved.ns > part->ns)
			moved.ns = part->ns;
		part->ns -= moved.ns;
		return !moved.ns || parts_add(parts, &moved);
	}
	return true;
}

enum why_grade why_weight_grade(const struct why_weight *weight)
{
	const uint64_t *ns = weight->by_grade;
	uint64_t all = ns[WHY_GRADE_UNKNOWN] + ns[WHY_GRADE_LIKELY] + ns[WHY_GRADE_CERTAIN];

	if (ns[WHY_GRADE_UNKNOWN] > all / 10)
		return WHY_GRADE_UNKNOWN;
	return ns[WHY_GRADE_UNKNOWN] + ns[WHY_GRADE_LIKELY] > all / 10 ? WHY_GRADE_LIKELY
								       : WHY_GRADE_CERTAIN;
}

static int part_compare(const void *left, const void *right)
{
	const struct why_part *a = left, *b = right;

	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	if (a->cause != b->cause)
		return a->cause < b->cause ? -1 : 1;
	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	return a->step < b->step ? -1 : a->step > b->step;
}

bool parts_finish(struct why_parts *parts, struct why_instance *instance)
{
	struct why *why = parts->why;

	for (size_t i = 0; i < parts->list.len; i++)
		parts->list.data[i].grade = why_weight_grade(&parts->weights.data[i]);
	if (parts->list.len)
		qsort(parts->list.data, parts->list.len, sizeof(struct why_part), part_compare);
	instance->part = (uint32_t)why->parts.len;
	instance->part_count = 0;
	for (size_t i = 0; i < parts->list.len; i++) {
		struct why_part part = parts->list.data[i];
		const struct why_step *steps = parts->steps.data + part.step;

		if (!part.ns)
			continue;
		part.step = (uint32_t)why->steps.len;
		for (uint32_t j = 0; j < part.step_count; j++)
			if (!vec_push(&why->steps, steps[j]))
				return false;
		if (!vec_push(&why->parts, part))
			return false;
		instance->part_count++;
	}
	return true;
}
