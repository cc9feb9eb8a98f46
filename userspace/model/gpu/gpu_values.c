// SPDX-License-Identifier: Apache-2.0
/* The values of calls: by key, the stream of a call, whether it failed. */
#include <string.h>

#include "model/gpu/gpu_internal.h"

#define NCCL_IN_PROGRESS 7

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
