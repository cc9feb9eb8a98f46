// SPDX-License-Identifier: Apache-2.0
#include "model/gpu.h"

#include <stdlib.h>
#include <string.h>

#include "model/gpu_internal.h"

/* Handles of the default streams in the CUDA headers. */
#define STREAM_LEGACY 1
#define STREAM_PER_THREAD 2

#define NCCL_IN_PROGRESS 7

#define STREAMS_MAX 256 /* of a process, that its synchronisations are looked for in */
#define SYNCS_LOOKED_AT 32
#define WAITS_MAX 8

static const char *const key_names[] = {
	[GPU_STREAM] = "stream", [GPU_EVENT] = "event",       [GPU_COMM] = "comm",
	[GPU_RANK] = "rank",     [GPU_NRANKS] = "nranks",     [GPU_SEQ] = "seq",
	[GPU_COUNT] = "count",   [GPU_DATATYPE] = "datatype", [GPU_OP] = "op",
	[GPU_ROOT] = "root",     [GPU_PEER] = "peer",         [GPU_FLAGS] = "flags",
	[GPU_RESULT] = "result",
};
_Static_assert(sizeof(key_names) / sizeof(key_names[0]) == GPU_KEY_COUNT, "a name a key");

/* ---- sites and values ---- */

static void site_set(struct gpu_site *to, const struct site_info *site)
{
	to->role = site->role;
	for (unsigned key = 0; key < GPU_KEY_COUNT; key++) {
		to->keys[key] = GPU_KEY_NONE;
		for (unsigned i = 0; i < site->key_count && i < WAFFLE_KEYS_MAX; i++)
			if (to->keys[key] == GPU_KEY_NONE &&
			    !strcmp(site->keys[i].name, key_names[key]))
				to->keys[key] = (uint8_t)i;
	}
}

const struct gpu_site *gpu_site(const struct model_gpu *gpu, uint32_t site)
{
	uint32_t count = model_site_count(gpu->model);

	return &gpu->sites[site < count ? site : count];
}

bool gpu_value(const struct model_gpu *gpu, uint32_t site, uint32_t frame, enum gpu_key key,
	       struct value *value)
{
	struct value_walk walk = model_values(gpu->model, site, frame);
	unsigned key_index = gpu_site(gpu, site)->keys[key];

	if (key_index == GPU_KEY_NONE)
		return false;
	while (value_walk_next(&walk, value))
		if (!key_index--)
			return true;
	return false;
}

uint64_t gpu_number(const struct model_gpu *gpu, uint32_t site, uint32_t frame, enum gpu_key key,
		    uint64_t missing)
{
	struct value value;

	if (!gpu_value(gpu, site, frame, key, &value) || value.type == WAFFLE_KEY_STR ||
	    value.type == WAFFLE_KEY_DIM3)
		return missing;
	return value.u64;
}

/* NCCL's calls of a communicator that does not block return with the work under way. */
static bool may_be_in_progress(unsigned role)
{
	return gpu_role_communicates(role) || role == SITE_ROLE_COMM_INIT ||
	       role == SITE_ROLE_GROUP_START || role == SITE_ROLE_GROUP_END;
}

bool model_gpu_failed(const struct model_gpu *gpu, uint32_t span)
{
	const struct model_span *at;
	uint64_t result;

	if (!gpu || span >= gpu->model->spans.len)
		return false;
	at = &gpu->model->spans.data[span];
	if (gpu_site(gpu, at->site)->role == SITE_ROLE_NONE)
		return false;
	result = gpu_number(gpu, at->site, at->frame, GPU_RESULT, 0);
	return result &&
	       !(result == NCCL_IN_PROGRESS && may_be_in_progress(gpu_site(gpu, at->site)->role));
}

bool model_gpu_value(const struct model *model, uint8_t node, uint32_t index, const char *key,
		     struct value *value)
{
	struct value_walk walk;

	if (node == MODEL_NODE_SPAN && index < model->spans.len)
		walk = model_values(model, model->spans.data[index].site,
				    model->spans.data[index].frame);
	else if (node == MODEL_NODE_EVENT && index < model->events.len)
		walk = model_values(model, model->events.data[index].site,
				    model->events.data[index].frame);
	else
		return false;
	while (value_walk_next(&walk, value))
		if (!strcmp(value->key->name, key))
			return true;
	return false;
}

/* ---- channels ---- */

static uint64_t channel_hash(enum channel_kind kind, uint32_t pid, uint64_t handle, uint32_t thread)
{
	uint64_t hash = handle * 0x9e3779b97f4a7c15ull;

	hash = (hash ^ hash >> 29 ^ pid) * 0xbf58476d1ce4e5b9ull;
	return (hash ^ hash >> 32 ^ (uint64_t)thread << 2 ^ kind) * 0x94d049bb133111ebull;
}

uint32_t gpu_channel(const struct model_gpu *gpu, enum channel_kind kind, uint32_t pid,
		     uint64_t handle, uint32_t thread)
{
	uint32_t i = map_get(&gpu->channel_hash, channel_hash(kind, pid, handle, thread));

	for (; i != MODEL_NONE; i = gpu->channels.data[i].next) {
		const struct channel *channel = &gpu->channels.data[i];

		if (channel->kind == kind && channel->pid == pid && channel->handle == handle &&
		    channel->thread == thread)
			return i;
	}
	return MODEL_NONE;
}

uint32_t gpu_stream(const struct model_gpu *gpu, uint32_t pid, uint64_t stream, uint32_t thread)
{
	if (stream == STREAM_PER_THREAD)
		return gpu_channel(gpu, CHANNEL_STREAM, pid, stream, thread + 1);
	return gpu_channel(gpu, CHANNEL_STREAM, pid, stream == STREAM_LEGACY ? 0 : stream, 0);
}

uint32_t gpu_channel_add(struct model_gpu *gpu, enum channel_kind kind, uint32_t pid,
			 uint64_t handle, uint32_t thread)
{
	uint64_t hash;
	uint32_t found;
	struct channel channel = {.handle = handle,
				  .pid = pid,
				  .kind = kind,
				  .sibling = MODEL_NONE,
				  .last = MODEL_NONE};

	if (kind == CHANNEL_STREAM && handle == STREAM_PER_THREAD)
		channel.thread = thread + 1;
	if (kind == CHANNEL_STREAM && handle == STREAM_LEGACY)
		channel.handle = 0;
	found = gpu_channel(gpu, kind, pid, channel.handle, channel.thread);
	if (found != MODEL_NONE)
		return found;
	hash = channel_hash(kind, pid, channel.handle, channel.thread);
	channel.next = map_get(&gpu->channel_hash, hash);
	found = (uint32_t)gpu->channels.len;
	if (kind == CHANNEL_STREAM) {
		channel.sibling = map_get(&gpu->streams, pid);
		if (!map_set(&gpu->streams, pid, found))
			return MODEL_NONE;
	}
	if (!map_set(&gpu->channel_hash, hash, found) || !vec_push(&gpu->channels, channel))
		return MODEL_NONE;
	return found;
}

/* ---- ops ---- */

static struct model_gpu_op op_of(const struct model_gpu *gpu, uint32_t node)
{
	const struct model *model = gpu->model;
	struct model_gpu_op op = {.node = MODEL_NODE_SPAN, .index = node};
	uint32_t site, frame, group_end;

	if (node < model->spans.len) {
		const struct model_span *span = &model->spans.data[node];

		op.ts = span->start_ts;
		op.thread = span->thread;
		site = span->site;
		frame = span->frame;
		group_end = map_get(&gpu->grouped, node);
		if (group_end != MAP_NONE)
			op.ts = model->spans.data[group_end].start_ts;
	} else {
		const struct model_event *event = &model->events.data[node - model->spans.len];

		op.node = MODEL_NODE_EVENT;
		op.index = node - (uint32_t)model->spans.len;
		op.ts = event->ts;
		op.thread = event->thread;
		site = event->site;
		frame = event->frame;
	}
	op.role = gpu_site(gpu, site)->role;
	op.pid = model->threads.data[op.thread].pid;
	op.stream = gpu_number(gpu, site, frame, GPU_STREAM, 0);
	return op;
}

static uint64_t op_ts(const struct model_gpu *gpu, uint32_t node)
{
	const struct model *model = gpu->model;
	uint32_t group_end;

	if (node >= model->spans.len)
		return model->events.data[node - model->spans.len].ts;
	group_end = map_get(&gpu->grouped, node);
	return model->spans.data[group_end == MAP_NONE ? node : group_end].start_ts;
}

/* How many ops of a channel were put there before a time. */
static uint32_t ops_before(const struct model_gpu *gpu, const struct channel *channel, uint64_t ts)
{
	uint32_t low = 0, high = channel->op_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (op_ts(gpu, gpu->ops[channel->ops + middle]) < ts)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool op_last(const struct model_gpu *gpu, uint32_t channel, uint64_t before_ts,
		    struct model_gpu_op *op)
{
	const struct channel *at;
	uint32_t count;

	if (channel == MODEL_NONE)
		return false;
	at = &gpu->channels.data[channel];
	count = ops_before(gpu, at, before_ts);
	if (count)
		*op = op_of(gpu, gpu->ops[at->ops + count - 1]);
	return count > 0;
}

bool model_gpu_last(const struct model_gpu *gpu, uint32_t pid, uint64_t stream, uint32_t thread,
		    uint64_t before_ts, struct model_gpu_op *op)
{
	return gpu && op_last(gpu, gpu_stream(gpu, pid, stream, thread), before_ts, op);
}

bool model_gpu_recorded(const struct model_gpu *gpu, uint32_t pid, uint64_t event,
			uint64_t before_ts, struct model_gpu_op *op)
{
	return gpu && op_last(gpu, gpu_channel(gpu, CHANNEL_EVENT, pid, event, 0), before_ts, op);
}

bool model_gpu_previous(const struct model_gpu *gpu, const struct model_gpu_op *op,
			struct model_gpu_op *previous)
{
	const struct channel *at;
	uint32_t channel, count, node;

	if (!gpu)
		return false;
	channel = gpu_stream(gpu, op->pid, op->stream, op->thread);
	if (channel == MODEL_NONE)
		return false;
	at = &gpu->channels.data[channel];
	node = gpu_node(gpu->model, op->node, op->index);
	/* Those of one group have one time. */
	for (count = ops_before(gpu, at, op->ts); count < at->op_count; count++)
		if (gpu->ops[at->ops + count] == node ||
		    op_ts(gpu, gpu->ops[at->ops + count]) > op->ts)
			break;
	if (!count)
		return false;
	*previous = op_of(gpu, gpu->ops[at->ops + count - 1]);
	return true;
}

bool model_gpu_behind(const struct model_gpu *gpu, const struct model_gpu_op *wait,
		      struct model_gpu_op *op)
{
	struct model_gpu_op record;
	struct value event;

	if (!gpu || wait->role != SITE_ROLE_STREAM_WAIT ||
	    !model_gpu_value(gpu->model, wait->node, wait->index, "event", &event))
		return false;
	return model_gpu_recorded(gpu, wait->pid, event.u64, wait->ts, &record) &&
	       model_gpu_last(gpu, record.pid, record.stream, record.thread, record.ts, op);
}

/* ---- synchronisations ---- */

uint32_t gpu_sync_after(const struct model_gpu *gpu, const struct channel *channel, uint64_t ts)
{
	uint32_t low = 0, high = channel->sync_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (gpu->syncs.data[channel->syncs + middle].ts < ts)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The earliest end of the first few that cover it. */
static uint64_t covered_by(const struct model_gpu *gpu, uint32_t channel, uint64_t ts)
{
	const struct channel *at;
	uint64_t done = UINT64_MAX;
	uint32_t first;

	if (channel == MODEL_NONE)
		return done;
	at = &gpu->channels.data[channel];
	first = gpu_sync_after(gpu, at, ts);
	for (uint32_t i = first; i < at->sync_count && i - first < SYNCS_LOOKED_AT; i++) {
		const struct model_span *span =
			&gpu->model->spans.data[gpu->syncs.data[at->syncs + i].span];

		if (!(span->flags & (MODEL_SPAN_UNFINISHED | MODEL_SPAN_LEFT)) &&
		    span->end_ts < done)
			done = span->end_ts;
	}
	return done;
}

uint64_t gpu_done(const struct model_gpu *gpu, uint32_t channel, uint64_t ts)
{
	uint64_t done = covered_by(gpu, channel, ts), all;

	if (channel == MODEL_NONE || gpu->channels.data[channel].kind != CHANNEL_STREAM)
		return done;
	all = covered_by(
		gpu, gpu_channel(gpu, CHANNEL_DEVICE, gpu->channels.data[channel].pid, 0, 0), ts);
	return all < done ? all : done;
}

bool gpu_waited(const struct model_gpu *gpu, uint32_t channel, uint64_t ts, uint64_t by_ts)
{
	return gpu_done(gpu, channel, ts) <= by_ts;
}

bool model_gpu_waited(const struct model_gpu *gpu, const struct model_gpu_op *op,
		      uint64_t before_ts)
{
	return gpu &&
	       gpu_waited(gpu, gpu_stream(gpu, op->pid, op->stream, op->thread), op->ts, before_ts);
}

struct awaited {
	struct model_gpu_op *ops;
	uint32_t count, max;
};

/* Keeps the latest ones, the latest first. */
static void awaited_add(struct awaited *awaited, const struct model_gpu_op *op)
{
	uint32_t at = awaited->count;

	if (at == awaited->max) {
		if (!at || awaited->ops[at - 1].ts >= op->ts)
			return;
		at--;
	} else {
		awaited->count++;
	}
	for (; at && awaited->ops[at - 1].ts < op->ts; at--)
		awaited->ops[at] = awaited->ops[at - 1];
	awaited->ops[at] = *op;
}

/* What a channel has that was put there before `until_ts` and may not have ended by `by_ts`. */
static void awaited_of(const struct model_gpu *gpu, struct awaited *awaited, uint32_t channel,
		       uint64_t until_ts, uint64_t by_ts)
{
	struct model_gpu_op op;

	if (!op_last(gpu, channel, until_ts, &op))
		return;
	for (unsigned i = 0; i < WAITS_MAX; i++) {
		if (gpu_waited(gpu, channel, op.ts, by_ts))
			return;
		awaited_add(awaited, &op);
		if (op.role != SITE_ROLE_STREAM_WAIT || !model_gpu_previous(gpu, &op, &op))
			return;
	}
}

static void awaited_of_event(const struct model_gpu *gpu, struct awaited *awaited,
			     const struct model_span *span, uint32_t pid)
{
	uint64_t event = gpu_number(gpu, span->site, span->frame, GPU_EVENT, 0);
	struct model_gpu_op record;

	if (model_gpu_recorded(gpu, pid, event, span->start_ts, &record))
		awaited_of(gpu, awaited, gpu_stream(gpu, pid, record.stream, record.thread),
			   record.ts, span->start_ts);
}

static void awaited_of_all(const struct model_gpu *gpu, struct awaited *awaited, uint64_t ts,
			   uint32_t pid)
{
	uint32_t channel = map_get(&gpu->streams, pid);

	for (unsigned i = 0; channel != MODEL_NONE && i < STREAMS_MAX; i++) {
		awaited_of(gpu, awaited, channel, ts, ts);
		channel = gpu->channels.data[channel].sibling;
	}
}

uint32_t model_gpu_awaited(const struct model_gpu *gpu, uint32_t span, struct model_gpu_op *ops,
			   uint32_t max)
{
	struct awaited awaited = {.ops = ops, .max = max};
	const struct model_span *at;
	const struct gpu_site *site;
	uint32_t pid;

	if (!gpu || span >= gpu->model->spans.len)
		return 0;
	at = &gpu->model->spans.data[span];
	site = gpu_site(gpu, at->site);
	pid = gpu->model->threads.data[at->thread].pid;
	if (at->flags & MODEL_SPAN_BEGUN_BEFORE || model_gpu_failed(gpu, span))
		return 0;
	if (site->role == SITE_ROLE_SYNC_STREAM)
		awaited_of(gpu, &awaited,
			   gpu_stream(gpu, pid, gpu_number(gpu, at->site, at->frame, GPU_STREAM, 0),
				      at->thread),
			   at->start_ts, at->start_ts);
	else if (site->role == SITE_ROLE_SYNC_EVENT)
		awaited_of_event(gpu, &awaited, at, pid);
	else if (site->role == SITE_ROLE_SYNC_DEVICE)
		awaited_of_all(gpu, &awaited, at->start_ts, pid);
	else if (site->role == SITE_ROLE_COPY && site->keys[GPU_STREAM] == GPU_KEY_NONE)
		awaited_of(gpu, &awaited, gpu_stream(gpu, pid, 0, at->thread), at->start_ts,
			   at->start_ts);
	return awaited.count;
}

/* ---- collectives ---- */

const struct model_collective *model_collective_of(const struct model_gpu *gpu, uint32_t span)
{
	uint32_t index = gpu ? map_get(&gpu->collective_of, span) : MAP_NONE;

	return index == MAP_NONE ? NULL : &gpu->collectives.data[index];
}

uint32_t model_gpu_group_next(const struct model_gpu *gpu, uint32_t span)
{
	return gpu ? map_get(&gpu->group_next, span) : MAP_NONE;
}

size_t model_collective_count(const struct model_gpu *gpu)
{
	return gpu ? gpu->collectives.len : 0;
}

const struct model_collective *model_collective_at(const struct model_gpu *gpu, size_t index)
{
	return &gpu->collectives.data[index];
}

uint64_t model_collectives_unaligned(const struct model_gpu *gpu)
{
	return gpu ? gpu->unaligned : 0;
}

/* ---- the whole ---- */

static bool has_roles(const struct model *model)
{
	for (size_t i = 0; i < model->sites.len; i++)
		if (model->sites.data[i].role != SITE_ROLE_NONE)
			return true;
	return false;
}

int model_gpu_new(struct model_gpu **gpu, const struct model *model)
{
	gpu_calls calls = {0};
	struct model_gpu *made;
	int result;

	*gpu = NULL;
	/* Spans and events are numbered together. */
	if (!has_roles(model) || model->spans.len + model->events.len >= MODEL_NONE)
		return 0;
	made = calloc(1, sizeof(*made));
	if (!made)
		return -ENOMEM;
	made->model = model;
	made->sites = calloc(model->sites.len + 1, sizeof(*made->sites));
	for (size_t i = 0; made->sites && i <= model->sites.len; i++)
		site_set(&made->sites[i], model_site(model, (uint32_t)i));
	result = made->sites ? gpu_scan(made, &calls) : -ENOMEM;
	if (!result)
		result = collectives_make(made, &calls);
	vec_free(&calls);
	if (result)
		model_gpu_free(made);
	else
		*gpu = made;
	return result;
}

void model_gpu_free(struct model_gpu *gpu)
{
	if (!gpu)
		return;
	free(gpu->sites);
	free(gpu->ops);
	vec_free(&gpu->channels);
	vec_free(&gpu->syncs);
	vec_free(&gpu->inits);
	vec_free(&gpu->collectives);
	vec_free(&gpu->rank_calls);
	map_free(&gpu->channel_hash);
	map_free(&gpu->streams);
	map_free(&gpu->grouped);
	map_free(&gpu->group_next);
	map_free(&gpu->collective_of);
	free(gpu);
}
