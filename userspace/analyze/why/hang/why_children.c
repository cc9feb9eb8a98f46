// SPDX-License-Identifier: Apache-2.0
/* The children for whose end an open wait is. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "analyze/why/hang/why_hang_internal.h"
#include "util/memory.h"
#include "util/search.h"
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

static int child_compare(const void *left, const void *right)
{
	const struct why_child *a = left, *b = right;

	if (a->ppid != b->ppid)
		return a->ppid < b->ppid ? -1 : 1;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return (a->thread > b->thread) - (a->thread < b->thread);
}

void why_children_find(struct why_hangs *hangs, const struct model *model)
{
	for (size_t i = 0; i < model->processes.len; i++) {
		const struct model_process *process = &model->processes.data[i];
		const struct model_thread *main =
			process->main_thread < model->threads.len
				? &model->threads.data[process->main_thread]
				: NULL;

		if (main && !main->exit_ts && !main->gone)
			vec_add(&hangs->children, (struct why_child){process->ppid, process->pid,
								     process->main_thread});
	}
	if (hangs->children.len)
		qsort(hangs->children.data, hangs->children.len, sizeof(*hangs->children.data),
		      child_compare);
}

uint32_t why_hang_children(const struct why_hangs *hangs, const struct model *model,
			   const struct model_open_wait *wait, uint32_t children[WHY_CHILDREN])
{
	uint32_t pid = model->threads.data[wait->thread].pid;
	const struct why_child *all = hangs->children.data;
	size_t len = hangs->children.len, first, end;
	struct why_wanted_children wanted;
	const uint64_t *args = NULL;

	if (wait->args < model->syscall_args.len)
		args = &model->syscall_args.data[wait->args];
	if (!why_wanted_children(&wanted, syscall_name(model->meta->machine, wait->syscall), args))
		return 0;
	first = lower_bound(len, i, all[i].ppid < pid);
	end = lower_bound_in(first, len, i, all[i].ppid == pid);
	if (!wanted.any) {
		first = lower_bound_in(first, end, i,
				       model_pid_real(model, all[i].pid) < wanted.number);
		end = first < end && model_pid_real(model, all[first].pid) == wanted.number
			      ? first + 1
			      : first;
	}
	for (size_t i = first; i < end && i - first < WHY_CHILDREN; i++)
		children[i - first] = all[i].thread;
	return (uint32_t)(end - first);
}
