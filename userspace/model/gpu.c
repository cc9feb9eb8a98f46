// SPDX-License-Identifier: Apache-2.0
#include "model/gpu.h"

#include <stdlib.h>
#include <string.h>

#include "model/gpu_internal.h"

#define NCCL_IN_PROGRESS 7

static const char *const key_names[] = {
	[GPU_STREAM] = "stream", [GPU_EVENT] = "event",       [GPU_COMM] = "comm",
	[GPU_RANK] = "rank",     [GPU_NRANKS] = "nranks",     [GPU_SEQ] = "seq",
	[GPU_COUNT] = "count",   [GPU_DATATYPE] = "datatype", [GPU_OP] = "op",
	[GPU_ROOT] = "root",     [GPU_PEER] = "peer",         [GPU_FLAGS] = "flags",
	[GPU_RESULT] = "result", [GPU_HOST] = "host",
};
_Static_assert(sizeof(key_names) / sizeof(key_names[0]) == GPU_KEY_COUNT, "a name a key");

/* ---- sites and values ---- */

static void site_set(struct gpu_site *to, const struct site_info *site)
{
	size_t len = strlen(site->name);
	const char *suffix = site->name + (len > 5 ? len - 5 : 0);

	to->role = site->role;
	to->per_thread = !strcmp(suffix, "_ptsz") || !strcmp(suffix, "_ptds");
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

uint64_t gpu_stream_of(const struct model_gpu *gpu, uint32_t site, uint32_t frame)
{
	uint64_t stream = gpu_number(gpu, site, frame, GPU_STREAM, STREAM_NULL);

	return stream == STREAM_NULL && gpu_site(gpu, site)->per_thread ? STREAM_PER_THREAD
									: stream;
}

bool gpu_of_context(const struct model_gpu *gpu, uint32_t site)
{
	const struct gpu_site *at = gpu_site(gpu, site);

	return at->keys[GPU_STREAM] == GPU_KEY_NONE &&
	       (at->role == SITE_ROLE_EVENT_RECORD || at->role == SITE_ROLE_STREAM_WAIT);
}

/* On a non-blocking communicator, NCCL's calls return while the work is in progress. */
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

uint64_t model_gpu_stream(const struct model_gpu *gpu, uint32_t span)
{
	const struct model_span *at = &gpu->model->spans.data[span];

	return gpu_stream_of(gpu, at->site, at->frame);
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
	return gpu_channel(gpu, CHANNEL_STREAM, pid, stream == STREAM_LEGACY ? STREAM_NULL : stream,
			   0);
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

	if (kind == CHANNEL_STREAM && handle == STREAM_PER_THREAD) {
		channel.thread = thread + 1;
		channel.blocking = STREAM_BLOCKING;
	}
	if (kind == CHANNEL_STREAM && handle == STREAM_LEGACY)
		channel.handle = STREAM_NULL;
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
	/* Spans and events share one range of numbers (gpu_node()). */
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
	vec_free(&gpu->graphs);
	map_free(&gpu->channel_hash);
	map_free(&gpu->streams);
	map_free(&gpu->grouped);
	map_free(&gpu->group_next);
	map_free(&gpu->collective_of);
	map_free(&gpu->in_graph);
	free(gpu);
}
