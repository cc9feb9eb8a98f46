// SPDX-License-Identifier: Apache-2.0
/* Spans that have one name on several ranks. */
#include <stdlib.h>
#include <string.h>

#include "analyze/origin/origin_internal.h"
#include "util/memory.h"
#include "util/search.h"

/* Number of spans of one rank that are compared with a span of another one. */
#define OVERLAPS_MAX 16

struct named_site {
	const char *name;
	uint32_t site;
};

static int site_compare(const void *left, const void *right)
{
	const struct named_site *a = left, *b = right;

	return strcmp(a->name, b->name);
}

/* Numbers the names of sites. The caller frees the result. */
static uint32_t *names_number(const struct model *model)
{
	uint32_t count = model_site_count(model), number = 0;
	uint32_t *numbers = memory_get(count * sizeof(*numbers));
	struct named_site *sites = memory_get(count * sizeof(*sites));

	for (uint32_t i = 0; i < count; i++)
		sites[i] = (struct named_site){model_site(model, i)->name, i};
	if (count)
		qsort(sites, count, sizeof(*sites), site_compare);
	for (uint32_t i = 0; i < count; i++) {
		number += i && strcmp(sites[i - 1].name, sites[i].name) != 0;
		numbers[sites[i].site] = number;
	}
	free(sites);
	return numbers;
}

static const struct model_process *process_find(const struct model *model, uint32_t pid)
{
	uint32_t index = map_get(&model->pids, pid);

	return index < model->processes.len ? &model->processes.data[index] : NULL;
}

static bool process_is_rank(const struct model *model, uint32_t pid)
{
	const struct model_process *process = process_find(model, pid);

	return process && process->rank != MODEL_NONE;
}

/* Whether two processes are different ranks of one job. A rank's children have its environment,
 * so they count as that rank. */
static bool are_other_ranks(const struct model *model, uint32_t pid, uint32_t other_pid)
{
	const struct model_process *process = process_find(model, pid);
	const struct model_process *other = process_find(model, other_pid);

	return process && other && process->rank != other->rank && process->job == other->job;
}

static int common_compare(const void *left, const void *right)
{
	const struct origin_common_span *a = left, *b = right;

	if (a->name != b->name)
		return a->name < b->name ? -1 : 1;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return a->span < b->span ? -1 : a->span > b->span;
}

/* Collects the program's own spans on ranks of a job. */
static void spans_collect(struct origin_index *index)
{
	const struct model *model = index->model;
	uint32_t *numbers = names_number(model);

	for (uint32_t i = 0; i < model->spans.len; i++) {
		const struct model_span *span = &model->spans.data[i];
		uint32_t pid = model->threads.data[span->thread].pid;

		if (span->site >= model_site_count(model) || model_site(model, span->site)->call ||
		    !process_is_rank(model, pid))
			continue;
		vec_add(&index->common.list,
			(struct origin_common_span){numbers[span->site], pid, i});
	}
	free(numbers);
	if (index->common.list.len)
		qsort(index->common.list.data, index->common.list.len,
		      sizeof(*index->common.list.data), common_compare);
}

/* The spans [*first, *end) of the list that have the name of the one at `at`. */
static void name_find(const struct origin_common *common, uint32_t at, size_t *first, size_t *end)
{
	uint32_t name = common->list.data[at].name;

	*first = lower_bound(common->list.len, i, common->list.data[i].name < name);
	*end = lower_bound(common->list.len, i, common->list.data[i].name <= name);
}

static void arrival_add(struct origin_index *index, uint32_t at)
{
	uint32_t span = index->common.list.data[at].span;
	const struct model_span *ended = &index->model->spans.data[span];
	struct origin_arrival arrival = {.ts = ended->end_ts,
					 .data_ts = ended->end_ts,
					 .owner = index->common.list.data[at].pid,
					 .collective = MODEL_NONE,
					 .call = span};

	vec_add(&index->by_process.list, arrival);
	arrival.owner = ended->end_thread;
	vec_add(&index->by_thread.list, arrival);
	arrival.owner = index->common.list.data[at].pid;
	arrival.ts = ended->start_ts;
	vec_add(&index->by_call.list, arrival);
}

/* Whether the capture has calls of NCCL or MPI, of any kind and matched or not. */
static bool has_calls(const struct model *model)
{
	for (size_t i = 0; i < model->spans.len; i++) {
		unsigned role = model_site(model, model->spans.data[i].site)->role;

		if (site_role_is_mpi(role) || site_role_is_nccl(role))
			return true;
	}
	return false;
}

void origin_common_init(struct origin_index *index)
{
	struct origin_common *common = &index->common;
	size_t count = index->model->spans.len, first, end;

	if (has_calls(index->model))
		return;
	spans_collect(index);
	common->place = memory_get(count * sizeof(*common->place));
	memset(common->place, 0xff, count * sizeof(*common->place));
	for (size_t i = 0; i < common->list.len; i = end) {
		name_find(common, (uint32_t)i, &first, &end);
		if (common->list.data[first].pid == common->list.data[end - 1].pid)
			continue;
		for (size_t at = first; at < end; at++) {
			common->place[common->list.data[at].span] = (uint32_t)at;
			arrival_add(index, (uint32_t)at);
		}
	}
}

void origin_common_free(struct origin_common *common)
{
	vec_free(&common->list);
	free(common->place);
}

bool origin_is_common(const struct origin_index *index, uint32_t span)
{
	return index->common.place && index->common.place[span] != MODEL_NONE;
}

/* Appends the spans of [first, end), all of one rank, that overlap a span. */
static void overlaps_find(const struct origin_index *index, const struct model_span *span,
			  size_t first, size_t end, origin_spans *found)
{
	const struct origin_common_span *list = index->common.list.data;
	const struct model_span *spans = index->model->spans.data;
	size_t at = first + lower_bound(end - first, i,
					spans[list[first + i].span].start_ts <= span->end_ts);

	for (size_t tries = 0; at > first && tries < OVERLAPS_MAX; tries++) {
		uint32_t other = list[--at].span;

		if (spans[other].end_ts >= span->start_ts)
			vec_add(found, other);
	}
}

void origin_common_find(const struct origin_index *index, uint32_t span, origin_spans *found)
{
	const struct origin_common_span *list = index->common.list.data;
	uint32_t at = index->common.place[span], own = list[at].pid;
	size_t first, end, next;

	name_find(&index->common, at, &first, &end);
	for (; first < end; first = next) {
		uint32_t pid = list[first].pid;

		next = first + lower_bound(end - first, i, list[first + i].pid <= pid);
		if (are_other_ranks(index->model, pid, own))
			overlaps_find(index, &index->model->spans.data[span], first, next, found);
	}
}
