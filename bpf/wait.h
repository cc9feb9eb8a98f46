/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Details of waits. They are collected when a thread leaves a CPU, and recorded when it gets one
 * again, unless the wait was short. So a thread that waits for microseconds, hundreds of thousands
 * of times a second, costs next to nothing.
 */
#ifndef WAFFLE_WAIT_H
#define WAFFLE_WAIT_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

/* The kinds of details, each selected by --sources. */
enum waffle_wait_source {
	WAFFLE_WAIT_STACKS = 1, /* user and kernel stacks of who waits and who wakes */
	WAFFLE_WAIT_FILES = 2,  /* which file, socket or pipe a system call waits for */
	WAFFLE_WAIT_FAULTS = 4, /* page faults */
	WAFFLE_WAIT_IO = 8,     /* requests to block devices */
	WAFFLE_WAIT_SIGNALS = 16,
	WAFFLE_WAIT_QUOTA = 32, /* throttling by a cgroup's CPU quota */
	WAFFLE_WAIT_STEAL = 64, /* CPU time that a hypervisor took */
	WAFFLE_WAIT_FREQUENCY = 128,
	WAFFLE_WAIT_SAMPLES = 256, /* periodic samples of what threads run */
};

#define WAFFLE_STACK_DEPTH 64
#define WAFFLE_STACKS_MAX 16384 /* stacks that are recorded once */

/* The last recorded frequency of a CPU. */
struct waffle_frequency {
	__u32 khz;
	__u32 max_khz; /* for the next record, as are the flags */
	__u32 flags;
	__u32 reserved;
};

#ifdef __VMLINUX_H__

#include "shared.h"
#include "stack.h"

#if defined(__TARGET_ARCH_x86)
#define NR_OPEN 2
#define NR_POLL 7
#define NR_IOCTL 16
#define NR_SELECT 23
#define NR_SENDFILE 40
#define NR_PSELECT6 270
#define NR_PPOLL 271
#define NR_NANOSLEEP 35
#define NR_CLOCK_NANOSLEEP 230
#define NR_IO_SUBMIT 209
#define NR_EPOLL_WAIT 232
#define NR_OPENAT 257
#define NR_EPOLL_PWAIT 281
#elif defined(__TARGET_ARCH_arm64)
#define NR_IOCTL 29
#define NR_OPENAT 56
#define NR_OPEN NR_OPENAT /* the architecture has no open() */
#define NR_SENDFILE 71
#define NR_PSELECT6 72
#define NR_PPOLL 73
#define NR_NANOSLEEP 101
#define NR_CLOCK_NANOSLEEP 115
#define NR_IO_SUBMIT 2
#define NR_POLL NR_PPOLL /* the architecture has neither poll() nor select() */
#define NR_SELECT NR_PSELECT6
#define NR_EPOLL_PWAIT 22
#define NR_EPOLL_WAIT NR_EPOLL_PWAIT
#endif
#define NR_OPENAT2 437
#define NR_EPOLL_PWAIT2 441

#define ANON_INODE_FS_MAGIC 0x09041934 /* include/uapi/linux/magic.h */
#define PF_EXITING 0x00000004          /* include/linux/sched.h */
#define PF_IO_WORKER 0x00000010
#define FAULTS_GAP_NS 1000000 /* minor page faults of a thread are reported together */

/* A bit for each CPU: whether ends of page faults are reported there. On a CPU that has just come
 * online they are not yet. */
extern __u64 fault_cpus[WAFFLE_CPU_WORDS];

/* Numbers of the stacks that were recorded. A stack that the LRU has evicted is recorded again,
 * under another number. */
struct stack_key {
	__u64 hash;
	__u32 tgid; /* 0: a stack of the kernel */
	__u32 count;
};

extern struct stacks_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, WAFFLE_STACKS_MAX);
	__type(key, struct stack_key);
	__type(value, __u32);
} stacks SEC(".maps");

/*
 * Space for a stack until its number is known. The scheduler's programs run with interrupts off and
 * can share one. Programs at other tracepoints may interrupt any other program, so they have their
 * own.
 */
enum stack_place { STACK_OF_SCHEDULER, STACK_OF_POINT, STACK_OF_SNAPSHOT, STACK_PLACES };
struct stack_scratch {
	__u64 hash;
	__u64 addresses[WAFFLE_STACK_DEPTH];
};

extern struct stack_scratches_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, STACK_PLACES);
	__type(key, __u32);
	__type(value, struct stack_scratch);
} stack_scratches SEC(".maps");

extern __u32 stack_numbers; /* the last number given */

/* Global, so that the verifier checks it once. */
int stack_hash(struct stack_scratch *scratch, __u32 count);

/* A record may refer to a stack that another CPU records a little later. */
#define TRACE_AHEAD_NS 1000000

/* Records a stack of `tgid` (0: the kernel's) and returns its number; 0: the record was dropped.
 * Global, so that the verifier checks it once. */
int trace_emit(struct stack_scratch *scratch, __u32 count, __u32 tgid, __u64 now);

/* Returns the number of the current stack. 0: there is none, or its record was dropped. */
static __noinline __attribute__((unused)) __u32 stack_number(void *ctx, __u64 flags, __u64 now,
							     __u32 place)
{
	struct stack_scratch *scratch = bpf_map_lookup_elem(&stack_scratches, &place);
	struct stack_key key = {};
	__u32 *known, number;
	long bytes;

	if (!scratch)
		return 0;
	bytes = bpf_get_stack(ctx, scratch->addresses, sizeof(scratch->addresses), flags);
	if (bytes <= 0)
		return 0;
	key.count = bytes / sizeof(__u64);
	if (flags & BPF_F_USER_STACK)
		key.tgid = bpf_get_current_task_btf()->tgid;
	stack_hash(scratch, key.count);
	key.hash = scratch->hash;
	known = bpf_map_lookup_elem(&stacks, &key);
	if (known)
		return *known;
	number = trace_emit(scratch, key.count, key.tgid, now);
	if (number) /* otherwise the next wait with this stack records it */
		bpf_map_update_elem(&stacks, &key, &number, BPF_ANY);
	return number;
}

/*
 * Stacks cost more than everything else, so they may take 1/400 of a CPU's time. A program that
 * waits 20,000 times a second would need much more. So each stack uses up 400 times its cost from a
 * credit that grows with time. Long waits may use more of the credit: there are few of them, and
 * they have to be explained when threads that tick every few milliseconds have used up the rest.
 */
#define STACK_KERNEL_PRICE_NS 1400000 /* for 3.5 µs with its record; on Linux 6.18, x86-64 */
#define STACK_USER_PRICE_NS 400000    /* for 1 µs */
#define STACK_TABLES_PRICE_NS 2000000 /* for 5 µs, some twenty frames */
#define STACK_PYTHON_PRICE_NS 80000   /* a frame of Python, for 0.2 µs */
#define STACK_CREDIT_NS 100000000
enum stack_worth {
	STACK_OF_SHORT = 8,
	STACK_OF_TICK = 4,    /* the wait takes at least STACK_TICK_NS */
	STACK_OF_LONG = 2,    /* the wait takes at least STACK_LONG_NS, as that of many who poll */
	STACK_OF_LONGEST = 1, /* the wait takes at least STACK_LONGEST_NS */
};
#define STACK_TICK_NS 1000000
#define STACK_LONG_NS 10000000
#define STACK_LONGEST_NS 30000000

static __always_inline enum stack_worth stack_worth(__u64 waited_ns)
{
	return waited_ns >= STACK_LONGEST_NS ? STACK_OF_LONGEST
	       : waited_ns >= STACK_LONG_NS  ? STACK_OF_LONG
	       : waited_ns >= STACK_TICK_NS  ? STACK_OF_TICK
					     : STACK_OF_SHORT;
}

/* Takes a stack and returns its number; 0: there is none, or no credit for it. */
static __always_inline __u32 stack_take(void *ctx, __u64 flags, __u64 now, enum stack_worth worth)
{
	struct waffle_cpu *cpu = cpu_get(bpf_get_smp_processor_id());
	__u64 paid;

	if (!cpu)
		return 0;
	paid = (cpu->stacks_ts > now ? cpu->stacks_ts : now) +
	       (!(flags & BPF_F_USER_STACK) ? STACK_KERNEL_PRICE_NS
		: config.stack_tables       ? STACK_TABLES_PRICE_NS
					    : STACK_USER_PRICE_NS);
	if (paid > now + STACK_CREDIT_NS / worth)
		return 0;
	cpu->stacks_ts = paid;
	if (flags & BPF_F_USER_STACK && config.stack_tables) {
		cpu->stacks_ts = paid + (__u64)stack_emit(0, now, 0, WAFFLE_STACK_WAIT) *
						STACK_PYTHON_PRICE_NS;
		return WAFFLE_STACK_BY_FRAMES;
	}
	return stack_number(ctx, flags, now, STACK_OF_SCHEDULER);
}

/*
 * The same task as an untrusted pointer, which loads much faster. From Linux 6.4 on, the verifier
 * compares each field that is followed from a trusted pointer with lists of safe ones, by linear
 * searches through all types of the kernel. That takes 1 ms each time, most of the load time. The
 * program's instructions are the same. Only one of the linked files may name this function (libbpf
 * 1.4): bpf/sched.bpf.c.
 */
extern void *bpf_rdonly_cast(const void *obj, __u32 btf_id) __ksym __weak;

static __always_inline struct task_struct *task_untrusted(struct task_struct *task)
{
	return bpf_ksym_exists(bpf_rdonly_cast) ? bpf_rdonly_cast(task, config.task_struct_number)
						: task;
}

#define QUOTA_LEVELS 4 /* a cgroup and its parents whose quotas are looked at */

/* The time for which the cgroups of a task have been throttled, summed over all CPUs and levels. */
static __always_inline __u64 throttled_ns(struct task_struct *task)
{
	struct task_group *group;
	__u64 ns = 0;

	if (!(config.wait_sources & WAFFLE_WAIT_QUOTA) ||
	    !bpf_core_field_exists(struct task_group, cfs_bandwidth))
		return 0;
	group = task_untrusted(task)->sched_task_group;
	for (int level = 0; level < QUOTA_LEVELS && group; level++) {
		ns += group->cfs_bandwidth.throttled_time;
		group = group->parent;
	}
	return ns;
}

static __always_inline bool faults_are_counted(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return fault_cpus[(cpu >> 6) & (WAFFLE_CPU_WORDS - 1)] >> (cpu & 63) & 1;
}

/* Notes which descriptors poll(2), select(2) or io_submit(2) of the current thread waits for. The
 * lists are in the memory of the thread, which can be read only while the thread still has its CPU.
 * Global, so that the verifier checks it once. */
int polled_read(struct polled *polled);

static __always_inline bool has_polled(__s32 syscall)
{
	return syscall == NR_POLL || syscall == NR_PPOLL || syscall == NR_SELECT ||
	       syscall == NR_PSELECT6 || syscall == NR_IO_SUBMIT;
}

/* The kernel may delay the end of a sleep by 50 us, unless the program has asked for another slack.
 * One below this hardly matters. */
#define SLACK_LONG_NS 1000000

/* Notes for how long the current thread wants to sleep. Like polled_read(). */
int asked_read(__u64 *asked_ns, __u64 now);

/* The sleep has ended, which the thread began at from_ts. Global, so that the verifier checks it
 * once. */
int late_sleep_emit(__u64 from_ts, __u64 asked_ns, __u64 slack_ns, __u32 tid, __u64 now);

static __always_inline bool is_slack_sleep(struct task_struct *task, __s32 syscall)
{
	return (syscall == NR_CLOCK_NANOSLEEP || syscall == NR_NANOSLEEP) &&
	       task->timer_slack_ns >= SLACK_LONG_NS;
}

/* The kernel counts the task's wait as memory pressure (PSI). */
static __always_inline bool task_stalls(struct task_struct *task)
{
	return bpf_core_field_exists(task->in_memstall) &&
	       BPF_CORE_READ_BITFIELD_PROBED(task, in_memstall);
}

/*
 * The length of a wait is not known when its stack is taken, but threads repeat themselves. A
 * thread with long waits often has a few short ones between two of them: a Python thread waits for
 * an event, and then twice for the interpreter's lock. So a stack is taken of each wait until this
 * many in a row were short. How much of the credit it may use depends on the longest one of late.
 */
#define LONG_RECENT 4

/*
 * A new thread has no past, but others of its program may have waited at the same place. A server
 * may have a thread or a process for each connection, which first waits a few times for a lock, and
 * then once for long. So we also note how long waits took of late at each site: the instruction
 * that made the system call, which is the same in a forked child. The sites share few slots. A slot
 * has the low bits of the site's hash and the time, in units that are 0 for short waits: so these
 * do not change it, and the CPUs do not compete for its cache line. There is no lock, as a wrong
 * time costs no more than a stack.
 */
#define WAIT_SITE_BITS 12
#define WAIT_SITE_TAG 0xffffffff00000000ull
#define WAIT_SITE_UNIT_SHIFT 16 /* 66 us */

extern struct wait_sites_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1 << WAIT_SITE_BITS);
	__type(key, __u32);
	__type(value, __u64);
} wait_sites SEC(".maps");

static __always_inline __u64 wait_site(struct task_struct *task, __s32 syscall)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);

	return syscall < 0 ? 0 : (PT_REGS_IP(regs) ^ (__u64)syscall << 48) * 0x9e3779b97f4a7c15ull;
}

static __always_inline __u64 *wait_site_slot(__u64 site)
{
	__u32 index = site >> (64 - WAIT_SITE_BITS);

	return bpf_map_lookup_elem(&wait_sites, &index);
}

static __always_inline bool wait_site_owns(__u64 site, __u64 slot)
{
	return slot && !((slot ^ site << 32) & WAIT_SITE_TAG);
}

/* How long a wait there is expected to take. Of a new site, one stack is worth a try. */
static __always_inline __u64 wait_site_ns(__u64 site)
{
	__u64 *slot = site ? wait_site_slot(site) : NULL;

	if (!slot)
		return 0;
	return wait_site_owns(site, *slot) ? (*slot & ~WAIT_SITE_TAG) << WAIT_SITE_UNIT_SHIFT
					   : STACK_TICK_NS;
}

/* A wait at the site has taken so long. As with a thread, each wait leaves a quarter of the
 * longest one. */
static __always_inline void wait_site_note(__u64 site, __u64 ns)
{
	__u64 *slot = wait_site_slot(site), units = ns >> WAIT_SITE_UNIT_SHIFT, before;

	if (!slot)
		return;
	before = wait_site_owns(site, *slot) ? (*slot & ~WAIT_SITE_TAG) / 4 : 0;
	units = units > before ? units : before;
	if (units > ~WAIT_SITE_TAG)
		units = ~WAIT_SITE_TAG;
	if (*slot != (site << 32 | units))
		*slot = site << 32 | units;
}

/* A thread leaves its CPU. `blocks`: it waits for something, else it stays runnable. */
static __always_inline void wait_begin(void *ctx, struct thread_wait *wait,
				       struct task_struct *task, __u64 now, bool blocks,
				       __u16 task_state, __s32 syscall)
{
	enum stack_worth worth;
	__u64 site_ns;

	wait->from_ts = now;
	wait->blocks = blocks;
	wait->site = 0;
	wait->kernel_stack = 0;
	wait->user_stack = 0;
	wait->throttled_ns = throttled_ns(task);
	wait->uninterruptible = blocks && task_state & WAFFLE_TASK_UNINTERRUPTIBLE;
	wait->stalls = wait->uninterruptible && task_stalls(task);
	wait->polled.count = 0;
	wait->asked_ns = 0;
	if (is_slack_sleep(task, syscall) && config.wait_sources & WAFFLE_WAIT_FILES)
		asked_read(&wait->asked_ns, now);
	if (has_polled(syscall) && config.wait_sources & WAFFLE_WAIT_FILES)
		polled_read(&wait->polled);
	/* A page fault that ended in a signal was never counted by the kernel. */
	if (task_state & (WAFFLE_TASK_STOPPED | WAFFLE_TASK_TRACED) ||
	    (syscall >= 0 && (__s64)wait->fault_ip >= 0))
		wait->fault_ts = 0;
	if (!blocks || !(config.wait_sources & WAFFLE_WAIT_STACKS))
		return;
	wait->site = wait_site(task, syscall);
	site_ns = wait_site_ns(wait->site);
	wait->site_short = !site_ns;
	worth = stack_worth(site_ns > wait->lately_ns ? site_ns : wait->lately_ns);
	/* The system call does not explain page faults, device drivers and file systems, nor the
	 * opening of a named pipe. */
	if (task_state == WAFFLE_TASK_UNINTERRUPTIBLE || syscall < 0 || syscall == NR_IOCTL ||
	    syscall == NR_OPEN || syscall == NR_OPENAT || syscall == NR_OPENAT2)
		wait->kernel_stack = stack_take(ctx, 0, now, worth);
	if (wait->long_ago || site_ns >= STACK_TICK_NS ||
	    now - wait->stack_ts >= config.stack_gap_ns) {
		wait->stack_ts = now;
		wait->user_stack = stack_take(ctx, BPF_F_USER_STACK, now, worth);
	}
}

static __always_inline bool call_is_in(const volatile __u64 *calls, __s32 number)
{
	__u32 syscall = number, word = syscall / 64;

	barrier_var(word); /* else clang removes the mask, which the verifier needs */
	word &= WAFFLE_SYSCALLS_MAX / 64 - 1;
	return syscall < WAFFLE_SYSCALLS_MAX && calls[word] >> (syscall & 63) & 1;
}

static __always_inline struct fdtable *files_of(struct task_struct *task)
{
	struct files_struct *files = task_untrusted(task)->files;

	return files ? BPF_CORE_READ(files, fdt) : NULL;
}

static __always_inline struct file *file_in(struct fdtable *table, __u32 descriptor)
{
	struct file *file = NULL, **files_at;

	if (descriptor >= BPF_CORE_READ(table, max_fds)) /* 0 without a table */
		return NULL;
	files_at = BPF_CORE_READ(table, fd) + descriptor;
	return bpf_probe_read_kernel(&file, sizeof(file), files_at) ? NULL : file;
}

/* Records the details of a wait, if it has any. `who`: tgid and tid of the thread. `files`: the
 * address of its struct fdtable; 0: it did not wait for descriptors. `descriptor`: the
 * argument of its system call that is the descriptor in calls like read(). Global, so that the
 * verifier checks it once. */
int details_emit(struct thread_wait *wait, __u64 who, __u64 files, __u32 descriptor, __u64 now);

/*
 * The file of the request that a worker of io_uring executes, which has no descriptor. The worker
 * keeps its request until that is done. 0: the task is no such worker, it has no request, or that
 * has no file.
 */
static __always_inline __u64 request_file(struct task_struct *task)
{
	struct io_worker *worker;
	struct io_wq_work *work;

	if (!(task_untrusted(task)->flags & PF_IO_WORKER) ||
	    !bpf_core_field_exists(task->worker_private) ||
	    !bpf_core_field_exists(struct io_worker, cur_work) ||
	    !bpf_core_field_exists(struct io_kiocb, file) ||
	    !bpf_core_field_exists(struct io_kiocb, work))
		return 0;
	worker = BPF_CORE_READ(task, worker_private);
	work = BPF_CORE_READ(worker, cur_work);
	if (!work)
		return 0;
	return (__u64)BPF_CORE_READ(
		(struct io_kiocb *)((void *)work - bpf_core_field_offset(struct io_kiocb, work)),
		file);
}

static __noinline __attribute__((unused)) void wait_emit(struct thread_wait *wait,
							 struct task_struct *task, __u64 now)
{
	__u64 args[WAFFLE_SYSCALL_ARGS] = {};
	struct fdtable *files = NULL;
	__u32 descriptor;

	wait->request_file = 0;
	if (config.wait_sources & WAFFLE_WAIT_FILES) {
		wait->request_file = request_file(task);
		wait->syscall = task_syscall(task, args);
		if (call_is_in(config.descriptor_calls, wait->syscall) || wait->polled.count)
			files = files_of(task);
	}
	/* sendfile() gets the file to read from after the socket to write to. */
	descriptor =
		(__u32)(wait->uninterruptible && wait->syscall == NR_SENDFILE ? args[1] : args[0]);
	details_emit(wait, (__u64)task->tgid << 32 | (__u32)task->pid, (__u64)files, descriptor,
		     now);
}

/* A wait of thread `tid` ends, for `ns` of which its cgroups were throttled. `group`: the address
 * of its struct task_group. Global, so that the verifier checks it once. */
int quota_emit(__u64 group, __u32 tid, __u64 ns, __u64 now);

/* A wait of thread `tid` ends. Records the memory limit that its cgroup has reached, if any.
 * `cgroups`: the address of its struct css_set. Global, so that the verifier checks it once. */
int memory_emit(__u64 cgroups, __u32 tid, __u64 now, __u32 flags);

static __noinline __attribute__((unused)) void stolen_emit(struct task_struct *task, __u64 from_ts,
							   __u64 stolen_ns, __u64 now)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct waffle_rec_stolen *rec = record_reserve_of(WAFFLE_SOURCE_WAITS, cpu, sizeof(*rec));

	if (!rec)
		return;
	record_begin(&rec->rec, WAFFLE_REC_STOLEN, task->pid, cpu);
	rec->rec.ts = now;
	rec->from_ts = from_ts;
	rec->stolen_ns = stolen_ns;
	rec->flags = config.steal_by_tick ? WAFFLE_STOLEN_BY_TICK : 0;
	rec->reserved = 0;
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
}

/*
 * The stolen time of the CPU that a task is on, as of the scheduler's last clock update: at a
 * switch or a tick. The scheduler does not count this time as the task's CPU time
 * (CONFIG_PARAVIRT_TIME_ACCOUNTING, update_rq_clock_task()). Kernels without that option only have
 * the value of /proc/stat, which is counted at ticks (steal_account_process_time()).
 */
static __always_inline __u64 cpu_stolen_ns(struct task_struct *task)
{
	if (!(config.wait_sources & WAFFLE_WAIT_STEAL))
		return 0;
	if (!config.steal_by_tick)
		return task->se.cfs_rq->rq->prev_steal_time_rq;
	return task->se.cfs_rq->rq->prev_steal_time;
}

/* Records the time that was stolen from a thread since the last call, unless it was short. */
static __always_inline void stolen_check(struct thread_state *state, struct task_struct *task,
					 __u64 stolen_ns, __u64 now)
{
	__u64 ns = stolen_ns - state->stolen_ns, from_ts = state->on_ts;

	/* More than the thread ran: it moved while the CPU's number was read. */
	if (!from_ts || ns < config.wait_min_ns || ns > now - from_ts)
		return;
	state->stolen_ns = stolen_ns;
	stolen_emit(task, from_ts, ns, now);
}

/* Faults are reported together, at most every millisecond and when the thread leaves its CPU. */
static __noinline __attribute__((unused)) void
faults_emit(struct thread_wait *wait, struct task_struct *task, __u64 now, __u32 flags)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct waffle_rec_fault *rec = record_reserve_of(WAFFLE_SOURCE_WAITS, cpu, sizeof(*rec));

	if (rec) {
		record_begin(&rec->rec, WAFFLE_REC_FAULT, task->pid, cpu);
		rec->rec.ts = now;
		rec->from_ts = wait->faults_from_ts;
		rec->total_ns = wait->faults_ns;
		rec->address = wait->fault_address;
		rec->ip = wait->fault_ip;
		rec->count = wait->faults;
		rec->flags = flags;
		bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
	}
	wait->faults = 0;
	wait->faults_ns = 0;
}

#define LATE_MORE_NS 1000000 /* that an interrupt may come late */

/* Whether a sleep took much longer than asked, by the thread's timer slack. If it took longer than
 * that, the thread was stopped meanwhile. */
static __always_inline bool is_late(const struct thread_wait *wait, struct task_struct *task,
				    __u64 slept_ns)
{
	return wait->asked_ns && slept_ns >= 2 * wait->asked_ns &&
	       slept_ns <= wait->asked_ns + task->timer_slack_ns + LATE_MORE_NS;
}

/* A thread gets a CPU again. woken_ts: the time of its wake-up; 0: it stayed runnable. */
static __always_inline void wait_end(struct thread_wait *wait, struct task_struct *task,
				     __u64 woken_ts, __u64 now)
{
	__u64 ns = now - wait->from_ts, runnable, throttled;

	if (!wait->from_ts)
		return;
	if (wait->blocks)
		wait->lately_ns = ns > wait->lately_ns / 4 ? ns : wait->lately_ns / 4;
	if (wait->site && (!wait->site_short || ns >> WAIT_SITE_UNIT_SHIFT))
		wait_site_note(wait->site, ns);
	if (ns < config.wait_min_ns) {
		wait->long_ago -= wait->blocks && wait->long_ago;
		return;
	}
	if (wait->blocks) {
		wait->long_ago = LONG_RECENT;
		wait_emit(wait, task, now);
		if (wait->uninterruptible && config.wait_sources & WAFFLE_WAIT_QUOTA)
			memory_emit((__u64)BPF_CORE_READ(task, cgroups), task->pid, now,
				    wait->stalls ? WAFFLE_MEMORY_STALL : 0);
	}
	runnable = woken_ts > wait->from_ts ? now - woken_ts : ns;
	if (is_late(wait, task, ns - runnable))
		late_sleep_emit(wait->from_ts, wait->asked_ns, task->timer_slack_ns, task->pid,
				now);
	if (!(config.wait_sources & WAFFLE_WAIT_QUOTA) || runnable < config.wait_min_ns)
		return;
	throttled = throttled_ns(task) - wait->throttled_ns;
	if (throttled)
		quota_emit((__u64)BPF_CORE_READ(task, sched_task_group), task->pid,
			   throttled < runnable ? throttled : runnable, now);
}

/* The current thread wakes one that has waited for at least wait_min_ns. */
static __noinline __attribute__((unused)) void wake_emit(void *ctx, struct task_struct *woken,
							 __u32 flags, __u64 now, __u64 waited_ns)
{
	struct task_struct *waker = bpf_get_current_task_btf();
	enum stack_worth worth = stack_worth(waited_ns);
	__u32 cpu = bpf_get_smp_processor_id(), user_stack = 0, kernel_stack;
	struct waffle_rec_wake *rec;

	if (!flags && !(waker->flags & PF_KTHREAD))
		user_stack = stack_take(ctx, BPF_F_USER_STACK, now, worth);
	/* The stack shows an interrupt even if it interrupted a system call of the waker. */
	kernel_stack = stack_take(ctx, 0, now, worth);
	/* Without stacks it adds nothing: the switch record has the waker and the time. */
	if (!user_stack && !kernel_stack)
		return;
	rec = record_reserve_of(WAFFLE_SOURCE_WAITS, cpu, sizeof(*rec));
	if (!rec)
		return;
	record_begin(&rec->rec, WAFFLE_REC_WAKE, waker->pid, cpu);
	rec->rec.ts = now;
	rec->woken_tid = woken->pid;
	rec->flags = flags;
	rec->kernel_stack = kernel_stack;
	rec->user_stack = user_stack;
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
}

#endif
#endif
