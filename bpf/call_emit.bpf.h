/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Makes the records of a call's begin and end from its slot. */
#ifndef WAFFLE_CALL_EMIT_BPF_H
#define WAFFLE_CALL_EMIT_BPF_H

#include "call.h"
#include "emit.bpf.h"

/* Short frames are copied whole, with remains of an earlier frame after their end: that is faster
 * than calling a helper. */
#define COPY_WHOLE 128

static __always_inline void words_copy(__u64 *to, const __u64 *from, __u32 bytes)
{
#pragma unroll
	for (__u32 i = 0; i < bytes / sizeof(__u64); i++)
		to[i] = from[i];
}

static __always_inline int hit_room(struct waffle_call_slot *slot, __u32 room)
{
	struct waffle_rec_hit *rec =
		record_reserve(bpf_get_smp_processor_id(), sizeof(*rec) + room);
	__u32 size = slot->deferred.frame_bytes;

	if (!rec)
		return 0;
	rec->tgid = slot->deferred.tgid;
	rec->site = slot->deferred.site;
	rec->reserved = 0;
	barrier_var(size); /* checked next to its use, for the verifier of 6.1 */
	if (room <= COPY_WHOLE)
		words_copy((__u64 *)(rec + 1), (const __u64 *)slot->frame, room);
	else if (size > room || bpf_probe_read_kernel(rec + 1, size, slot->frame))
		size = 0;
	rec->frame_bytes = size;
	rec->rec = (struct waffle_rec){
		.ts = slot->deferred.ts,
		.tid = slot->deferred.tid,
		.kind = WAFFLE_REC_HIT,
		.cpu = slot->deferred.cpu,
	};
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
	return 0;
}

/* Delivers the begin of a call, or all of an event. */
static __noinline int call_hit(struct waffle_call_slot *slot)
{
	__u32 size;

	if (!slot)
		return 0;
	size = slot->deferred.frame_bytes;
	if (size <= 64)
		return hit_room(slot, 64);
	if (size <= 128)
		return hit_room(slot, 128);
	if (size <= 256)
		return hit_room(slot, 256);
	return hit_room(slot, WAFFLE_CALL_FRAME_MAX);
}

/* The values of the return begin at `from` in the frame. */
static __always_inline int return_room(struct waffle_call_slot *slot, __u32 room, __u64 now,
				       __u64 from)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 cpu = bpf_get_smp_processor_id();
	struct waffle_rec_return *rec = record_reserve(cpu, sizeof(*rec) + room);
	__u32 size = slot->deferred.frame_bytes;

	if (!rec)
		return 0;
	rec->span_id = slot->id;
	rec->tgid = slot->deferred.tgid;
	rec->site = slot->deferred.site;
	rec->flags = 0;
	barrier_var(size);
	barrier_var(from);
	if (from > sizeof(slot->frame))
		from = 0;
	if (size > room || bpf_probe_read_kernel(rec + 1, size, slot->frame + from))
		size = 0;
	rec->frame_bytes = size;
	rec->rec = (struct waffle_rec){
		.ts = now,
		.tid = task->pid,
		.kind = WAFFLE_REC_RETURN,
		.cpu = cpu,
	};
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
	return 0;
}

/* Delivers the end of a call, whose frame has the values of the return only. */
static __noinline int call_return(struct waffle_call_slot *slot, __u64 now, __u64 from)
{
	__u32 size;

	if (!slot)
		return 0;
	size = slot->deferred.frame_bytes;
	if (size <= 64)
		return return_room(slot, 64, now, from);
	return return_room(slot, WAFFLE_CALL_FRAME_MAX, now, from);
}

#endif
