// SPDX-License-Identifier: Apache-2.0
#include "model/gpu/gpu.h"

#include <stdlib.h>
#include <string.h>

#include "model/gpu/gpu_internal.h"
#include "model/gpu/gpu_op_kind.h"
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

/* Events of libwaffle-gpu that stand for a call, as docs/gpu.md lists them. */
static const struct {
	const char *name;
	uint16_t role;
} library_calls[] = {
	{"event record", SITE_ROLE_EVENT_RECORD},   {"stream wait", SITE_ROLE_STREAM_WAIT},
	{"stream create", SITE_ROLE_STREAM_CREATE}, {"capture begin", SITE_ROLE_CAPTURE_BEGIN},
	{"capture end", SITE_ROLE_CAPTURE_END},
};
#define LIBRARY_STREAM "handle" /* its key `stream` is CUPTI's number */

/* The role of an event of libwaffle-gpu; SITE_ROLE_NONE: the site is none of these events. */
static uint16_t library_role(const struct site_info *site)
{
	if (site->kind != WAFFLE_SITE_EVENT || strcmp(site->category, GPU_CATEGORY) != 0)
		return SITE_ROLE_NONE;
	for (size_t i = 0; i < sizeof(library_calls) / sizeof(library_calls[0]); i++)
		if (!strcmp(site->name, library_calls[i].name))
			return library_calls[i].role;
	return SITE_ROLE_NONE;
}

static bool name_ends(const char *name, const char *suffix)
{
	size_t len = strlen(name), suffix_len = strlen(suffix);

	return len >= suffix_len && !strcmp(name + len - suffix_len, suffix);
}

static void site_set(struct gpu_site *to, const struct site_info *site)
{
	uint16_t role = library_role(site);

	to->library = role != SITE_ROLE_NONE;
	to->role = to->library ? role : site->role;
	to->per_thread = name_ends(site->name, "_ptsz") || name_ends(site->name, "_ptds") ||
			 name_ends(site->name, "_spt");
	for (unsigned key = 0; key < GPU_KEY_COUNT; key++) {
		to->keys[key] = GPU_KEY_NONE;
		for (unsigned i = 0; i < site->key_count && i < WAFFLE_KEYS_MAX; i++)
			if (to->keys[key] == GPU_KEY_NONE &&
			    !strcmp(site->keys[i].name, to->library && key == GPU_STREAM
								? LIBRARY_STREAM
								: key_names[key]))
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

bool model_gpu_has_calls(const struct model *model)
{
	for (size_t i = 0; i < model->sites.len; i++) {
		const struct site_info *site = &model->sites.data[i];

		if ((site->role != SITE_ROLE_NONE && !site_role_is_mpi(site->role)) ||
		    library_role(site) != SITE_ROLE_NONE)
			return true;
	}
	return false;
}

struct model_gpu *model_gpu_new(const struct model *model)
{
	struct model_gpu *gpu;

	/* Spans and events share one range of numbers (gpu_node()). */
	if (!model_gpu_has_calls(model) || model->spans.len + model->events.len >= MODEL_NONE)
		return NULL;
	gpu = memory_zeroed(1, sizeof(*gpu));
	gpu->model = model;
	gpu->sites = memory_zeroed(model->sites.len + 1, sizeof(*gpu->sites));
	for (size_t i = 0; i <= model->sites.len; i++) {
		site_set(&gpu->sites[i], model_site(model, (uint32_t)i));
		gpu->library |= gpu->sites[i].library;
	}
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
	map_free(&gpu->repeated);
	free(gpu);
}
