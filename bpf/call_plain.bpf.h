/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Makes records of plain calls (call.h) from registers, without a frame. */
#ifndef WAFFLE_CALL_PLAIN_BPF_H
#define WAFFLE_CALL_PLAIN_BPF_H

#include "call_entry.bpf.h"

/* The sizes of these are set before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct waffle_plain_ends);
} plain_ends SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct waffle_plain_slot);
} plain_slots SEC(".maps");

/*
 * The fast path of the most frequent calls. Most of its time is spent in the kernel's helpers: each
 * takes 5 to 10 ns where returns are guarded against speculation. The fastest helper that reads
 * memory is for sleepable programs only, which can make no tail calls. The memory is copied to the
 * stack, since other destinations are checked slowly (CONFIG_HARDENED_USERCOPY). This is a function
 * of its own because a larger stack may be allocated elsewhere (BPF_PRIV_STACK_MIN_SIZE), which
 * takes 80 ns more.
 */
static __noinline int plain_stack(struct waffle_call_thread *thread, __u64 at, __u64 count)
{
	__u64 stack[WAFFLE_PLAIN_STACK] = {0};

	if (count > WAFFLE_PLAIN_STACK)
		return 0;
	if (count && bpf_copy_from_user(stack, count * sizeof(__u64), (const void *)at))
		__sync_fetch_and_add(&call_faults, 1);
#pragma unroll
	for (int i = 0; i < WAFFLE_PLAIN_STACK; i++)
		thread->words[WAFFLE_CALL_REGS + i] = stack[i];
	return 0;
}

/* Takes the next slot of this CPU. NULL: all are full, or another program interrupted this one. */
static __always_inline struct waffle_plain_slot *plain_slot_take(__u64 *number)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct waffle_plain_ends *ends = bpf_map_lookup_elem(&plain_ends, &cpu);
	struct waffle_plain_slot *slot;
	__u64 head;
	__u32 index;

	if (!ends)
		return NULL;
	head = ends->head;
	index = cpu * WAFFLE_PLAIN_SLOTS + (head & (WAFFLE_PLAIN_SLOTS - 1));
	slot = bpf_map_lookup_elem(&plain_slots, &index);
	if (!slot || head - ends->tail >= WAFFLE_PLAIN_SLOTS ||
	    __sync_val_compare_and_swap(&ends->head, head, head + 1) != head)
		return NULL;
	*number = head + 1;
	return slot;
}

static __always_inline void plain_slot_publish(struct waffle_plain_slot *slot, __u64 number)
{
#if defined(__TARGET_ARCH_x86)
	barrier(); /* stores are seen in order */
	*(volatile __u64 *)&slot->number = number;
#else
	__sync_lock_test_and_set(&slot->number, number);
#endif
}

static __always_inline void plain_fill(struct waffle_rec_plain *rec, struct task_struct *task,
				       const struct waffle_call_thread *thread, struct pt_regs *ctx,
				       __u32 recipe)
{
	rec->rec = (struct waffle_rec){
		.ts = thread->now,
		.tid = task->pid,
		.kind = WAFFLE_REC_PLAIN,
		.cpu = bpf_get_smp_processor_id(),
	};
	rec->tgid = task->tgid;
	rec->recipe = recipe;
	rec->words[0] = PT_REGS_PARM1(ctx);
	rec->words[1] = PT_REGS_PARM2(ctx);
	rec->words[2] = PT_REGS_PARM3(ctx);
	rec->words[3] = PT_REGS_PARM4(ctx);
	rec->words[4] = PT_REGS_PARM5(ctx);
	rec->words[5] = PT_REGS_PARM6(ctx);
#if WAFFLE_PLAIN_REGS == 8
	rec->words[6] = PT_REGS_PARM7(ctx);
	rec->words[7] = PT_REGS_PARM8(ctx);
#endif
#pragma unroll
	for (int i = 0; i < WAFFLE_PLAIN_STACK; i++)
		rec->words[WAFFLE_PLAIN_REGS + i] = thread->words[WAFFLE_CALL_REGS + i];
}

/* Records a call for which all slots are full. It is not inlined, since it is rare and takes
 * stack. */
static __noinline int plain_by_ring(const struct waffle_call_thread *thread, struct pt_regs *ctx,
				    __u32 recipe)
{
	struct waffle_rec_plain *rec = record_reserve(bpf_get_smp_processor_id(), sizeof(*rec));

	if (!rec)
		return 0;
	plain_fill(rec, bpf_get_current_task_btf(), thread, ctx, recipe);
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
	return 0;
}

static __always_inline int plain(const struct entry *entry, struct pt_regs *ctx)
{
	struct waffle_call_thread *thread = entry->thread;
	__u64 cookie = entry->cookie, number;
	__u32 recipe = WAFFLE_COOKIE_RECIPE(cookie);
	struct waffle_plain_slot *slot;

	thread->now = bpf_ktime_get_ns();
	plain_stack(thread, PT_REGS_SP(ctx) + WAFFLE_COOKIE_PLAIN_FIRST(cookie) * sizeof(__u64),
		    WAFFLE_COOKIE_PLAIN_COUNT(cookie));
	if (WAFFLE_COOKIE_PLAIN_OUTER(cookie))
		outer_set(thread, ctx, recipe, thread->words[WAFFLE_CALL_REGS]);
	slot = plain_slot_take(&number);
	if (!slot)
		return plain_by_ring(thread, ctx, recipe);
	plain_fill(&slot->rec, entry->task, thread, ctx, recipe);
	plain_slot_publish(slot, number);
	return 0;
}

#endif
