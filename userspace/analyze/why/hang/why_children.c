// SPDX-License-Identifier: Apache-2.0
/* The children for whose end an open wait is. */
#include <string.h>
#include <sys/wait.h>

#include "analyze/why/hang/why_hang.h"
#include "util/syscall_names.h"

bool why_wanted_children(struct why_wanted_children *wanted, const char *syscall,
			 const uint64_t *args)
{
	bool by_id = syscall && !strcmp(syscall, "waitid");

	if (!syscall || (!by_id && strcmp(syscall, "wait4") != 0) || !args)
		return false;
	*wanted = (struct why_wanted_children){
		.any = by_id ? args[0] == P_ALL : (int32_t)args[0] == -1,
		.number = (uint32_t)args[by_id],
	};
	return wanted->any || (by_id ? args[0] == P_PID : (int32_t)args[0] > 0);
}

static bool is_wanted(const struct model *model, const struct model_process *process,
		      const struct why_wanted_children *wanted)
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
	struct why_wanted_children wanted;
	const uint64_t *args = NULL;

	if (wait->args < model->syscall_args.len)
		args = &model->syscall_args.data[wait->args];
	if (!why_wanted_children(&wanted, syscall_name(model->meta->machine, wait->syscall), args))
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
