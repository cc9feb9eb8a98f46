// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Armed sites: a hit copies the frame that the program laid out (include/waffle/abi.h) into a
 * record. */
#include "vmlinux.h"
#include "shared.h"
#include "waffle/abi.h"

/*
 * Whether the current process is a target. Where children are not followed, the kernel has attached
 * the probe to targets only.
 */
static __always_inline bool wanted(struct task_struct *task)
{
	return !finished && (!follow_children || thread_get(task));
}

/* Copies a frame of at most `room` bytes into a record with that much room. */
static __always_inline int hit_copy(struct pt_regs *ctx, __u32 room, __u32 size,
				    struct task_struct *task)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct waffle_rec_hit *rec = record_reserve(cpu, sizeof(*rec) + room);

	if (!rec)
		return 0;
	rec->tgid = task->tgid;
	rec->site = bpf_get_attach_cookie(ctx);
	rec->reserved = 0;
	/* A frame that can't be read stays without values: the hit itself is a fact. */
	if (size > room || bpf_probe_read_user(rec + 1, size, (void *)PT_REGS_PARM3(ctx)))
		size = 0;
	rec->frame_bytes = size;
	record_begin(&rec->rec, WAFFLE_REC_HIT, task->pid, cpu);
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
	return 0;
}

static __always_inline int hit(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 size = PT_REGS_PARM4(ctx);

	if (!wanted(task))
		return 0;
	/* Sizes for which a ring buffer reservation has to be a constant. */
	if (size <= 64)
		return hit_copy(ctx, 64, size, task);
	if (size <= 128)
		return hit_copy(ctx, 128, size, task);
	if (size <= 256)
		return hit_copy(ctx, 256, size, task);
	if (size <= 640)
		return hit_copy(ctx, 640, size, task);
	if (size <= 1536)
		return hit_copy(ctx, 1536, size, task);
	if (size <= WAFFLE_FRAME_MAX)
		return hit_copy(ctx, WAFFLE_FRAME_MAX, size, task);
	return hit_copy(ctx, 64, 0, task);
}

static __always_inline int span_end(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 cpu = bpf_get_smp_processor_id();
	struct waffle_rec_span_end *rec;

	if (!wanted(task))
		return 0;
	rec = record_reserve(cpu, sizeof(*rec));
	if (!rec)
		return 0;
	rec->span_id = PT_REGS_PARM1(ctx);
	rec->tgid = task->tgid;
	rec->site = WAFFLE_SITE_UNKNOWN;
	rec->probe_addr = PT_REGS_PARM2(ctx);
	record_begin(&rec->rec, WAFFLE_REC_SPAN_END, task->pid, cpu);
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
	return 0;
}

/* One link arms all sites of a file (Linux 6.6 and later) … */
SEC("uprobe.multi")
int hit_multi(struct pt_regs *ctx)
{
	return hit(ctx);
}

SEC("uprobe.multi")
int span_end_multi(struct pt_regs *ctx)
{
	return span_end(ctx);
}

/* … or one link a site. */
SEC("uprobe")
int hit_single(struct pt_regs *ctx)
{
	return hit(ctx);
}

SEC("uprobe")
int span_end_single(struct pt_regs *ctx)
{
	return span_end(ctx);
}
