// SPDX-License-Identifier: Apache-2.0
#include "model/model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/search.h"

static const struct site_info unknown_site = {
	.name = "(unknown)", .category = "", .file = "", .func = "", .object = ""};

const struct site_info *model_site(const struct model *model, uint32_t site)
{
	return site < model->sites.len ? &model->sites.data[site] : &unknown_site;
}

bool model_simulated(const struct model *model)
{
	for (size_t i = 0; i < model->sites.len; i++)
		if (site_is_simulated(&model->sites.data[i]))
			return true;
	return model->gpu_simulated;
}

int model_reaches(const struct model *model, uint64_t ts, struct error *err)
{
	if (ts < model->end_ts)
		return 0;
	return error_set(err, EINVAL,
			 "the capture ends before that time; waffle-bpf info shows how long it is");
}

uint32_t model_site_count(const struct model *model)
{
	return (uint32_t)model->sites.len;
}

struct value_walk model_values(const struct model *model, uint32_t site, uint32_t frame)
{
	if (frame >= model->frames.len)
		return value_walk_from(&unknown_site, 0, NULL, 0);
	return value_walk_from(model_site(model, site), 0, &model->frames.data[frame + 1],
			       FRAME_BYTES(model->frames.data[frame]));
}

bool model_is_own(const struct model *model, uint32_t thread)
{
	return thread < model->threads.len && model->threads.data[thread].own &&
	       !model->threads.data[thread].traced;
}

bool model_may_be_kernel(const struct model *model, uint32_t thread)
{
	return thread < model->threads.len && !model->threads.data[thread].user &&
	       !model->threads.data[thread].traced;
}

bool model_is_kernel(const struct model *model, uint32_t thread)
{
	return model_may_be_kernel(model, thread) && model->threads.data[thread].kernel;
}

const char *model_thread_name(const struct model *model, uint32_t thread)
{
	return thread < model->threads.len
		       ? strtab_get(model->strings, model->threads.data[thread].comm)
		       : "?";
}

const char *model_thread_kind_name(const struct model *model, uint32_t thread)
{
	return thread < model->threads.len
		       ? strtab_get(model->strings, model_thread_kind(model, thread))
		       : "?";
}

const struct model_process *model_process_of(const struct model *model, uint32_t thread)
{
	uint32_t index = thread < model->threads.len
				 ? map_get(&model->pids, model->threads.data[thread].pid)
				 : MAP_NONE;

	return index < model->processes.len ? &model->processes.data[index] : NULL;
}

uint32_t model_host_of(const struct model *model, uint32_t thread)
{
	/* A track has no tid. */
	uint32_t host = thread < model->threads.len
				? store_pid_host(model->threads.data[thread].tid
							 ?: model->threads.data[thread].pid)
				: 0;

	return host < model->host_count ? host : 0;
}

uint32_t model_host_of_cpu(const struct model *model, uint16_t cpu)
{
	return lower_bound(model->host_count - 1, i, model->hosts[i + 1]->cpu_base <= cpu);
}

bool model_node_find(const struct model *model, uint8_t kind, uint32_t index,
		     struct model_node *node)
{
	if (kind == MODEL_NODE_SPAN && index < model->spans.len) {
		const struct model_span *span = &model->spans.data[index];

		*node = (struct model_node){span->start_ts, span->site, span->thread};
		return true;
	}
	if (kind == MODEL_NODE_EVENT && index < model->events.len) {
		const struct model_event *event = &model->events.data[index];

		*node = (struct model_node){event->ts, event->site, event->thread};
		return true;
	}
	return false;
}
