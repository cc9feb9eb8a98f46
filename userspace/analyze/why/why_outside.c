// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/why_outside.h"

#include <string.h>

#include "analyze/why/lookup/why_holder.h"
#include "analyze/why/lookup/why_worker.h"

#define LEAST_PARTS 5

/* Causes at which a chain ends because the other side was not recorded. */
static bool ends_outside(enum why_cause cause)
{
	return cause == WHY_NOT_RECORDED || cause == WHY_LOCK || cause == WHY_PIPE ||
	       cause == WHY_SOCKET || cause == WHY_PROCESS_EXIT;
}

/* If the capture does not say which threads are the kernel's, their names have to show it:
 * "kworker/0:1", "jbd2/sda1-8", "kswapd0". */
static bool is_of_kernel(const struct model *model, uint32_t thread)
{
	const char *name = model_thread_name(model, thread);

	return model_is_kernel(model, thread) ||
	       (model_may_be_kernel(model, thread) &&
		(strchr(name, '/') || worker_find(name, NULL, 0)));
}

static bool is_outside(const struct model *model, uint32_t thread)
{
	return thread < model->threads.len && model->threads.data[thread].pid &&
	       !model_is_traced(model, thread) && !model_is_own(model, thread) &&
	       !is_of_kernel(model, thread);
}

/* The only process that holds the other end of the pipe, or the lock of the file, for which a
 * part's chain waits at its end, if that process was not recorded; 0: it is not known, or was. */
static uint32_t holder_of(const struct why *why, const struct why_part *part)
{
	const struct model *model = why->model;
	uint32_t wait = part->step_count ? why->steps.data[part->step + part->step_count - 1].wait
					 : MODEL_NONE;
	const struct store_object *object =
		wait < model->waits.len
			? store_reader_object(model->reader, model->waits.data[wait].object)
			: NULL;
	uint32_t pid = why_holder_pid(object);
	uint32_t process = pid ? map_get(&model->pids, pid) : MAP_NONE;
	uint32_t main = process < model->processes.len ? model->processes.data[process].main_thread
						       : MODEL_NONE;

	return main < model->threads.len &&
			       (model_is_traced(model, main) || model_is_own(model, main))
		       ? 0
		       : pid;
}

/* The process at which a part's chain ends, and that was not recorded; 0: there is none. */
static uint32_t outside_of(const struct why *why, const struct why_part *part)
{
	if (!ends_outside(part->cause))
		return 0;
	if (part->thread == MODEL_NONE)
		return holder_of(why, part);
	return is_outside(why->model, part->thread) ? why->model->threads.data[part->thread].pid
						    : 0;
}

struct why_outside why_outside_find(const struct why *why)
{
	const struct why_instance *instance = why->instances.data;
	struct why_outside most = {.thread = MODEL_NONE};
	uint64_t most_ns = 0;

	for (uint32_t i = 0; why->instances.len && i < instance->part_count; i++) {
		const struct why_part *part = &why->parts.data[instance->part + i];
		uint32_t pid = part->ns > most_ns ? outside_of(why, part) : 0;

		if (!pid)
			continue;
		most = (struct why_outside){.pid = pid, .thread = part->thread};
		most_ns = part->ns;
	}
	return most.pid && most_ns >= (instance->to_ts - instance->from_ts) / LEAST_PARTS
		       ? most
		       : (struct why_outside){.thread = MODEL_NONE};
}
