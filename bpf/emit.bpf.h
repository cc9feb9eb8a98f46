/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Makes records from the registers at a probe (include/waffle/abi.h). */
#ifndef WAFFLE_EMIT_RECORD_BPF_H
#define WAFFLE_EMIT_RECORD_BPF_H

#include "shared.h"
#include "waffle/abi.h"

/* Whether a process runs a program that gained privileges; true if that is unknown. */
static __noinline __attribute__((unused)) bool program_is_privileged(__u32 tgid)
{
	const struct waffle_program *program = bpf_map_lookup_elem(&programs, &tgid);

	return !program || program->privileged;
}

/* Whether to record a hit of the current process: it is a target, and not privileged. If no probe
 * is armed in all processes, the kernel has attached the probe to targets only. */
static __always_inline bool wanted(struct task_struct *task)
{
	return !finished && (!(config.follow_children || probes_wide) || thread_is_traced(task)) &&
	       (!privileged_seen || !program_is_privileged(task->tgid));
}

/* Copies a frame of at most `room` bytes into a record with that much room. `ts` 0: now. */
static __always_inline int hit_copy(struct pt_regs *ctx, __u32 room, __u32 size,
				    struct task_struct *task, __u64 ts)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct waffle_rec_hit *rec = record_reserve(cpu, sizeof(*rec) + room);

	if (!rec)
		return 0;
	rec->tgid = task->tgid;
	rec->site = bpf_get_attach_cookie(ctx);
	rec->reserved = 0;
	/* If the frame can't be read, the hit is recorded without values. */
	barrier_var(size); /* checked next to its use, for the verifier of 6.1 */
	if (size > room || bpf_probe_read_user(rec + 1, size, (void *)PT_REGS_PARM3(ctx)))
		size = 0;
	rec->frame_bytes = size;
	record_begin(&rec->rec, WAFFLE_REC_HIT, task->pid, cpu);
	if (ts)
		rec->rec.ts = ts;
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
	return 0;
}

static __always_inline int hit_emit(struct pt_regs *ctx, struct task_struct *task, __u64 ts)
{
	__u64 size = PT_REGS_PARM4(ctx);

	/* The verifier requires a constant size of a reservation, so there are six sizes. */
	if (size <= 64)
		return hit_copy(ctx, 64, size, task, ts);
	if (size <= 128)
		return hit_copy(ctx, 128, size, task, ts);
	if (size <= 256)
		return hit_copy(ctx, 256, size, task, ts);
	if (size <= 640)
		return hit_copy(ctx, 640, size, task, ts);
	if (size <= 1536)
		return hit_copy(ctx, 1536, size, task, ts);
	if (size <= WAFFLE_FRAME_MAX)
		return hit_copy(ctx, WAFFLE_FRAME_MAX, size, task, ts);
	return hit_copy(ctx, 64, 0, task, ts);
}

static __always_inline int span_end_emit(struct pt_regs *ctx, struct task_struct *task, __u64 ts)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct waffle_rec_span_end *rec = record_reserve(cpu, sizeof(*rec));

	if (!rec)
		return 0;
	rec->span_id = PT_REGS_PARM1(ctx);
	rec->tgid = task->tgid;
	rec->site = WAFFLE_SITE_UNKNOWN;
	rec->probe_addr = PT_REGS_PARM2(ctx);
	record_begin(&rec->rec, WAFFLE_REC_SPAN_END, task->pid, cpu);
	if (ts)
		rec->rec.ts = ts;
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
	return 0;
}

#endif
