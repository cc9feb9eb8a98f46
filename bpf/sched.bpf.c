// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Records switches of the target's threads. A wake-up makes no record: it is stored with the woken
 * thread, and the switch that brings the thread onto a CPU records it. */
#include "vmlinux.h"
#include "shared.h"
#include "thread_name.bpf.h"
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

#if defined(__TARGET_ARCH_x86)
#define TASK_STACK_BYTES 16384 /* THREAD_SIZE, arch/x86/include/asm/page_64_types.h */
#elif defined(__TARGET_ARCH_arm64)
#define TASK_STACK_BYTES 65536 /* THREAD_SIZE with 64 KB pages; 16 KB with others */
#endif
#define S_IFMT 00170000 /* include/uapi/linux/stat.h */
#define S_IFSOCK 0140000

/*
 * Whether the kernel runs on an interrupt's stack rather than the task's. A tracepoint's arguments
 * lie on the current stack, so their address shows it. An interrupt in user mode uses the task's
 * stack. The verifier forbids arithmetic on the pointer, so we turn it into a number by storing it
 * in a map.
 */
static __always_inline bool on_interrupt_stack(void *ctx, struct task_struct *task,
					       struct thread_state *scratch)
{
	*(void *volatile *)&scratch->place = ctx;
	return *(volatile __u64 *)&scratch->place - (__u64)task->stack >= TASK_STACK_BYTES;
}

/* A packet that a thread sends to its own machine arrives in a softirq within the send. */
static __always_inline bool in_socket_call(struct task_struct *task)
{
	__u64 args[WAFFLE_SYSCALL_ARGS];
	__s32 syscall = task_syscall(task, args);
	struct file *file;

	if (call_is_in(config.socket_calls, syscall))
		return true;
	if (!call_is_in(config.descriptor_calls, syscall))
		return false;
	file = file_in(files_of(task), (__u32)args[0]);
	return file && (BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) == S_IFSOCK;
}

/*
 * Whether an interrupt, not `waker` itself, woke the thread. The preemption counter would tell, but
 * per-CPU symbols are out of reach on kernels without KALLSYMS_ALL. Instead: the idle task wakes
 * nobody; a user thread outside a system call is in the kernel because of an interrupt, unless a
 * signal ends it there; code on an interrupt's stack belongs to an interrupt, unless it is the
 * softirq that receives the waker's own packet.
 */
static __always_inline __u32 interrupt_flags(void *ctx, struct task_struct *waker,
					     struct thread_state *woken)
{
	__u64 args[WAFFLE_SYSCALL_ARGS];

	if (!waker->pid)
		return WAFFLE_SWITCH_WAKER_HARDIRQ;
	if (on_interrupt_stack(ctx, waker, woken))
		return in_socket_call(waker) ? 0 : WAFFLE_SWITCH_WAKER_HARDIRQ;
	if (waker->flags & (PF_KTHREAD | PF_EXITING))
		return 0;
	return task_syscall(waker, args) < 0 ? WAFFLE_SWITCH_WAKER_HARDIRQ : 0;
}

#define WAKER_FLAGS (WAFFLE_SWITCH_WAKER_HARDIRQ | WAFFLE_SWITCH_WAKER_SOFTIRQ)

/* The number of the target's threads that wait for a CPU. Each CPU's is on its own cache line, as
 * any CPU may change it. */
struct waiting {
	__s32 threads;
	__u32 padding[15];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct waiting);
} waiting SEC(".maps");

/* Counts a thread on the CPU where it waits to run. While a CPU has such threads, all its
 * switches are recorded, to show which threads they wait for. `number`: the CPU's + 1; 0: it
 * does not wait. */
static __always_inline void waits_for(struct thread_state *state, __u32 number)
{
	__u32 cpu = state->waits_for - 1; /* no CPU has number -1 */
	struct waiting *count;

	if (state->waits_for == number)
		return;
	if (!state->waits_for)
		state->moved = 0;
	count = bpf_map_lookup_elem(&waiting, &cpu);
	if (count)
		__sync_fetch_and_add(&count->threads, -1);
	state->waits_for = number;
	cpu = number - 1;
	count = bpf_map_lookup_elem(&waiting, &cpu);
	if (count)
		__sync_fetch_and_add(&count->threads, 1);
}

/* How long a thread that is woken has waited, if that needs details; 0: it does not. A wait that
 * began before the capture counts as just long enough: only the stack of its end shows what it was
 * for. */
static __always_inline __u64 waited_long(const struct thread_state *state)
{
	__u64 waited_ns;

	if (!(config.wait_sources & WAFFLE_WAIT_STACKS))
		return 0;
	if (state->on_cpu == THREAD_UNSEEN)
		return config.wait_min_ns ?: 1;
	if (!state->wait.blocks)
		return 0;
	waited_ns = state->wake_ts - state->wait.from_ts;
	return waited_ns >= config.wait_min_ns ? waited_ns ?: 1 : 0;
}

/* A thread of the target wakes another one, perhaps for the first time. */
static __always_inline void waker_name(struct task_struct *waker, __u64 now)
{
	struct thread_state *state;

	if (now - waker->start_time >= THREAD_NAME_NEW_NS)
		return;
	state = bpf_task_storage_get(&threads, waker, NULL, 0);
	if (state && state->name_tries > 1)
		thread_name_try(state, waker);
}

/* The program of new threads, WAFFLE_SWITCH_NEW, has no code that walks stacks or reads names, as
 * the verifier would check that once more at each start. A thread that starts another one has its
 * name read when it wakes an older one, or blocks. */
static __always_inline void woken(void *ctx, struct task_struct *task, __u32 flags)
{
	struct thread_state *state = finished ? NULL : thread_get(task);
	struct task_struct *waker;
	__u64 waited_ns;

	if (!state)
		return;
	waker = bpf_get_current_task_btf();
	state->wake_ts = bpf_ktime_get_ns();
	if (!target_maybe(waker->tgid))
		name_stranger(waker);
	else if (!(flags & WAFFLE_SWITCH_NEW))
		waker_name(waker, state->wake_ts);
	state->waker_tid = waker->pid;
	state->wake_flags = flags | interrupt_flags(ctx, waker, state);
	if (state->on_cpu != THREAD_ON_CPU)
		waits_for(state, task->thread_info.cpu + 1);
	/* A new thread has not waited. */
	if (flags & WAFFLE_SWITCH_NEW)
		return;
	waited_ns = waited_long(state);
	if (waited_ns)
		wake_emit(ctx, task, state->wake_flags & WAKER_FLAGS, state->wake_ts, waited_ns);
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

SEC("tp_btf/sched_migrate_task")
int BPF_PROG(on_migrate, struct task_struct *task, int cpu)
{
	struct thread_state *state;

	if (finished || !target_maybe(task->tgid))
		return 0;
	state = thread_get(task);
	if (!state || !state->waits_for)
		return 0;
	/* A wake-up selects the CPU before it puts the thread onto a run queue. */
	if (task->on_rq)
		state->moved = 1;
	waits_for(state, cpu + 1);
	return 0;
}

/* The next slot of this CPU. NULL: all are full, which is counted. */
static __always_inline struct waffle_rec_switch *slot_next(struct waffle_cpu *state, __u32 cpu)
{
	struct waffle_tail *tail = bpf_map_lookup_elem(&sched_tails, &cpu);
	struct waffle_rec_switch *slot = NULL;
	__u32 index;

	state->produced[WAFFLE_SOURCE_SCHED]++;
	if (tail && state->head - tail->tail < config.sched_slots) {
		index = tail->row * config.sched_slots + (state->head & (config.sched_slots - 1));
		slot = bpf_map_lookup_elem(&sched_ring, &index);
	}
	if (!slot)
		state->dropped[WAFFLE_SOURCE_SCHED]++;
	return slot;
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

/* Fills in the thread that gets the CPU, and its waker. */
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
 * A thread leaves a CPU but no switch to it was reported. Some kernels do not report every switch
 * (docs/internals.md, "The scheduler"). Its CPU time shows how long it ran. So we write the missing
 * switch now, from an unknown thread.
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
	stolen_check(from, task, stolen_ns, now);
	from->on_ts = 0;
	from->on_cpu = THREAD_OFF_CPU;
	from->wait.from_ts = 0;
	if (from->wait.faults)
		faults_emit(&from->wait, task, bpf_ktime_get_ns(), 0);
}

/* A CPU that a traced thread waits for switches between two threads outside the target. */
static __noinline void strangers_switch(struct task_struct *prev, struct task_struct *next)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct waiting *count = bpf_map_lookup_elem(&waiting, &cpu);
	struct waffle_cpu *state;
	struct waffle_rec_switch *rec;

	if (!count || count->threads <= 0)
		return;
	state = cpu_get(cpu);
	if (!state)
		return;
	rec = slot_next(state, cpu);
	if (!rec)
		return;
	record_begin(&rec->rec, WAFFLE_REC_SWITCH, prev->pid, cpu);
	name_stranger(prev);
	name_stranger(next);
	rec->next_tid = next->pid;
	rec->waker_tid = 0;
	rec->wake_ts = 0;
	rec->prev_state = 0;
	rec->flags = 0;
	rec->reserved = 0;
	rec->syscall = -1;
	slot_publish(state);
}

__u64 wakes_unreported; /* blocked threads that came onto a CPU without a wake-up */

static __always_inline void thread_arrives(struct thread_state *to, struct task_struct *task,
					   __u64 stolen_ns, __u64 now)
{
	to->on_cpu = THREAD_ON_CPU;
	to->on_ts = now;
	to->stolen_ns = stolen_ns;
	waits_for(to, 0);
	if (!to->wake_flags && to->wait.blocks && to->wait.from_ts)
		__sync_fetch_and_add(&wakes_unreported, 1);
	wait_end(&to->wait, task, to->wake_flags ? to->wake_ts : 0, now);
	if (to->wait.fault_ts && !faults_are_counted())
		to->wait.fault_ts = 0; /* its end won't be seen */
}

/* Fills in why a traced thread leaves its CPU. */
static __always_inline __u32 slot_prev_thread(void *ctx, struct waffle_rec_switch *rec,
					      struct thread_state *from, struct task_struct *task,
					      bool preempt, unsigned int state, __u64 now)
{
	__u32 flags = WAFFLE_SWITCH_PREV_TRACED;

	state |= task->exit_state;
	if (preempt || !state) {
		flags |= WAFFLE_SWITCH_PREEMPTED;
		rec->syscall = -1;
	} else {
		rec->prev_state = task_state_normal(state);
		rec->syscall = task_syscall(task, rec->args);
	}
	wait_begin(ctx, &from->wait, task, now, !(flags & WAFFLE_SWITCH_PREEMPTED), rec->prev_state,
		   rec->syscall);
	return flags;
}

/* Does what thread_make_late() does. If a thread of the target gets no state, its switch counts
 * as dropped. */
static __noinline struct thread_state *thread_make_late_counted(struct task_struct *task)
{
	struct thread_state *state = thread_make_late(task);
	__u32 tgid = task->tgid;

	if (!state && bpf_map_lookup_elem(&targets, &tgid))
		loss_count_of(WAFFLE_SOURCE_SCHED, 1);
	return state;
}

static __always_inline struct thread_state *thread_switching(struct task_struct *task)
{
	struct thread_state *state;

	if (!target_maybe(task->tgid))
		return NULL;
	state = bpf_task_storage_get(&threads, task, NULL, 0);
	return state ?: thread_make_late_counted(task);
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

	if (finished)
		return 0;
	if (!target_maybe(prev->tgid) && !target_maybe(next->tgid)) {
		strangers_switch(prev, next);
		return 0;
	}
	now = bpf_ktime_get_ns(); /* first, as the rest may miss the caches of a CPU that slept */
	from = thread_switching(prev);
	to = thread_switching(next);
	if (!from) {
		barrier_var(to); /* else clang ORs the pointers, which the verifier forbids */
		if (!to)
			return 0;
	}
	cpu = bpf_get_smp_processor_id();
	state = cpu_get(cpu);
	if (!state)
		return 0;
	/* Reads the run queue through the traced thread, whose run queue is still in the cache. */
	stolen_ns = cpu_stolen_ns(task_untrusted(from ? prev : next));
	if (from) {
		thread_leaves(state, from, prev, cpu, stolen_ns, now);
		waits_for(from, preempt || !prev_state ? cpu + 1 : 0);
	}
	if (to) {
		if (to->waits_for == cpu + 1 && !to->moved)
			flags = WAFFLE_SWITCH_STAYED;
		thread_arrives(to, next, stolen_ns, now);
	}
	rec = slot_next(state, cpu);
	if (!rec)
		return 0;
	record_begin(&rec->rec, WAFFLE_REC_SWITCH, prev->pid, cpu);
	rec->rec.ts = now;
	rec->next_tid = next->pid;
	rec->prev_state = preempt ? WAFFLE_TASK_PREEMPTED : 0;
	if (from) {
		flags |= slot_prev_thread(ctx, rec, from, prev, preempt, prev_state, now);
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
	if (from && from->name_tries && from->wait.blocks)
		thread_name_try(from, prev);
	return 0;
}
