// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/parts/why_merge.h"

#include <stdlib.h>

#include "analyze/why/lookup/why_wait.h"
#include "analyze/why/parts/why_connections.h"
#include "analyze/why/parts/why_idle.h"
#include "analyze/why/parts/why_polls.h"
#include "util/memory.h"

/* A part of an instance, with what decides whether it is merged with another. */
struct merge_row {
	const struct why_part *part;
	uint32_t comm;    /* the culprit's name; MODEL_NONE: none */
	bool own;         /* the culprit is the instance's thread */
	uint32_t server;  /* text of all connections to the same server; 0: it is none */
	uint32_t unnamed; /* as wait_unnamed() says of its object */
};

static int compare(uint32_t a, uint32_t b)
{
	return a < b ? -1 : a > b;
}

/* The object of all parts that stand for many small objects: each thread has other ones, so that
 * their texts always differ. */
#define MANY_OBJECTS UINT32_MAX

static uint32_t object_of(const struct merge_row *row)
{
	if (row->server)
		return row->server;
	if (row->part->objects > 1)
		return MANY_OBJECTS;
	return row->unnamed ?: row->part->object;
}

/* 0: they are merged. */
static int rows_compare_kind(const struct merge_row *a, const struct merge_row *b)
{
	return compare(a->part->cause, b->part->cause)
		       ?: compare(a->own, b->own)
			       ?: compare(a->part->idle, b->part->idle)
			       ?: compare(a->part->capture, b->part->capture)
				       ?: compare(a->comm, b->comm)
					       ?: compare(object_of(a), object_of(b));
}

static int rows_compare(const void *left, const void *right)
{
	const struct merge_row *a = left, *b = right;

	return rows_compare_kind(a, b) ?: compare(a->part->thread, b->part->thread);
}

static struct why_idle_time time_of(const struct why_merged_part *part)
{
	return (struct why_idle_time){part->cause, part->idle, part->capture, part->ns};
}

static int comes_first(const void *left, const void *right, void *order)
{
	const struct why_merged_part *a = left, *b = right;
	const struct why_idle_time of_a = time_of(a), of_b = time_of(b);

	return why_idle_compare(&of_a, &of_b, order) ?: compare(a->thread, b->thread);
}

/* Adds up the samples of rows of one kind. */
static void rows_add_places(struct why_merged *merged, struct why_merged_part *sum,
			    const struct why *why, const struct merge_row *rows, size_t count)
{
	sample_counts places = {0};

	for (size_t i = 0; i < count; i++)
		for (uint32_t k = 0; k < rows[i].part->place_count; k++)
			sample_counts_add(&places, &why->places.data[rows[i].part->place + k]);
	sample_counts_finish(&places);
	sum->place = (uint32_t)merged->places.len;
	sum->place_count = (uint32_t)places.len;
	for (size_t i = 0; i < places.len; i++)
		vec_add(&merged->places, places.data[i]);
	vec_free(&places);
}

/* The neighbour of rows of one kind: of those of one name, that with the most bytes. */
static struct why_neighbour rows_neighbour(const struct model *model, const struct merge_row *rows,
					   size_t count, uint64_t ns)
{
	struct why_neighbour names[WHY_NEIGHBOURS_MAX] = {0}, most = {.bytes = 0};
	unsigned len = 0;

	for (size_t i = 0; i < count; i++) {
		const struct why_neighbour *more = &rows[i].part->neighbour;
		unsigned at = 0;

		while (at < len && more->bytes &&
		       model->threads.data[names[at].thread].comm !=
			       model->threads.data[more->thread].comm)
			at++;
		if (!more->bytes || at == WHY_NEIGHBOURS_MAX)
			continue;
		if (at == len)
			names[len++].thread = more->thread;
		names[at].bytes += more->bytes;
		names[at].ns += more->ns;
	}
	for (unsigned i = 0; i < len; i++)
		if (names[i].bytes > most.bytes && why_neighbour_counts(&names[i], ns))
			most = names[i];
	return most;
}

/* Counts the connections of rows of one kind. Instances may share some of those that they have
 * several of, so there are at least that many. */
static void rows_add_connections(struct why_merged_part *sum, const struct merge_row *rows,
				 size_t count)
{
	struct map single = {0};

	for (size_t i = 0; i < count; i++) {
		if (rows[i].part->connections > sum->connections)
			sum->connections = rows[i].part->connections;
		if (rows[i].server && !rows[i].part->connections)
			map_put(&single, rows[i].part->object, 1);
	}
	if (single.len > 1 && single.len > sum->connections)
		sum->connections = (uint32_t)single.len;
	if (sum->connections)
		sum->object = rows->server;
	map_free(&single);
}

/* The object of rows of one kind that have none with a name: the one with the most time, and how
 * many others there are. */
static uint32_t rows_unnamed(struct strtab *texts, const struct merge_row *rows, size_t count)
{
	const struct why_part *most = rows->part;
	struct map seen = {0};
	uint32_t object;

	for (size_t i = 0; i < count; i++) {
		map_put(&seen, rows[i].part->object, 1);
		if (rows[i].part->ns > most->ns)
			most = rows[i].part;
	}
	object = seen.len > 1 ? wait_unnamed_text(texts, most->object, seen.len) : most->object;
	map_free(&seen);
	return object;
}

/* Adds rows of one kind, which are sorted by culprit. */
static struct why_merged_part rows_add(const struct why *why, const struct merge_row *rows,
				       size_t count)
{
	const struct why_part *first = rows->part;
	struct why_merged_part sum = {.cause = first->cause,
				      .own = rows->own,
				      .idle = first->idle,
				      .capture = first->capture,
				      .thread = first->thread,
				      .object = first->object};
	uint64_t of_thread = 0, most = 0;

	for (size_t i = 0; i < count; i++) {
		const struct why_part *part = rows[i].part;

		if (i && part->thread != rows[i - 1].part->thread)
			of_thread = 0;
		if (!of_thread && part->thread != MODEL_NONE && !rows[i].own)
			sum.threads += part->threads > 1 ? part->threads : 1;
		of_thread += part->ns;
		if (of_thread > most) {
			most = of_thread;
			sum.thread = part->thread;
		}
		sum.ns += part->ns;
		sum.pool_wait_ns += part->pool_wait_ns;
		sum.stretches += part->stretches;
		why_polls_add(&sum.polls, &part->polls);
		sum.grade_ns[part->grade] += part->ns;
	}
	if (!why_polls_are(&sum.polls, sum.stretches, sum.ns))
		sum.polls = (struct why_polls){0};
	rows_add_connections(&sum, rows, count);
	if (rows->unnamed && object_of(rows) == rows->unnamed)
		sum.object = rows_unnamed(why->texts, rows, count);
	sum.neighbour = rows_neighbour(why->model, rows, count, sum.ns);
	sum.grade = why_grade_of(sum.grade_ns, sum.ns);
	return sum;
}

static struct merge_row *rows_new(const struct why *why, struct why_merged *merged)
{
	const struct model *model = why->model;
	struct merge_row *rows = memory_zeroed(why->parts.len + 1, sizeof(*rows)), *at = rows;

	for (uint32_t i = 0; i < why->instances.len; i++) {
		const struct why_instance *instance = &why->instances.data[i];

		merged->ns += instance->to_ts - instance->from_ts;
		merged->running_ns += instance->running_ns;
		merged->runnable_ns += instance->runnable_ns;
		merged->blocked_ns += instance->blocked_ns;
		merged->unknown_ns += instance->unknown_ns;
		for (uint32_t k = 0; k < instance->part_count; k++) {
			const struct why_part *part = &why->parts.data[instance->part + k];
			bool own = part->thread == instance->thread;
			uint32_t server = part->connections
						  ? part->object
						  : why_connections_to(why->texts, part->object);

			*at++ = (struct merge_row){
				part,
				own || part->thread >= model->threads.len
					? MODEL_NONE
					: model_thread_kind(model, part->thread),
				own, server,
				wait_unnamed(why->texts, part->object, why_is_lock(part->cause))};
		}
	}
	return rows;
}

void why_merge(struct why_merged *merged, const struct why *why)
{
	struct merge_row *rows;
	struct why_idle_order order;
	uint64_t capture_ns = 0;
	bool idle = false;
	size_t count = 0;

	*merged = (struct why_merged){0};
	rows = rows_new(why, merged);
	for (size_t i = 0; i < why->instances.len; i++)
		count += why->instances.data[i].part_count;
	if (count)
		qsort(rows, count, sizeof(*rows), rows_compare);
	for (size_t i = 0, end; i < count; i = end) {
		struct why_merged_part sum;

		for (end = i + 1; end < count && !rows_compare_kind(&rows[i], &rows[end]);)
			end++;
		sum = rows_add(why, &rows[i], end - i);
		rows_add_places(merged, &sum, why, &rows[i], end - i);
		vec_add(&merged->parts, sum);
		idle |= rows[i].part->idle;
		for (size_t k = i; k < end; k++)
			capture_ns += rows[k].part->capture ? rows[k].part->ns : 0;
	}
	free(rows);
	order = why_idle_order(idle, merged->ns, capture_ns);
	if (merged->parts.len)
		qsort_r(merged->parts.data, merged->parts.len, sizeof(*merged->parts.data),
			comes_first, &order);
}

void why_merged_free(struct why_merged *merged)
{
	vec_free(&merged->parts);
	vec_free(&merged->places);
}
