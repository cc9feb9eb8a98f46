/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the BPF programs share with each other and with userspace: maps, switches, counters. Records
 * leave the kernel in two ways. Spans, events and tasks go through BPF ring buffers, one for a
 * group of CPUs. Switches are too frequent for that, and the scheduler's tracepoints run with
 * interrupts off. So each CPU writes them into fixed slots of its own, without lock or wake-up.
 * Userspace polls for both.
 */
#ifndef WAFFLE_SHARED_H
#define WAFFLE_SHARED_H

#include "record.h"

#ifndef __VMLINUX_H__
#include <stdbool.h>
#endif

/* A CPU's counters and the head of its slots, mapped by userspace; alone on its cache line. */
struct waffle_cpu {
	__u64 head; /* slots written */
	__u64 produced[WAFFLE_SOURCE_COUNT];
	__u64 dropped[WAFFLE_SOURCE_COUNT];
	__u64 stacks_ts; /* the stacks taken so far have used up the budget until then (wait.h) */
};
_Static_assert(sizeof(struct waffle_cpu) == 64, "one cache line");

/* For each CPU: the number of slots that userspace has read, and the row of slots that the CPU
 * owns. Only userspace writes it. */
struct waffle_tail {
	__u64 tail;
	__u32 row; /* WAFFLE_NO_ROW: none, its switches are dropped */
	__u32 reserved;
	__u64 padding[6];
};
#define WAFFLE_NO_ROW 0xffffffffu
#define WAFFLE_CPU_WORDS 128 /* 8,192 CPUs, the maximum of NR_CPUS */

#define WAFFLE_SYSCALLS_MAX 512

/*
 * What a capture asks of the BPF programs. It is filled on the way from the command line to the
 * kernel (session_options, then kernel_options), and copied into the programs' constants once,
 * before they are loaded. A new capture option is a member here and a row of CAPTURE_OPTION_ROWS
 * (userspace/cmd/capture_options_internal.h), at session.kernel.config.NAME.
 */
struct waffle_config {
	bool follow_children; /* children of targets are targets */
	bool call_points;     /* some calls may be at tracepoints */
	bool stack_tables;    /* user stacks of waits are unwound by tables (stack.h) */
	bool filter_tracks;   /* the filter's expression refers to parents */
	bool keep_children;   /* everything inside a kept span is kept */
	__u32 wait_sources;   /* enum waffle_wait_source */
	__u64 wait_min_ns;    /* shorter waits have no details */
	__u64 stack_gap_ns;   /* between two user stacks of a thread with short waits */
	__u64 sample_ns;      /* between two samples of a CPU */
	__u64 rate_unit_ns;   /* rate() of the filter; 0: none */
	__u32 rate_count;     /* hits that pass in each unit */
	__u32 sched_slots; /* slots for switches of a CPU; kernel_open() makes it a power of two */

	/* kernel_open() sets these. */
	bool call_stacks;    /* some call requests stacks */
	bool call_filtered;  /* a filter decides about calls */
	bool steal_by_tick;  /* stolen time is only known at ticks: cpu_stolen_ns() */
	bool storage_is_old; /* for tests: behave as on kernels before 6.4 */
	__u32 ring_shift;    /* CPUs per ring, as a power of two */
	__u32 page_bytes;
	__u32 tracer_tgid;
	__u32 task_struct_number; /* BTF id of struct task_struct in the kernel */
	__u64 call_seed;
	/* Bits of the system calls whose first argument is a descriptor, and a socket's one. */
	__u64 descriptor_calls[WAFFLE_SYSCALLS_MAX / 64];
	__u64 socket_calls[WAFFLE_SYSCALLS_MAX / 64];
};

/* A file by device and inode, in the kernel's encoding. */
struct waffle_inode {
	__u64 ino;
	__u32 dev;
	__u32 reserved;
};

#define WAFFLE_MAX_TARGETS 16384
#define WAFFLE_MAX_NAMED 16384
#define WAFFLE_TGID_WORDS 1024

/* The values of the map of targets. */
#define WAFFLE_TARGET 1u
/* Only what it does itself is recorded: no children and no requests, and its programs are not held.
 */
#define WAFFLE_TARGET_ALONE 2u

/* The program of a target. */
struct waffle_program {
	__u64 since; /* time of its last exec, or of its fork; 0: before the capture */
	/* Its exec gained privileges (set-user-ID, file capabilities). Nothing of its memory is
	 * recorded, as the user who started it must not read that. */
	__u64 privileged;
};

#ifdef __VMLINUX_H__

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

/* Set before loading, so that the verifier leaves out what is off. */
extern const volatile struct waffle_config config;

/* Set while running. */
extern __u64 tgid_bits[WAFFLE_TGID_WORDS];
extern bool sweep_wanted;    /* a table was full; kernel/sweep.c must run */
extern bool privileged_seen; /* a target has run a program that gained privileges */
extern bool probes_wide;     /* a probe is armed in all processes */
extern bool finished; /* set at the end of the capture, so that all recording stops together */

/* The first descriptors that poll(2) or select(2) waits for, or the one of io_submit(2); -1: none.
 * The count is greater if there are more. 0: another wait, or they are unknown. */
struct polled {
	__u32 count;
	__u32 descriptors[WAFFLE_POLLED_MAX];
};

/* The last time that a thread left its CPU, and its page faults (wait.h). */
struct thread_wait {
	__u64 from_ts;
	__u64 throttled_ns; /* throttled time of its cgroups at from_ts */
	__u64 stack_ts;     /* when a user stack was last taken */
	__u64 lately_ns;    /* the longest wait of late: each wait leaves a quarter of it */
	__u64 site;         /* where the program made the system call: wait_site(); 0: none */
	__u64 asked_ns;     /* a sleep of a thread with a long timer slack; 0: it is none */
	__u32 kernel_stack, user_stack;
	__u64 fault_ts, fault_address, fault_ip; /* of the current page fault; fault_ts 0: none */
	__u64 minor_flt, major_flt;              /* the thread's counters when that fault began */
	/* Faults not yet reported. */
	__u64 faults_from_ts, faults_ns;
	__u32 faults;
	bool blocks;
	bool site_short; /* waits at the site were short of late, so another short one is no news */
	bool uninterruptible, stalls; /* stalls: for memory, according to the kernel */
	__u8 long_ago; /* from LONG_RECENT, at a long wait, down to 0, at each short one */
	struct polled polled;
	__s32 syscall;      /* set when the wait ends */
	__u64 request_file; /* the same: address of the struct file of its request; 0: none */
};

/* A thread of the target. */
struct thread_state {
	__u64 wake_ts;
	__u32 waker_tid;
	__u32 wake_flags; /* WAFFLE_SWITCH_WOKEN and the kind of waker; 0: not woken */
	__u64 exec_ns;    /* its CPU time when it last left a CPU */
	__u32 on_cpu;     /* THREAD_* */
	__u32 waits_for;  /* number + 1 of the CPU where it waits to run; 0: it does not wait */
	__u32 moved;      /* it moved to another CPU during this wait */
	__u32 name_tries; /* how often its name in Python is still read (thread_name.bpf.h) */
	__u64 refused_ts; /* its last LOCK_REFUSAL or REQUEST_FAILURE; 0: none */
	__u64 connect_ts; /* its last connect() that was noted (request.bpf.c); 0: none */
	__u64 place;      /* scratch: an address as a number */
	/* The time at which the thread got its CPU (0: unknown), and the CPU's stolen time at
	 * that moment. */
	__u64 on_ts, stolen_ns;
	struct thread_wait wait;
};
enum { THREAD_UNSEEN, THREAD_ON_CPU, THREAD_OFF_CPU };

/* The shared maps are defined in task.bpf.c. Userspace sets sizes that depend on the machine. */
extern struct cpus_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct waffle_cpu);
} cpus SEC(".maps");

extern struct targets_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WAFFLE_MAX_TARGETS);
	__type(key, __u32);
	__type(value, __u32);
} targets SEC(".maps");

/* This map is as large as `targets`, since the memory of a target without an entry here is not
 * read. */
extern struct programs_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WAFFLE_MAX_TARGETS);
	__type(key, __u32);
	__type(value, struct waffle_program);
} programs SEC(".maps");

extern struct threads_map {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread_state);
} threads SEC(".maps");

/* Threads outside the target whose names were recorded, by tid. The value is their start time, as
 * tids are reused. A thread that the LRU evicts is recorded again. */
extern struct named_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, WAFFLE_MAX_NAMED);
	__type(key, __u32);
	__type(value, __u64);
} named SEC(".maps");

struct ring_map {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
};

extern struct rings_map {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct ring_map);
} rings SEC(".maps");

static __always_inline struct waffle_cpu *cpu_get(__u32 cpu)
{
	return bpf_map_lookup_elem(&cpus, &cpu);
}

static __always_inline void *ring_get(__u32 cpu)
{
	__u32 index = cpu >> config.ring_shift;

	return bpf_map_lookup_elem(&rings, &index);
}

/* False: the process is no target. One bit decides nearly always, since most processes of a
 * machine are not traced. */
static __always_inline bool target_maybe(__u32 tgid)
{
	return tgid_bits[(tgid >> 6) & (WAFFLE_TGID_WORDS - 1)] >> (tgid & 63) & 1;
}

static __always_inline bool target_has(__u32 tgid)
{
	return target_maybe(tgid) && bpf_map_lookup_elem(&targets, &tgid);
}

/* Whether a process is a WAFFLE_TARGET. */
static __always_inline bool target_is_whole(__u32 tgid)
{
	const __u32 *value = target_maybe(tgid) ? bpf_map_lookup_elem(&targets, &tgid) : NULL;

	return value && *value == WAFFLE_TARGET;
}

/* The counters are atomic because a probe may be preempted by another one on its CPU. */
static __always_inline void record_count(enum waffle_source source, __u32 cpu, bool is_dropped)
{
	struct waffle_cpu *counters = cpu_get(cpu);

	if (!counters)
		return;
	__sync_fetch_and_add(&counters->produced[source], 1);
	if (is_dropped)
		__sync_fetch_and_add(&counters->dropped[source], 1);
}

/* Reserves a record of a fixed size in a ring and counts it. */
#define record_reserve(cpu, size) record_reserve_of(WAFFLE_SOURCE_SPANS, cpu, size)
#define record_reserve_of(source, cpu, size)                                                       \
	({                                                                                         \
		void *ring_ = ring_get(cpu), *record_ = NULL;                                      \
		if (ring_)                                                                         \
			record_ = bpf_ringbuf_reserve(ring_, size, 0);                             \
		record_count(source, cpu, !record_);                                               \
		record_;                                                                           \
	})

/* Counts records that could not be made, as produced and dropped. */
static __always_inline void loss_count_of(enum waffle_source source, __u64 count)
{
	struct waffle_cpu *cpu = cpu_get(bpf_get_smp_processor_id());

	if (!cpu || !count)
		return;
	__sync_fetch_and_add(&cpu->produced[source], count);
	__sync_fetch_and_add(&cpu->dropped[source], count);
}

static __always_inline void loss_count(__u64 count)
{
	loss_count_of(WAFFLE_SOURCE_SPANS, count);
}

static __always_inline void record_begin(struct waffle_rec *rec, enum waffle_rec_kind kind,
					 __u32 tid, __u32 cpu)
{
	rec->ts = bpf_ktime_get_ns();
	rec->tid = tid;
	rec->kind = kind;
	rec->cpu = cpu;
}

#define PF_KTHREAD 0x00200000 /* include/linux/sched.h */

/* Records a thread's process and name: when it is first seen, and when it is renamed (`comm` is its
 * new name; else NULL). */
static __noinline void task_emit(struct task_struct *task, const char *comm, __u32 flags)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct waffle_rec_task *rec = finished ? NULL : record_reserve(cpu, sizeof(*rec));

	if (!rec)
		return;
	record_begin(&rec->rec, WAFFLE_REC_TASK, task->pid, cpu);
	rec->tgid = task->tgid;
	rec->flags = flags |
		     (task->flags & PF_KTHREAD ? WAFFLE_TASK_KERNEL_FLAG : WAFFLE_TASK_USER_FLAG);
	rec->start_ts = task->start_time;
	__builtin_memset(rec->comm, 0, sizeof(rec->comm));
	bpf_probe_read_kernel_str(rec->comm, sizeof(rec->comm), comm ?: task->comm);
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
}

/* Flags of a thread outside the target. The tracer's workers may be its grandchildren, and so may
 * be children of its command that are not followed. */
static __always_inline __u32 stranger_flags(struct task_struct *task)
{
	__u32 tracer = config.tracer_tgid;
	__u32 parent = BPF_CORE_READ(task, real_parent, tgid);
	__u32 grandparent = BPF_CORE_READ(task, real_parent, real_parent, tgid);
	bool own = (__u32)task->tgid == tracer || parent == tracer ||
		   (grandparent == tracer && !target_has(parent));

	return own ? WAFFLE_TASK_OWN_FLAG : 0;
}

/* Records the name of a thread outside the target, once. */
static __always_inline void name_stranger(struct task_struct *task)
{
	__u32 tid = task->pid;
	__u64 start = task->start_time, *known;

	if (!tid)
		return;
	known = bpf_map_lookup_elem(&named, &tid);
	if (known && *known == start)
		return;
	if (!bpf_map_update_elem(&named, &tid, &start, BPF_ANY))
		task_emit(task, NULL, stranger_flags(task));
}

/* Linux 6.4 added the first one; a later version replaced it by the second. */
struct bpf_local_storage_map___new {
	bool bpf_ma, use_kmalloc_nolock;
} __attribute__((preserve_access_index));

/* Whether programs on the scheduler's tracepoints may create task storage. Kernels before 6.4
 * allocate it with kmalloc(), which may wake kswapd: a deadlock under a run queue's lock. */
static __always_inline bool scheduler_allocates(void)
{
	return !config.storage_is_old &&
	       (bpf_core_field_exists(struct bpf_local_storage_map___new, bpf_ma) ||
		bpf_core_field_exists(struct bpf_local_storage_map___new, use_kmalloc_nolock));
}

/* Makes the state of a thread of the target. NULL: out of memory, or this interrupted another
 * program that works on the thread's storage. */
static __noinline __attribute__((unused)) struct thread_state *thread_make(struct task_struct *task)
{
	struct thread_state *state =
		bpf_task_storage_get(&threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (state)
		task_emit(task, NULL, WAFFLE_TASK_TRACED_FLAG);
	return state;
}

/* Makes the state of a thread that did not get one at its fork, if that is allowed here. */
static __noinline __attribute__((unused)) struct thread_state *
thread_make_late(struct task_struct *task)
{
	__u32 tgid = task->tgid;

	if (!scheduler_allocates() || !bpf_map_lookup_elem(&targets, &tgid))
		return NULL;
	return thread_make(task);
}

/* The state of a thread of the target. NULL for all other threads and if it can't be made
 * (thread_make()). */
static __always_inline struct thread_state *thread_get(struct task_struct *task)
{
	struct thread_state *state;

	if (!target_maybe(task->tgid))
		return NULL;
	state = bpf_task_storage_get(&threads, task, NULL, 0);
	return state ?: thread_make_late(task);
}

/* Whether a thread belongs to a target. Call it only in programs that may allocate memory. */
static __always_inline bool thread_is_traced(struct task_struct *task)
{
	__u32 tgid = task->tgid;

	if (!target_maybe(tgid))
		return false;
	if (bpf_task_storage_get(&threads, task, NULL, 0))
		return true;
	if (!bpf_map_lookup_elem(&targets, &tgid))
		return false;
	thread_make(task);
	return true;
}

/* A thread may be refused something very often, and one record is made in this time. */
#define REFUSED_GAP_NS 100000

static __always_inline bool refusal_is_due(__u64 *last_ts)
{
	__u64 now = bpf_ktime_get_ns();

	if (now - *last_ts < REFUSED_GAP_NS)
		return false;
	*last_ts = now;
	return true;
}

#define X86_TS_COMPAT 2u         /* arch/x86/include/asm/thread_info.h */
#define ARM64_PSR_MODE32 0x10ull /* arch/arm64/include/uapi/asm/ptrace.h: PSR_MODE32_BIT */

/* The fifth argument of the system call that a thread is in. */
static __always_inline __u64 task_syscall_fifth(struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);

#if defined(__TARGET_ARCH_x86)
	return regs->r8;
#elif defined(__TARGET_ARCH_arm64)
	return regs->regs[4];
#endif
}

/* The system call that a thread is in, and its first arguments. -1: none, or one of a 32-bit
 * program, which have other numbers. */
static __always_inline __s32 task_syscall(struct task_struct *task, __u64 args[WAFFLE_SYSCALL_ARGS])
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);

#if defined(__TARGET_ARCH_x86)
	args[0] = regs->di;
	args[1] = regs->si;
	args[2] = regs->dx;
	return task->thread_info.status & X86_TS_COMPAT ? -1 : (__s32)regs->orig_ax;
#elif defined(__TARGET_ARCH_arm64)
	args[0] = regs->orig_x0;
	args[1] = regs->regs[1];
	args[2] = regs->regs[2];
	return regs->pstate & ARM64_PSR_MODE32 ? -1 : regs->syscallno;
#endif
}

/* Normalises a raw state as the kernel's own tracepoint does:
 * __task_state_index() of include/linux/sched.h. */
static __always_inline __u16 task_state_normal(__u32 state)
{
	if ((state & 0x402) == 0x402) /* TASK_UNINTERRUPTIBLE | TASK_NOLOAD */
		return WAFFLE_TASK_IDLE;
	if (state & 0x9000) /* TASK_RTLOCK_WAIT, TASK_FROZEN */
		return WAFFLE_TASK_UNINTERRUPTIBLE;
	state &= 0x7f;
	state |= state >> 1;
	state |= state >> 2;
	state |= state >> 4;
	return state - (state >> 1); /* the highest bit */
}

#endif
#endif
