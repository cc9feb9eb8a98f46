// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/why_outside.h"

#include <string.h>

#include "analyze/why/lookup/why_worker.h"

#define LEAST_PARTS 5

/* Causes at which a chain ends because the other side was not recorded. */
static bool ends_outside(enum why_cause cause)
{
	return cause == WHY_NOT_RECORDED || cause == WHY_LOCK || cause == WHY_PIPE ||
	       cause == WHY_SOCKET || cause == WHY_PROCESS_EXIT;
}

/* Threads of the kernel are known by their names: "kworker/0:1", "jbd2/sda1-8", "kswapd0". */
static bool is_of_kernel(const char *name)
{
	return strchr(name, '/') || worker_find(name, NULL, 0);
}

static bool is_outside(const struct model *model, uint32_t thread)
{
	return thread < model->threads.len && model->threads.data[thread].pid &&
	       !model_is_traced(model, thread) && !model_is_own(model, thread) &&
	       !is_of_kernel(model_thread_name(model, thread));
}

uint32_t why_outside_find(const struct why *why)
{
	const struct why_instance *instance = why->instances.data;
	const struct why_part *most = NULL;

	for (uint32_t i = 0; why->instances.len && i < instance->part_count; i++) {
		const struct why_part *part = &why->parts.data[instance->part + i];

		if (ends_outside(part->cause) && is_outside(why->model, part->thread) &&
		    (!most || part->ns > most->ns))
			most = part;
	}
	return most && most->ns >= (instance->to_ts - instance->from_ts) / LEAST_PARTS
		       ? most->thread
		       : MODEL_NONE;
}
