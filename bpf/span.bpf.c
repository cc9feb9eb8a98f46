// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Armed sites without a filter: a hit copies the frame that the program laid out
 * (include/waffle/abi.h) into a record. One link arms all sites of a file (Linux 6.6 and later), or
 * each site has its own; kernel/ chooses by the attach type.
 */
#include "vmlinux.h"
#include "emit.bpf.h"
#include "uprobe.bpf.h"

UPROBE(hit)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return wanted(task) ? hit_emit(ctx, task, 0) : 0;
}

UPROBE(span_end)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return wanted(task) ? span_end_emit(ctx, task, 0) : 0;
}

/* The probe "ring" of libwaffle (usdt/ring/tracer.h). If this record finds no room, the thread hits
 * the probe again. So it is not counted. The tracer is woken, since until it has mapped the ring,
 * the thread's hits take the slow way through the kernel. */
UPROBE(ring_made)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 cpu = bpf_get_smp_processor_id();
	struct waffle_rec_ring *rec;
	void *ring = ring_get(cpu);

	if (!ring || !wanted(task))
		return 0;
	rec = bpf_ringbuf_reserve(ring, sizeof(*rec), 0);
	if (!rec)
		return 0;
	rec->tgid = task->tgid;
	rec->seen_tid = PT_REGS_PARM3(ctx);
	rec->address = PT_REGS_PARM1(ctx);
	rec->bytes = PT_REGS_PARM2(ctx);
	record_begin(&rec->rec, WAFFLE_REC_RING, task->pid, cpu);
	bpf_ringbuf_submit(rec, BPF_RB_FORCE_WAKEUP);
	return 0;
}
