// SPDX-License-Identifier: Apache-2.0
/* The children for whose end an open wait is. */
#include <string.h>
#include <sys/wait.h>

#include "analyze/why/hang/why_hang.h"
#include "util/syscall_names.h"

/* Which children a call waits for. */
struct wanted_children {
	bool any;
	uint32_t number; /* of the only one, as its parent sees it */
};

/* False: it waits for none, or for those of a group of processes. */
static bool wanted_read(struct wanted_children *wanted, const struct model *model,
			const struct model_open_wait *wait)
{
	const char *name = syscall_name(model->meta->machine, wait->syscall);
	bool by_id = name && !strcmp(name, "waitid");
	const uint64_t *args;

	if (!name || (!by_id && strcmp(name, "wait4") != 0) ||
	    wait->args >= model->syscall_args.len)
		return false;
	args = &model->syscall_args.data[wait->args];
	*wanted = (struct wanted_children){
		.any = by_id ? args[0] == P_ALL : (int32_t)args[0] == -1,
		.number = (uint32_t)args[by_id],
	};
	return wanted->any || (by_id ? args[0] == P_PID : (int32_t)args[0] > 0);
}

static bool is_wanted(const struct model *model, const struct model_process *process,
		      const struct wanted_children *wanted)
{
	const struct model_thread *main = process->main_thread < model->threads.len
						  ? &model->threads.data[process->main_thread]
						  : NULL;

	return main && !main->exit_ts && !main->gone &&
	       (wanted->any || model_pid_real(model, process->pid) == wanted->number);
}

uint32_t why_hang_children(const struct model *model, const struct model_open_wait *wait,
			   uint32_t children[WHY_CHILDREN])
{
	uint32_t pid = model->threads.data[wait->thread].pid, count = 0;
	struct wanted_children wanted;

	if (!wanted_read(&wanted, model, wait))
		return 0;
	for (size_t i = 0; i < model->processes.len; i++) {
		const struct model_process *process = &model->processes.data[i];

		if (process->ppid != pid || !is_wanted(model, process, &wanted))
			continue;
		if (count < WHY_CHILDREN)
			children[count] = process->main_thread;
		count++;
	}
	return count;
}
