// SPDX-License-Identifier: Apache-2.0
#include "model/gpu/gpu.h"

#include <stdlib.h>
#include <string.h>

#include "model/gpu/gpu_internal.h"
#include "util/memory.h"

static const char *const key_names[] = {
	[GPU_STREAM] = "stream",   [GPU_EVENT] = "event",       [GPU_COMM] = "comm",
	[GPU_RANK] = "rank",       [GPU_NRANKS] = "nranks",     [GPU_SEQ] = "seq",
	[GPU_COUNT] = "count",     [GPU_DATATYPE] = "datatype", [GPU_OP] = "op",
	[GPU_ROOT] = "root",       [GPU_PEER] = "peer",         [GPU_FLAGS] = "flags",
	[GPU_RESULT] = "result",   [GPU_HOST] = "host",         [GPU_COMM_ADDRESS] = "comm_address",
	[GPU_COMM_ID] = "comm_id",
};
_Static_assert(sizeof(key_names) / sizeof(key_names[0]) == GPU_KEY_COUNT, "each key has a name");

static bool name_ends(const char *name, const char *suffix)
{
	size_t len = strlen(name), suffix_len = strlen(suffix);

	return len >= suffix_len && !strcmp(name + len - suffix_len, suffix);
}

static void site_set(struct gpu_site *to, const struct site_info *site)
{
	to->role = site->role;
	to->per_thread = name_ends(site->name, "_ptsz") || name_ends(site->name, "_ptds") ||
			 name_ends(site->name, "_spt");
	for (unsigned key = 0; key < GPU_KEY_COUNT; key++) {
		to->keys[key] = GPU_KEY_NONE;
		for (unsigned i = 0; i < site->key_count && i < WAFFLE_KEYS_MAX; i++)
			if (to->keys[key] == GPU_KEY_NONE &&
			    !strcmp(site->keys[i].name, key_names[key]))
				to->keys[key] = (uint8_t)i;
	}
}

/* ---- groups and ranks ---- */

uint32_t model_gpu_group_next(const struct model_gpu *gpu, uint32_t span)
{
	return gpu ? map_get(&gpu->group_next, span) : MAP_NONE;
}

size_t model_gpu_calls(const struct model_gpu *gpu, const struct model_gpu_call **calls)
{
	*calls = gpu ? gpu->calls.data : NULL;
	return gpu ? gpu->calls.len : 0;
}

size_t model_gpu_inits(const struct model_gpu *gpu, const struct model_gpu_init **inits)
{
	*inits = gpu ? gpu->inits.data : NULL;
	return gpu ? gpu->inits.len : 0;
}

/* ---- the whole ---- */

static bool has_roles(const struct model *model)
{
	for (size_t i = 0; i < model->sites.len; i++)
		if (model->sites.data[i].role != SITE_ROLE_NONE &&
		    !site_role_is_mpi(model->sites.data[i].role))
			return true;
	return false;
}

struct model_gpu *model_gpu_new(const struct model *model)
{
	struct model_gpu *gpu;

	/* Spans and events share one range of numbers (gpu_node()). */
	if (!has_roles(model) || model->spans.len + model->events.len >= MODEL_NONE)
		return NULL;
	gpu = memory_zeroed(1, sizeof(*gpu));
	gpu->model = model;
	gpu->sites = memory_zeroed(model->sites.len + 1, sizeof(*gpu->sites));
	for (size_t i = 0; i <= model->sites.len; i++)
		site_set(&gpu->sites[i], model_site(model, (uint32_t)i));
	gpu_scan(gpu);
	return gpu;
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
	vec_free(&gpu->calls);
	vec_free(&gpu->graphs);
	vec_free(&gpu->comms);
	keymap_free(&gpu->comm_at);
	keymap_free(&gpu->channel_at);
	map_free(&gpu->streams);
	map_free(&gpu->grouped);
	map_free(&gpu->group_next);
	map_free(&gpu->in_graph);
	free(gpu);
}
