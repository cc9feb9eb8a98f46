// SPDX-License-Identifier: Apache-2.0
#include "analyze/impaired.h"

#include "util/memory.h"
#include "util/search.h"

static bool is_stopped(const struct model *model, uint32_t thread)
{
	const struct model_open_wait *wait = model_open_wait_of(model, thread);

	return wait && wait->before &&
	       wait->task_state & (WAFFLE_TASK_STOPPED | WAFFLE_TASK_TRACED);
}

/* The number of descriptors that the process may have, if all of them are open; otherwise 0. */
static uint64_t descriptors_of(const struct model *model, uint32_t pid)
{
	const struct model_io_limit *all = model->io_limits.data;
	size_t len = model->io_limits.len;

	for (size_t i = lower_bound(len, k, all[k].pid < pid); i < len && all[i].pid == pid; i++)
		if (all[i].kind & WAFFLE_IO_LIMIT_DESCRIPTORS)
			return all[i].limit;
	return 0;
}

void impaired_find(impaired_list *list, const struct model *model)
{
	for (size_t i = 0; i < model->processes.len; i++) {
		const struct model_process *process = &model->processes.data[i];
		struct impaired impaired = {.thread = process->main_thread};

		if (!model_is_traced(model, impaired.thread))
			continue;
		impaired.stopped = is_stopped(model, impaired.thread);
		impaired.descriptors = descriptors_of(model, process->pid);
		if (impaired.stopped || impaired.descriptors)
			vec_add(list, impaired);
	}
}
