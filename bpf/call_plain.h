/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Plain calls (call.h): from registers to a record, without a frame. */
#ifndef WAFFLE_CALL_PLAIN_H
#define WAFFLE_CALL_PLAIN_H

#include "call_entry.h"

/*
 * Plain calls: the most frequent ones are, so that nothing is done here that they can do without.
 * What takes time is the functions of the kernel that are called, each 5 to 10 ns where returns are
 * guarded against speculation. Memory is read the shortest way, which programs may that can sleep;
 * such a one can't go to another. And it is read to this stack, as other places are looked at
 * closely (CONFIG_HARDENED_USERCOPY), here, as functions with more than 48 bytes of it may have it
 * elsewhere (BPF_PRIV_STACK_MIN_SIZE): that takes 80 ns more.
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

static __always_inline int plain(const struct entry *entry, struct pt_regs *ctx)
{
	struct waffle_call_thread *thread = entry->thread;
	__u32 cpu = bpf_get_smp_processor_id();
	__u64 cookie = entry->cookie;
	struct waffle_rec_plain *rec;

	thread->now = bpf_ktime_get_ns();
	plain_stack(thread, PT_REGS_SP(ctx) + WAFFLE_COOKIE_PLAIN_FIRST(cookie) * sizeof(__u64),
		    WAFFLE_COOKIE_PLAIN_COUNT(cookie));
	if (WAFFLE_COOKIE_PLAIN_OUTER(cookie))
		outer_set(thread, ctx, WAFFLE_COOKIE_RECIPE(cookie),
			  thread->words[WAFFLE_CALL_REGS]);
	rec = record_reserve(cpu, sizeof(*rec));
	if (!rec)
		return 0;
	rec->rec = (struct waffle_rec){
		.ts = thread->now,
		.tid = entry->task->pid,
		.kind = WAFFLE_REC_PLAIN,
		.cpu = cpu,
	};
	rec->tgid = entry->task->tgid;
	rec->recipe = WAFFLE_COOKIE_RECIPE(cookie);
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
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
	return 0;
}

#endif
