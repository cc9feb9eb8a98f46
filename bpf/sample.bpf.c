// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Samples of what the target's threads run. The timer of a software event interrupts each CPU at
 * the rate that the user chose, and this program records the thread if it is a target's. It runs
 * with interrupts off, so it shares the scratch of the scheduler's programs.
 */
#include "vmlinux.h"
#include "emit.bpf.h"
#include "wait.h"

/* The user stack as a number of the kernel, or of a FRAMES record (bpf/stack.h). */
static __always_inline __u32 sample_user_stack(void *ctx, __u64 now)
{
	if (!config.stack_tables)
		return stack_number(ctx, BPF_F_USER_STACK, now, STACK_OF_SCHEDULER);
	stack_emit(0, now, 0, WAFFLE_STACK_WAIT | WAFFLE_STACK_SAMPLE);
	return WAFFLE_STACK_BY_FRAMES;
}

/* The registers are the first member of a perf event's context, struct bpf_perf_event_data. */
SEC("perf_event")
int on_sample(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 cpu = bpf_get_smp_processor_id(), kernel_stack = 0, user_stack;
	bool in_kernel = (__s64)PT_REGS_IP(ctx) < 0;
	__u64 args[WAFFLE_SYSCALL_ARGS], now;
	struct waffle_rec_sample *rec;

	if (finished || !target_has(task->tgid))
		return 0;
	if (privileged_seen && program_is_privileged(task->tgid))
		return 0;
	now = bpf_ktime_get_ns();
	if (in_kernel)
		kernel_stack = stack_number(ctx, 0, now, STACK_OF_SCHEDULER);
	user_stack = sample_user_stack(ctx, now);
	rec = record_reserve_of(WAFFLE_SOURCE_WAITS, cpu, sizeof(*rec));
	if (!rec)
		return 0;
	record_begin(&rec->rec, WAFFLE_REC_SAMPLE, task->pid, cpu);
	rec->rec.ts = now;
	rec->kernel_stack = kernel_stack;
	rec->user_stack = user_stack;
	rec->syscall = in_kernel ? task_syscall(task, args) : -1;
	rec->flags = in_kernel ? WAFFLE_SAMPLE_KERNEL : 0;
	rec->period_ns = config.sample_ns;
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
	return 0;
}
