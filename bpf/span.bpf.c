// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Armed sites: a hit copies the frame that the program laid out (include/waffle/abi.h) into a
 * record. */
#include "vmlinux.h"
#include "shared.h"
#include "waffle/abi.h"

/* Copies a frame of at most `room` bytes into a record with that much room. */
static __always_inline int hit_copy(struct pt_regs *ctx, __u32 room, __u32 size, __u32 cpu,
				    __u64 pid_tgid)
{
	struct waffle_rec_hit *rec = record_reserve(cpu, sizeof(*rec) + room);

	if (!rec)
		return 0;
	rec->tgid = pid_tgid >> 32;
	rec->site = bpf_get_attach_cookie(ctx);
	rec->reserved = 0;
	/* A frame that can't be read stays without values: the hit itself is a fact. */
	if (size > room || bpf_probe_read_user(rec + 1, size, (void *)PT_REGS_PARM3(ctx)))
		size = 0;
	rec->frame_bytes = size;
	record_begin(&rec->rec, WAFFLE_REC_HIT, (__u32)pid_tgid, cpu);
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
	return 0;
}

static __always_inline int hit(struct pt_regs *ctx)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	__u32 cpu = bpf_get_smp_processor_id();
	__u64 size = PT_REGS_PARM4(ctx);

	if (!thread_get(bpf_get_current_task_btf()))
		return 0;
	/* Sizes for which a ring buffer reservation has to be a constant. */
	if (size <= 64)
		return hit_copy(ctx, 64, size, cpu, pid_tgid);
	if (size <= 128)
		return hit_copy(ctx, 128, size, cpu, pid_tgid);
	if (size <= 256)
		return hit_copy(ctx, 256, size, cpu, pid_tgid);
	if (size <= 640)
		return hit_copy(ctx, 640, size, cpu, pid_tgid);
	if (size <= 1536)
		return hit_copy(ctx, 1536, size, cpu, pid_tgid);
	if (size <= WAFFLE_FRAME_MAX)
		return hit_copy(ctx, WAFFLE_FRAME_MAX, size, cpu, pid_tgid);
	return hit_copy(ctx, 64, 0, cpu, pid_tgid);
}

static __always_inline int span_end(struct pt_regs *ctx)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	__u32 cpu = bpf_get_smp_processor_id();
	struct waffle_rec_span_end *rec;

	if (!thread_get(bpf_get_current_task_btf()))
		return 0;
	rec = record_reserve(cpu, sizeof(*rec));
	if (!rec)
		return 0;
	rec->span_id = PT_REGS_PARM1(ctx);
	rec->tgid = pid_tgid >> 32;
	rec->site = WAFFLE_SITE_UNKNOWN;
	rec->probe_addr = PT_REGS_PARM2(ctx);
	record_begin(&rec->rec, WAFFLE_REC_SPAN_END, (__u32)pid_tgid, cpu);
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
