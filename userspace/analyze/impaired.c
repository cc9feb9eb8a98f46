// SPDX-License-Identifier: Apache-2.0
#include "analyze/impaired.h"

#include <string.h>

#include "target/process/descriptors.h"
#include "util/memory.h"
#include "util/search.h"

static bool is_stopped(const struct model *model, uint32_t thread)
{
	const struct model_open_wait *wait = model_open_wait_of(model, thread);

	return wait && wait->before &&
	       wait->task_state & (WAFFLE_TASK_STOPPED | WAFFLE_TASK_TRACED);
}

/* The limits that the process has reached. */
static void add_limits(struct impaired *impaired, const struct model *model, uint32_t pid)
{
	const struct model_io_limit *all = model->io_limits.data;
	size_t len = model->io_limits.len;

	for (size_t i = lower_bound(len, k, all[k].pid < pid); i < len && all[i].pid == pid; i++) {
		if (all[i].kind & WAFFLE_IO_LIMIT_DESCRIPTORS)
			impaired->descriptors = all[i].limit;
		if (all[i].kind & WAFFLE_IO_LIMIT_PIDS) {
			impaired->pids = all[i].limit;
			impaired->pids_cgroup = all[i].cgroup;
		}
	}
}

void impaired_find(impaired_list *list, const struct model *model)
{
	for (size_t i = 0; i < model->processes.len; i++) {
		const struct model_process *process = &model->processes.data[i];
		struct impaired impaired = {.thread = process->main_thread};

		if (!model_is_traced(model, impaired.thread))
			continue;
		impaired.stopped = is_stopped(model, impaired.thread);
		add_limits(&impaired, model, process->pid);
		if (impaired.stopped || impaired.descriptors || impaired.pids)
			vec_add(list, impaired);
	}
}

const char *impaired_cgroup(const struct model *model, const struct impaired *impaired)
{
	const struct store_object *object;

	for (uint32_t i = 1; (object = store_reader_object(model->reader, i)); i++)
		if (!object->dev && object->ino == impaired->pids_cgroup &&
		    (!strcmp(object->detail, DESCRIPTOR_CGROUP " pids") ||
		     !strcmp(object->detail, DESCRIPTOR_CGROUP)))
			return object->name;
	return NULL;
}
