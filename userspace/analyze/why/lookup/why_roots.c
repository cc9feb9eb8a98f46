// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/lookup/why_roots.h"

bool why_is_of_root(const struct model *model, uint32_t thread)
{
	const struct model_process *process = model_process_of(model, thread);
	uint32_t parent = process ? map_get(&model->pids, process->ppid) : MAP_NONE;

	return parent >= model->processes.len ||
	       model->processes.data[parent].main_thread >= model->threads.len ||
	       !model->threads.data[model->processes.data[parent].main_thread].traced;
}
