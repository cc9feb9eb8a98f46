// SPDX-License-Identifier: Apache-2.0
/* Where and when data of other ranks arrived. */
#include <stdlib.h>

#include "analyze/origin/origin_internal.h"
#include "util/memory.h"
#include "util/search.h"

/* Number of arrivals among which the last one of a span is looked for first. */
#define NEAR 8

static bool has_one_sender(uint8_t flow)
{
	return flow == FLOW_PAIR || flow == FLOW_FROM_ROOT;
}

/* The index of the call that gave its data to all others; MODEL_NONE: there is none, or the capture
 * does not have it. */
static uint32_t sender_of(const struct model_collective *collective)
{
	uint32_t rank = collective->flow == FLOW_PAIR ? collective->from : collective->root;

	for (uint32_t i = 0; i < collective->count; i++)
		if (collective->calls[i].rank == rank && rank != MODEL_NONE)
			return i;
	return MODEL_NONE;
}

/* Whether a call receives data, also if the capture does not have the call that sends it. The root
 * of a broadcast has its own data. */
static bool receives(const struct model_collective *collective, uint32_t call)
{
	const struct model_rank_call *calls = collective->calls;
	uint32_t rank = calls[call].rank;

	if (collective->data == MODEL_DATA_NONE)
		return false;
	switch (collective->flow) {
	case FLOW_NONE:
		return false;
	case FLOW_PAIR:
		return rank != MODEL_NONE && rank == collective->to &&
		       sender_of(collective) != call;
	case FLOW_FROM_ROOT:
		return true;
	case FLOW_TO_ROOT:
		return rank != MODEL_NONE && rank == collective->root;
	case FLOW_PREFIX:
		return rank != MODEL_NONE && call && calls[0].rank < rank;
	default:
		return true;
	}
}

/* When the data had arrived, or the earliest such time if it is unknown. */
static struct origin_arrival arrival_of(const struct model *model,
					const struct model_collective *collective, uint32_t call)
{
	const struct model_rank_call *to = &collective->calls[call];
	struct origin_arrival arrival = {.ts = to->end_ts,
					 .call = call,
					 .many = MODEL_NONE,
					 .has_one_sender = has_one_sender(collective->flow),
					 .exact = to->end_ts != UINT64_MAX};
	uint64_t sent_ts;

	arrival.data_ts = arrival.ts;
	if (arrival.exact)
		return arrival;
	arrival.ts = arrival.data_ts = model->spans.data[to->span].end_ts;
	if (!arrival.has_one_sender || !collective->comparable ||
	    sender_of(collective) == MODEL_NONE)
		return arrival;
	sent_ts = collective->calls[sender_of(collective)].arrival_ts;
	if (sent_ts > arrival.ts)
		arrival.ts = arrival.data_ts = sent_ts;
	return arrival;
}

static void arrival_add(struct origin_index *index, uint32_t collective, uint32_t call)
{
	const struct model *model = index->model;
	const struct model_collective *at = model_collective_at(index->comm, collective);
	const struct model_rank_call *to = &at->calls[call];
	struct origin_arrival arrival = arrival_of(model, at, call);

	arrival.collective = collective;
	arrival.owner = to->pid;
	vec_add(&index->by_process.list, arrival);
	arrival.owner = to->end_span == MODEL_NONE ? to->thread
						   : model->spans.data[to->end_span].end_thread;
	vec_add(&index->by_thread.list, arrival);
	arrival.owner = to->pid;
	arrival.ts = model->spans.data[to->span].start_ts;
	vec_add(&index->by_call.list, arrival);
}

static int owner_compare(const void *left, const void *right)
{
	const struct origin_owner *a = left, *b = right;

	return (a->owner > b->owner) - (a->owner < b->owner);
}

static int arrival_compare(const void *left, const void *right)
{
	const struct origin_arrival *a = left, *b = right;

	if (a->owner != b->owner)
		return a->owner < b->owner ? -1 : 1;
	if (a->ts != b->ts)
		return a->ts < b->ts ? -1 : 1;
	if (a->collective != b->collective)
		return a->collective < b->collective ? -1 : 1;
	return a->call < b->call ? -1 : a->call > b->call;
}

/* Numbers the owners by size, and counts their arrivals. */
static void owners_find(struct origin_arrivals *arrivals)
{
	struct map numbers = {0};

	for (size_t i = 0; i < arrivals->list.len; i++) {
		uint32_t owner = arrivals->list.data[i].owner, at = map_get(&numbers, owner);

		if (at == MAP_NONE) {
			at = (uint32_t)arrivals->owners.len;
			map_put(&numbers, owner, at);
			vec_add(&arrivals->owners, (struct origin_owner){.owner = owner});
		}
		arrivals->owners.data[at].count++;
	}
	map_free(&numbers);
	if (arrivals->owners.len)
		qsort(arrivals->owners.data, arrivals->owners.len, sizeof(*arrivals->owners.data),
		      owner_compare);
	for (size_t i = 1; i < arrivals->owners.len; i++)
		arrivals->owners.data[i].first =
			arrivals->owners.data[i - 1].first + arrivals->owners.data[i - 1].count;
}

/* Puts the arrivals of each owner together, in the order in which they were added. */
static void owners_divide(struct origin_arrivals *arrivals)
{
	size_t count = arrivals->list.len, owners = arrivals->owners.len;
	struct origin_arrival *divided = memory_get(count * sizeof(*divided));
	size_t *next = memory_get(owners * sizeof(*next));
	struct map numbers = {0};

	for (size_t i = 0; i < owners; i++) {
		map_put(&numbers, arrivals->owners.data[i].owner, (uint32_t)i);
		next[i] = arrivals->owners.data[i].first;
	}
	for (size_t i = 0; i < count; i++)
		divided[next[map_get(&numbers, arrivals->list.data[i].owner)]++] =
			arrivals->list.data[i];
	map_free(&numbers);
	free(next);
	vec_free(&arrivals->list);
	arrivals->list.data = divided;
	arrivals->list.len = arrivals->list.cap = count;
}

/* The collectives of a communicator come in order, so the arrivals of an owner are often sorted
 * already. */
static void arrivals_sort(struct origin_arrivals *arrivals)
{
	struct origin_arrival *list;

	owners_find(arrivals);
	owners_divide(arrivals);
	list = arrivals->list.data;
	for (size_t i = 0; i < arrivals->owners.len; i++) {
		const struct origin_owner *of = &arrivals->owners.data[i];
		bool sorted = true;

		for (size_t at = of->first + 1; sorted && at < of->first + of->count; at++)
			sorted = arrival_compare(&list[at - 1], &list[at]) <= 0;
		if (!sorted)
			qsort(&list[of->first], of->count, sizeof(*list), arrival_compare);
	}
	for (size_t i = 0; i < arrivals->list.len; i++) {
		bool same = i && list[i - 1].owner == list[i].owner;

		list[i].directed = (same ? list[i - 1].directed : 0) + list[i].has_one_sender;
		list[i].many = !list[i].has_one_sender ? (uint32_t)i
			       : same                  ? list[i - 1].many
						       : MODEL_NONE;
	}
}

void origin_arrivals_init(struct origin_index *index)
{
	for (size_t i = 0; i < model_collective_count(index->comm); i++) {
		const struct model_collective *collective = model_collective_at(index->comm, i);

		for (uint32_t call = 0; call < collective->count; call++)
			if (receives(collective, call))
				arrival_add(index, (uint32_t)i, call);
	}
	origin_common_init(index);
	arrivals_sort(&index->by_process);
	arrivals_sort(&index->by_thread);
	arrivals_sort(&index->by_call);
}

void origin_arrivals_free(struct origin_arrivals *arrivals)
{
	vec_free(&arrivals->list);
	vec_free(&arrivals->owners);
}

bool origin_arrivals_find(const struct origin_arrivals *arrivals, uint32_t owner, uint64_t from_ts,
			  uint64_t to_ts, size_t *first, size_t *end)
{
	const struct origin_arrival *list = arrivals->list.data;
	const struct origin_owner *owners = arrivals->owners.data;
	size_t at = lower_bound(arrivals->owners.len, i, owners[i].owner < owner);
	size_t last, near;

	*first = *end = 0;
	if (at == arrivals->owners.len || owners[at].owner != owner)
		return false;
	last = owners[at].first + owners[at].count;
	*first = lower_bound_in(owners[at].first, last, i, list[i].ts < from_ts);
	/* A span has few arrivals, so the last one is mostly near the first one. */
	near = last - *first > NEAR ? *first + NEAR : last;
	*end = near < last && list[near].ts <= to_ts
		       ? lower_bound_in(near, last, i, list[i].ts <= to_ts)
		       : lower_bound_in(*first, near, i, list[i].ts <= to_ts);
	return *first < *end;
}
