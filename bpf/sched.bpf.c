// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * The scheduler, for the target's threads only. A wake-up costs no record: it is remembered in the
 * woken thread and travels with the switch that brings it onto a CPU.
 */
#include "vmlinux.h"
#include "shared.h"
#include "wait.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct waffle_rec_switch);
} sched_ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct waffle_tail);
} sched_tails SEC(".maps");

/*
 * Whether an interrupt woke the thread rather than what `waker` itself did. The preemption counter
 * would say it, but per-CPU symbols can't be reached on kernels without KALLSYMS_ALL. Sure signs:
 * the idle task wakes nobody, and a user thread that is not in a system call is in the kernel
 * because it was interrupted. An interrupt that arrives during a system call is not told apart.
 */
static __always_inline __u32 interrupt_flags(struct task_struct *waker)
{
	__u64 args[WAFFLE_SYSCALL_ARGS];

	if (!waker->pid)
		return WAFFLE_SWITCH_WAKER_HARDIRQ;
	if (waker->flags & PF_KTHREAD)
		return 0;
	return task_syscall(waker, args) < 0 ? WAFFLE_SWITCH_WAKER_HARDIRQ : 0;
}

#define WAKER_FLAGS (WAFFLE_SWITCH_WAKER_HARDIRQ | WAFFLE_SWITCH_WAKER_SOFTIRQ)

static __always_inline void woken(void *ctx, struct task_struct *task, __u32 flags)
{
	struct thread_state *state = thread_get(task);
	struct task_struct *waker;

	if (!state)
		return;
	waker = bpf_get_current_task_btf();
	if (!target_maybe(waker->tgid))
		name_stranger(waker);
	state->wake_ts = bpf_ktime_get_ns();
	state->waker_tid = waker->pid;
	state->wake_flags = flags | interrupt_flags(waker);
	if (wait_sources & WAFFLE_WAIT_STACKS && state->wait.blocks &&
	    state->wake_ts - state->wait.from_ts >= wait_min_ns)
		wake_emit(ctx, task, state->wake_flags & WAKER_FLAGS, state->wake_ts,
			  state->wake_ts - state->wait.from_ts);
}

SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *task)
{
	woken(ctx, task, WAFFLE_SWITCH_WOKEN);
	return 0;
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(on_wakeup_new, struct task_struct *task)
{
	woken(ctx, task, WAFFLE_SWITCH_WOKEN | WAFFLE_SWITCH_NEW);
	return 0;
}

/* The next slot of this CPU, or NULL after counting the loss. */
static __always_inline struct waffle_rec_switch *slot_next(struct waffle_cpu *state, __u32 cpu)
{
	__u32 index = cpu * sched_slots + (state->head & (sched_slots - 1));
	struct waffle_tail *tail = bpf_map_lookup_elem(&sched_tails, &cpu);

	state->produced[WAFFLE_SOURCE_SCHED]++;
	if (!tail || state->head - tail->tail >= sched_slots) {
		state->dropped[WAFFLE_SOURCE_SCHED]++;
		return NULL;
	}
	return bpf_map_lookup_elem(&sched_ring, &index);
}

static __always_inline void slot_publish(struct waffle_cpu *state)
{
#if defined(__TARGET_ARCH_x86)
	barrier(); /* stores are seen in order */
	state->head++;
#else
	__sync_fetch_and_add(&state->head, 1);
#endif
}

/* Fills in who comes onto the CPU and who woke it. */
static __always_inline __u32 slot_next_thread(struct waffle_rec_switch *rec,
					      struct thread_state *to)
{
	__u32 flags = WAFFLE_SWITCH_NEXT_TRACED | to->wake_flags;

	rec->waker_tid = to->waker_tid;
	rec->wake_ts = to->wake_ts;
	to->wake_flags = 0;
	return flags;
}

/*
 * A thread leaves a CPU that it was never seen to come onto. Some kernels do not report every
 * switch (seen on 6.18: those away from certain threads). Its CPU time tells since when it ran, so
 * the missing switch is written now; from whom is not known.
 */
static __noinline void switch_in_missed(struct waffle_cpu *state, struct thread_state *from,
					struct task_struct *task, __u32 cpu, __u64 ran_ns)
{
	struct waffle_rec_switch *rec = slot_next(state, cpu);

	if (!rec)
		return;
	record_begin(&rec->rec, WAFFLE_REC_SWITCH, 0, cpu);
	rec->rec.ts -= ran_ns;
	rec->next_tid = task->pid;
	rec->prev_state = 0;
	rec->syscall = -1;
	rec->flags = slot_next_thread(rec, from);
	if (rec->wake_ts > rec->rec.ts)
		rec->wake_ts = rec->rec.ts;
	rec->reserved = 0;
	slot_publish(state);
}

static __always_inline void thread_leaves(struct waffle_cpu *state, struct thread_state *from,
					  struct task_struct *task, __u32 cpu, __u64 stolen_ns,
					  __u64 now)
{
	__u64 exec_ns = task->se.sum_exec_runtime;

	if (from->on_cpu == THREAD_OFF_CPU)
		switch_in_missed(state, from, task, cpu, exec_ns - from->exec_ns);
	from->exec_ns = exec_ns;
	stolen_tell(from, task, stolen_ns, now);
	from->on_ts = 0;
	from->on_cpu = THREAD_OFF_CPU;
	from->wait.from_ts = 0;
	if (from->wait.faults)
		faults_emit(&from->wait, task, bpf_ktime_get_ns(), 0);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	struct thread_state *from, *to;
	struct waffle_rec_switch *rec;
	struct waffle_cpu *state;
	__u32 cpu, flags = 0;
	__u64 now, stolen_ns;

	if (finished || (!target_maybe(prev->tgid) && !target_maybe(next->tgid)))
		return 0;
	now = bpf_ktime_get_ns(); /* before all that may miss the caches of a CPU that slept */
	from = thread_get(prev);
	to = thread_get(next);
	if (!from) {
		barrier_var(to); /* else clang ors the pointers, which the verifier forbids */
		if (!to)
			return 0;
	}
	cpu = bpf_get_smp_processor_id();
	state = cpu_get(cpu);
	if (!state)
		return 0;
	/* Of the traced one: the kernel has just used what leads there from it. */
	stolen_ns = from ? cpu_stolen_ns(prev) : cpu_stolen_ns(next);
	if (from)
		thread_leaves(state, from, prev, cpu, stolen_ns, now);
	if (to) {
		to->on_cpu = THREAD_ON_CPU;
		to->on_ts = now;
		to->stolen_ns = stolen_ns;
		wait_end(&to->wait, next, to->wake_flags ? to->wake_ts : 0, now);
	}
	rec = slot_next(state, cpu);
	if (!rec)
		return 0;
	record_begin(&rec->rec, WAFFLE_REC_SWITCH, prev->pid, cpu);
	rec->rec.ts = now;
	rec->next_tid = next->pid;
	rec->prev_state = preempt ? WAFFLE_TASK_PREEMPTED : 0;
	if (from) {
		flags |= WAFFLE_SWITCH_PREV_TRACED;
		prev_state |= prev->exit_state;
		if (preempt || !prev_state) {
			flags |= WAFFLE_SWITCH_PREEMPTED;
			rec->syscall = -1;
		} else {
			rec->prev_state = task_state_normal(prev_state);
			rec->syscall = task_syscall(prev, rec->args);
		}
		wait_begin(ctx, &from->wait, prev, now, !(flags & WAFFLE_SWITCH_PREEMPTED),
			   rec->prev_state, rec->syscall);
	} else {
		name_stranger(prev);
		rec->syscall = -1;
	}
	if (to) {
		flags |= slot_next_thread(rec, to);
	} else {
		name_stranger(next);
		rec->waker_tid = 0;
		rec->wake_ts = 0;
	}
	rec->flags = flags;
	rec->reserved = 0;
	slot_publish(state);
	return 0;
}
