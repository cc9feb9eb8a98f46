// SPDX-License-Identifier: Apache-2.0
#include "model/gpu/gpu_records.h"

#include <stdlib.h>
#include <string.h>

#include "model/gpu/gpu_timeline_values_internal.h"
#include "util/hash.h"
#include "util/memory.h"

/* In gpu_records.open: the span is no operation of a stream, and its end means nothing. */
#define OP_IGNORED (MAP_NONE - 1)

/* ---- what operations have ---- */

static bool text_is(const struct timeline_values *values, enum timeline_key key, const char *text)
{
	return timeline_has(values, key) && values->text_len[key] == strlen(text) &&
	       !memcmp(values->text[key], text, values->text_len[key]);
}

static unsigned op_kind(const struct timeline_values *values)
{
	for (unsigned kind = 0; kind < GPU_OP_KIND_COUNT; kind++)
		if (text_is(values, TIMELINE_OP, gpu_op_kind_names[kind]))
			return kind;
	return GPU_OP_KIND_COUNT;
}

static uint64_t number_or(const struct timeline_values *values, enum timeline_key key,
			  uint64_t unknown)
{
	return timeline_has(values, key) ? values->number[key] : unknown;
}

static enum gpu_wait_kind wait_kind(const struct timeline_values *values)
{
	if (text_is(values, TIMELINE_COPY, "stream"))
		return GPU_WAIT_STREAM;
	if (text_is(values, TIMELINE_COPY, "context"))
		return GPU_WAIT_CONTEXT;
	return text_is(values, TIMELINE_COPY, "event") ? GPU_WAIT_EVENT : GPU_WAIT_OTHER;
}

static bool stream_is(const struct gpu_record_stream *stream, const uint64_t key[4])
{
	return stream->pid == key[0] && stream->device == key[1] && stream->context == key[2] &&
	       stream->number == key[3];
}

static uint32_t stream_find(struct gpu_records *records, uint32_t thread,
			    const struct timeline_values *values)
{
	const uint64_t key[] = {records->model->threads.data[thread].pid,
				number_or(values, TIMELINE_DEVICE, GPU_RECORD_UNKNOWN),
				number_or(values, TIMELINE_CONTEXT, 0),
				number_or(values, TIMELINE_STREAM, GPU_RECORD_UNKNOWN)};
	size_t slot = hash_number(key[0] ^ key[1] << 8 ^ key[2] << 16 ^ key[3] << 24) >> 58;
	uint32_t found = records->recent[slot];

	if (found < records->streams.len && stream_is(&records->streams.data[found], key))
		return found;
	found = keymap_get(&records->stream_at, key, sizeof(key));
	if (found == MAP_NONE) {
		found = (uint32_t)records->streams.len;
		keymap_put(&records->stream_at, key, sizeof(key), found);
		vec_add(&records->streams, (struct gpu_record_stream){key[1], key[2], key[3],
								      (uint32_t)key[0], thread, 0});
	}
	records->recent[slot] = found;
	return found;
}
_Static_assert(GPU_RECORDS_RECENT == 1u << (64 - 58), "a slot has the upper bits of the hash");

/* The number of a direction, plus one; 0: unknown. */
static unsigned copy_find(struct gpu_records *records, const struct timeline_values *values)
{
	const char *text = values->text[TIMELINE_COPY];
	uint32_t len = values->text_len[TIMELINE_COPY], found;
	char *name;

	if (!timeline_has(values, TIMELINE_COPY) || !len)
		return 0;
	found = keymap_get(&records->copy_at, text, len);
	if (found == MAP_NONE) {
		if (records->copies.len == GPU_COPIES_MAX)
			return 0;
		found = (uint32_t)records->copies.len;
		name = memory_get(len + 1);
		memcpy(name, text, len);
		name[len] = 0;
		vec_add(&records->copies, name);
		keymap_put(&records->copy_at, text, len, found);
	}
	return found + 1;
}

static uint32_t node_add(struct gpu_records *records, const struct timeline_values *values)
{
	uint32_t index = (uint32_t)records->nodes.len;

	if (!timeline_has(values, TIMELINE_GRAPH_NODE))
		return MODEL_NONE;
	vec_add(&records->nodes, (struct gpu_record_node){timeline_has(values, TIMELINE_GRAPH)
								  ? values->number[TIMELINE_GRAPH]
								  : 0,
							  values->number[TIMELINE_GRAPH_NODE]});
	return index;
}

static void op_set(struct gpu_records *records, struct gpu_record_op *op, uint32_t thread,
		   const struct timeline_values *values)
{
	const uint64_t most = (1ull << 48) - 1;
	uint64_t bytes = timeline_has(values, TIMELINE_BYTES) ? values->number[TIMELINE_BYTES] : 0;

	op->bytes = bytes < most ? bytes : most;
	if (op->kind == GPU_OP_COPY)
		op->copy = copy_find(records, values) & 0xff;
	else if (op->kind == GPU_OP_WAIT)
		op->copy = wait_kind(values) & 0xff;
	op->stream = stream_find(records, thread, values);
	op->has_correlation = timeline_has(values, TIMELINE_CORRELATION) &&
			      values->number[TIMELINE_CORRELATION] <= UINT32_MAX;
	if (op->has_correlation)
		op->correlation = (uint32_t)values->number[TIMELINE_CORRELATION];
	op->node = node_add(records, values);
	op->graph =
		timeline_has(values, TIMELINE_GRAPH) || timeline_has(values, TIMELINE_GRAPH_NODE);
	op->clamped = timeline_has(values, TIMELINE_CLAMPED) && values->number[TIMELINE_CLAMPED];
}

/* Returns the index of the operation; OP_IGNORED: the span is none, or an unknown one. */
static uint32_t op_add(struct gpu_records *records, struct gpu_record_op op, uint32_t thread,
		       const struct timeline_values *values)
{
	unsigned kind = op_kind(values);

	op.placeless =
		!timeline_has(values, TIMELINE_DEVICE) || !timeline_has(values, TIMELINE_STREAM);
	/* A synchronisation of a context has no stream, and an early one no device. */
	if (kind == GPU_OP_KIND_COUNT || (op.placeless && kind != GPU_OP_WAIT)) {
		records->unknown_ops++;
		return OP_IGNORED;
	}
	op.kind = kind & 7;
	op_set(records, &op, thread, values);
	memory_require(records->op_count < OP_IGNORED);
	if (records->op_count % GPU_RECORDS_CHUNK == 0)
		vec_add(&records->chunks, memory_get(GPU_RECORDS_CHUNK * sizeof(op)));
	*gpu_record_op(records, records->op_count) = op;
	return (uint32_t)records->op_count++;
}

static uint32_t handle_find(struct gpu_records *records, const struct timeline_values *values)
{
	uint64_t handle = values->number[TIMELINE_HANDLE];

	if (!timeline_has(values, TIMELINE_HANDLE))
		return MODEL_NONE;
	if (records->handles.len && records->handles.data[records->last_handle] == handle)
		return records->last_handle;
	records->last_handle = map_get(&records->handle_at, handle);
	if (records->last_handle == MAP_NONE) {
		records->last_handle = (uint32_t)records->handles.len;
		map_put(&records->handle_at, handle, records->last_handle);
		vec_add(&records->handles, handle);
	}
	return records->last_handle;
}

static void launch_add(struct gpu_records *records, const struct gpu_record_launch *launch,
		       const struct timeline_values *values)
{
	struct gpu_record_launch *added;
	uint64_t correlation = values->number[TIMELINE_CORRELATION];

	/* CUPTI's ids have 32 bits. */
	if (!timeline_has(values, TIMELINE_CORRELATION) || correlation > UINT32_MAX)
		return;
	memory_require(records->launches.len < MODEL_NONE);
	vec_add(&records->launches, *launch);
	added = &records->launches.data[records->launches.len - 1];
	added->correlation = (uint32_t)correlation;
	added->handle = handle_find(records, values);
}

/* ---- records of a capture ---- */

/* Notes that a span has no end so far. */
static void open_add(struct gpu_records *records, uint64_t id, uint32_t op)
{
	if (records->last_id)
		map_put(&records->open, records->last_id, records->last_op);
	records->last_id = id;
	records->last_op = op;
}

/* The operation of a span without an end so far; MAP_NONE: there is none. */
static uint32_t open_take(struct gpu_records *records, uint64_t id)
{
	if (id && id == records->last_id) {
		records->last_id = 0;
		return records->last_op;
	}
	return records->open.len ? map_remove(&records->open, id) : MAP_NONE;
}

static void op_begin(struct gpu_records *records, const struct gpu_record_hit *hit,
		     const struct timeline_values *values)
{
	uint32_t ended = records->ended.len ? map_remove(&records->ended, hit->id) : MAP_NONE;
	struct gpu_record_op op = {.start_ts = hit->ts,
				   .end_ts = GPU_RECORD_OPEN,
				   .site = hit->site,
				   .span = MODEL_NONE};
	uint32_t index;

	if (ended != MAP_NONE && records->ends.data[ended] >= hit->ts)
		op.end_ts = records->ends.data[ended];
	else if (ended != MAP_NONE)
		records->unknown_ops++;
	index = op_add(records, op, hit->thread, values);
	if (op.end_ts == GPU_RECORD_OPEN)
		open_add(records, hit->id, index);
}

bool gpu_records_hit(struct gpu_records *records, const struct gpu_record_hit *hit)
{
	const struct timeline_site *site = timeline_site(records->sites, hit->site);
	struct gpu_record_launch launch = {.ts = hit->ts,
					   .parent_id = hit->parent_id,
					   .event = MODEL_NONE,
					   .thread = hit->thread};
	struct timeline_values values;

	if (site->kind != TIMELINE_SITE_OP && site->kind != TIMELINE_SITE_LAUNCH)
		return false;
	timeline_values_read(
		site,
		value_walk_from(model_site(records->model, hit->site), 0, hit->values, hit->bytes),
		&values);
	if (site->kind == TIMELINE_SITE_OP)
		op_begin(records, hit, &values);
	else
		launch_add(records, &launch, &values);
	return true;
}

bool gpu_records_end(struct gpu_records *records, struct gpu_record_end *end)
{
	uint32_t index = open_take(records, end->id);
	struct gpu_record_op *op;

	end->thread = MODEL_NONE;
	if (index == MAP_NONE) {
		if (timeline_site(records->sites, end->site)->kind != TIMELINE_SITE_OP)
			return false;
		map_put(&records->ended, end->id, (uint32_t)records->ends.len);
		vec_add(&records->ends, end->ts);
		return true;
	}
	if (index == OP_IGNORED)
		return true;
	op = gpu_record_op(records, index);
	end->thread = records->streams.data[op->stream].thread;
	records->bad_records += end->ts < op->start_ts; /* kept, with length zero */
	op->end_ts = end->ts < op->start_ts ? op->start_ts : end->ts;
	return true;
}

/* ---- spans and events of a model ---- */

static void span_add(struct gpu_records *records, uint32_t index)
{
	const struct model_span *span = &records->model->spans.data[index];
	struct gpu_record_op op = {.start_ts = span->start_ts,
				   .end_ts = span->flags & MODEL_SPAN_CUT ? GPU_RECORD_OPEN
									  : span->end_ts,
				   .site = span->site,
				   .span = index};
	struct timeline_values values;

	timeline_values_read(timeline_site(records->sites, span->site),
			     model_values(records->model, span->site, span->frame), &values);
	op_add(records, op, span->thread, &values);
}

static void event_add(struct gpu_records *records, uint32_t index)
{
	const struct model_event *event = &records->model->events.data[index];
	struct gpu_record_launch launch = {
		.ts = event->ts, .event = index, .thread = event->thread};
	struct timeline_values values;

	timeline_values_read(timeline_site(records->sites, event->site),
			     model_values(records->model, event->site, event->frame), &values);
	launch_add(records, &launch, &values);
}

struct gpu_records *gpu_records_of(const struct model *model)
{
	struct gpu_records *records = gpu_records_new(model);

	for (size_t i = 0; records && i < model->spans.len; i++)
		if (timeline_site(records->sites, model->spans.data[i].site)->kind ==
		    TIMELINE_SITE_OP)
			span_add(records, (uint32_t)i);
	for (size_t i = 0; records && i < model->events.len; i++)
		if (timeline_site(records->sites, model->events.data[i].site)->kind ==
		    TIMELINE_SITE_LAUNCH)
			event_add(records, (uint32_t)i);
	return records;
}

struct gpu_records *gpu_records_new(const struct model *model)
{
	struct timeline_sites *sites = timeline_sites_find(model);
	struct gpu_records *records;

	if (!sites)
		return NULL;
	records = memory_zeroed(1, sizeof(*records));
	records->model = model;
	records->sites = sites;
	return records;
}

void gpu_records_free(struct gpu_records *records)
{
	if (!records)
		return;
	timeline_sites_free(records->sites);
	for (size_t i = 0; i < records->chunks.len; i++)
		free(records->chunks.data[i]);
	for (size_t i = 0; i < records->copies.len; i++)
		free((char *)records->copies.data[i]);
	vec_free(&records->chunks);
	vec_free(&records->copies);
	vec_free(&records->handles);
	vec_free(&records->launches);
	vec_free(&records->nodes);
	vec_free(&records->streams);
	vec_free(&records->ends);
	keymap_free(&records->stream_at);
	keymap_free(&records->copy_at);
	map_free(&records->handle_at);
	map_free(&records->open);
	map_free(&records->ended);
	free(records);
}
