// SPDX-License-Identifier: Apache-2.0
#include "analyze/hampered.h"

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

void hampered_find(hampered_list *list, const struct model *model)
{
	for (size_t i = 0; i < model->processes.len; i++) {
		const struct model_process *process = &model->processes.data[i];
		uint32_t thread = process->main_thread;
		uint64_t descriptors = descriptors_of(model, process->pid);

		if (!model_is_traced(model, thread))
			continue;
		if (is_stopped(model, thread))
			vec_add(list, ((struct hampered){.thread = thread}));
		if (descriptors)
			vec_add(list, ((struct hampered){thread, descriptors}));
	}
}
