// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/lookup/why_roots.h"

bool why_is_of_root(const struct model *model, uint32_t thread)
{
	const struct model_process *process = model_process_of(model, thread);
	uint32_t parent = process ? map_get(&model->pids, process->ppid) : MAP_NONE;

	if (process && process->waker_ts)
		return false;
	return parent >= model->processes.len || model->processes.data[parent].waker_ts ||
	       model->processes.data[parent].main_thread >= model->threads.len ||
	       !model->threads.data[model->processes.data[parent].main_thread].traced;
}

bool why_is_of_waker(const struct model *model, uint32_t thread)
{
	const struct model_process *process = model_process_of(model, thread);

	return process && process->waker_ts;
}

const char *why_recorded_text(const struct model *model, uint32_t thread)
{
	return why_is_of_waker(model, thread) ? "it was recorded" : "the capture began";
}

bool why_is_recorded_at(const struct model *model, uint32_t thread, uint64_t ts)
{
	const struct model_process *process;

	if (!model_is_traced(model, thread))
		return false;
	process = model_process_of(model, thread);
	return !process || process->waker_ts <= ts;
}

uint32_t why_first_process(const struct model *model)
{
	const struct model_process *first = model->processes.data;

	return model->processes.len && !model->recorded.len && !first->found ? first->pid : 0;
}

bool why_is_of_first(const struct model *model, uint32_t thread)
{
	const struct model_process *process = model_process_of(model, thread);
	uint32_t first = why_first_process(model);

	/* The parents in a damaged file may be a circle. */
	for (size_t i = 0; first && process && i <= model->processes.len; i++) {
		uint32_t parent = map_get(&model->pids, process->ppid);

		if (process->pid == first)
			return true;
		process = parent < model->processes.len ? &model->processes.data[parent] : NULL;
	}
	return false;
}
