// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Armed sites without a filter: a hit copies the frame that the program laid out
 * (include/waffle/abi.h) into a record. One link arms all sites of a file (Linux 6.6 and later), or
 * each site has its own; kernel/ chooses by the attach type.
 */
#include "vmlinux.h"
#include "emit.bpf.h"

SEC("uprobe.multi")
int hit(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return wanted(task) ? hit_emit(ctx, task, 0) : 0;
}

SEC("uprobe.multi")
int span_end(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return wanted(task) ? span_end_emit(ctx, task, 0) : 0;
}
