/* SPDX-License-Identifier: Apache-2.0 */
/* The BPF programs of a session and their maps. Links are held by file descriptors, never pinned,
 * so everything is detached when this process ends, however it ends. */
#ifndef WAFFLE_KERNEL_KERNEL_H
#define WAFFLE_KERNEL_KERNEL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/python.h"
#include "bpf/record.h"
#include "bpf/shared.h"
#include "bpf/stack.h"
#include "bpf/wait.h"
#include "filter/plan.h"
#include "target/elf/object.h"
#include "util/error.h"

struct kernel;

struct kernel_options {
	struct waffle_config
		config;      /* as the programs get it, where kernel_open() does not set it */
	uint64_t ring_bytes; /* of each ring for spans; rounded up to a power of two */
	/* Limits for all rings, and for the switches of all CPUs, together; 0: no limit. */
	uint64_t ring_total, sched_total;
	bool sched;              /* record the scheduler; else no wait source is used, either */
	bool stacks;             /* stacks of some sites are requested */
	const char *cpus_folder; /* for tests; NULL: CPUS_FOLDER (cpus_internal.h) */
	bool requests;           /* follow the requests of servers */
	bool calls;              /* there may be calls: functions, USDT probes, tracepoints */
	bool python;             /* functions of Python may be watched */
	uint32_t targets_max;    /* maximum of processes at a time; 0: WAFFLE_MAX_TARGETS */
	bool filtered;           /* a filter decides in the kernel */
	bool defers;             /* and may decide about spans at their end */
};

/* Loads programs and maps; nothing is attached yet. */
int kernel_open(struct kernel **kernel, const struct kernel_options *options, struct error *err);
/* Detaches everything and frees the session's kernel side. */
void kernel_close(struct kernel *kernel);

/* Whether some process of the machine keeps its mmap_lock, for which a reader of its mappings may
 * wait for ever, or seems to. If one seems to, that takes 0.1 s to decide, of which a call takes
 * 20 ms at most while records are drained. */
bool kernel_locks_may_be_held(struct kernel *kernel);
/* Whether this process does, or seems to. */
bool kernel_lock_may_be_kept(struct kernel *kernel, uint32_t pid);
/* The same before uprobes of a file are set or removed, which may wait as well, and every fork() of
 * the machine with it: -EBUSY and a message about the file, -EAGAIN: not decided yet, or 0. */
int kernel_locks_check(struct kernel *kernel, const char *path, struct error *err);
/* The thread that keeps one; 0: none is known. */
uint32_t kernel_locks_holder(const struct kernel *kernel);
/* When it is looked at again; before that, the answer is the same. */
uint64_t kernel_locks_look_ts(const struct kernel *kernel);
/* From now on records are drained, so a call takes little time to look. */
void kernel_looks_briefly(struct kernel *kernel);

int kernel_target_add(struct kernel *kernel, pid_t pid, struct error *err);
/* The same for a process without its children, while the capture runs. Then calls `each` with the
 * states of all threads of the targets. */
int kernel_target_add_alone(struct kernel *kernel, pid_t pid,
			    int (*each)(const struct waffle_rec *rec, void *arg), void *arg,
			    struct error *err);
/*
 * When a target began its current program: at its last exec or, without one, at its fork. 0: before
 * the capture. UINT64_MAX: it is not a target, has ended, or its exec gained privileges. The BPF
 * programs note an exec before the program's first instruction, and so before the exec's record is
 * read.
 */
uint64_t kernel_program_since(const struct kernel *kernel, pid_t pid);
/*
 * Whether a target's exec gained privileges, so that nothing of it may be read. Once there was such
 * a target, processes that are not targets or have ended count as privileged, too, since they may
 * have run such a program.
 */
bool kernel_program_is_privileged(const struct kernel *kernel, pid_t pid);
/* The number of children that are not followed, because there were WAFFLE_MAX_TARGETS processes. */
uint64_t kernel_targets_refused(const struct kernel *kernel);

/* What has passed rate() of the filter, which limits the tracer as well (bpf/rate.h). */
uint64_t *kernel_rate_windows(struct kernel *kernel);

/* The number of WAFFLE_REC_FORK records written to the queues so far. */
uint64_t kernel_fork_count(const struct kernel *kernel);

/* Stops all recording at once, before anything is detached. */
void kernel_finish(struct kernel *kernel);
/* Attaches the tracepoints of the scheduler and of tasks. */
int kernel_attach(struct kernel *kernel, struct error *err);
/* Detaches them; sites are disarmed separately. */
void kernel_detach(struct kernel *kernel);

/* Calls `each` with the current state of every thread of the targets. */
int kernel_snapshot(struct kernel *kernel, bool at_end,
		    int (*each)(const struct waffle_rec *rec, void *arg), void *arg,
		    struct error *err);

/* A number for a stack that the kernel has given to none. Only after kernel_finish(). */
uint32_t kernel_stack_number(struct kernel *kernel);

/* The requested sources that this kernel has. */
uint32_t kernel_wait_sources(const struct kernel *kernel);

/* The number of CPUs whose perf events the kernel refused, so that they have no samples, or their
 * page faults are not counted. *problem: the last errno. */
uint32_t kernel_events_refused(const struct kernel *kernel, int *problem);

/* How often a thread that had blocked got a CPU although the kernel had reported no wake-up. */
uint64_t kernel_wakes_unreported(const struct kernel *kernel);

/* Why requests are not followed although that was asked for, as an errno; 0: they are. */
int kernel_requests_problem(const struct kernel *kernel);

/* Sets up CPUs that have come online since the last call, and calls `cpu_online` (may be NULL) for
 * each. */
void kernel_cpus_check(struct kernel *kernel, void (*cpu_online)(uint32_t cpu, void *arg),
		       void *arg);

/* Memory shared with the programs. */
uint32_t kernel_cpu_count(const struct kernel *kernel);
const struct waffle_cpu *kernel_cpu(const struct kernel *kernel, uint32_t cpu);
struct waffle_tail *kernel_tail(const struct kernel *kernel, uint32_t cpu);
const struct waffle_rec_switch *kernel_slot(const struct kernel *kernel, uint32_t cpu,
					    uint64_t position);

/*
 * Counts, per source, how often the kernel has skipped a run of a program, so that its record is
 * missing: the CPU was in the same program already, or in a bpf() system call. The kernel counts
 * this since 5.12 for programs at tracepoints of BTF, and since 6.7 for those of perf.
 */
void kernel_skipped(const struct kernel *kernel, uint64_t counts[WAFFLE_SOURCE_COUNT]);
/* How often a thread that began, ended, ran another program or got a name was skipped so. In
 * Linux 7.2, programs at these tracepoints can be preempted, and then skip those of other threads.
 */
uint64_t kernel_tasks_skipped(const struct kernel *kernel);

/*
 * The records of sites and calls are in ring buffers, and within one nearly in time order. Passes
 * the records of a ring to `take`, each with its `size`; a record is valid until `take` returns.
 * Ends after about `bytes`, because producers may always be faster than the caller. Malformed
 * records are passed, too. Returns whether the ring was found empty.
 */
typedef void kernel_take_fn(const void *rec, size_t size, void *arg);
bool kernel_ring_take(struct kernel *kernel, uint32_t ring, size_t bytes, kernel_take_fn *take,
		      void *arg);
/* Called by `take` to end the current call after this record. The ring counts as not empty. */
void kernel_take_enough(struct kernel *kernel);
/* Does the same for all rings in turn, until each of them was empty once. */
void kernel_take(struct kernel *kernel, kernel_take_fn *take, void *arg);
/* The ring buffers, for poll(). */
uint32_t kernel_ring_count(const struct kernel *kernel);
/* Size of a ring in bytes, and number of slots for switches of a CPU. */
uint64_t kernel_ring_bytes(const struct kernel *kernel);
uint32_t kernel_slot_count(const struct kernel *kernel);
int kernel_ring_fd(const struct kernel *kernel, uint32_t ring);

/* Call before arming with pid -1. BPF programs then check whether a hit is a target's. */
void kernel_probes_widen(struct kernel *kernel);
/* The map of targets, indexed by tgid, and the bitmap that rules out most other processes
 * (target_maybe() in bpf/shared.h). */
int kernel_targets(const struct kernel *kernel, const uint64_t **bits);

/* ---- stacks of spans and events ---- */

/* Whether any are requested. */
bool kernel_stacks_wanted(const struct kernel *kernel);
/* Allocates consecutive pages for tables and mappings (bpf/unwind.h). Returns the first one's
 * number or a negative errno. Pages are never freed, but may be reused. */
int64_t kernel_unwind_pages(struct kernel *kernel, uint32_t count);
/* Makes room for so many pages. One call for all that follow is faster: the kernel waits some
 * milliseconds each time. Returns 0 or a negative errno. */
int kernel_unwind_reserve(struct kernel *kernel, uint64_t count);
/* A page's memory, which the programs read. */
struct waffle_unwind_page *kernel_unwind_page(struct kernel *kernel, uint32_t page);
/* Sets the table of a file, for mappings that no kernel_stack_process() covers. */
void kernel_stack_file(struct kernel *kernel, const struct waffle_inode *inode,
		       const struct waffle_stack_file *file);
/* Sets the tables for stacks of a process; NULL: it has ended. */
int kernel_stack_process(struct kernel *kernel, pid_t pid,
			 const struct waffle_stack_process *process);

/* ---- functions of Python ---- */

#define KERNEL_WATCH_THREADS_MAX 2048

struct kernel_watch;

/*
 * Watches a function in a process: in all its threads, in those that they begin, and in children
 * if these are followed, until they call exec. Records WATCHED tell of it. Only if
 * kernel_options.python was set.
 * -ENOSPC: other tracers or debuggers use the CPU's registers for this; -EOPNOTSUPP, -ENODEV,
 * -ENOENT: the machine has none; -EINVAL: the kernel is older than 5.13; -EEXIST: another process
 * has another function at the same address; -E2BIG: too many functions are watched; -EUSERS: the
 * process has more than KERNEL_WATCH_THREADS_MAX threads.
 */
int kernel_watch_python(struct kernel *kernel, struct kernel_watch **watch, pid_t pid,
			const struct waffle_watch *function);
void kernel_watch_free(struct kernel_watch *watch);

/* ---- filters ---- */

/* Loads the programs of a class of the plan. Each class is loaded once, in the order of the
 * indexes, before a site of it is armed. */
int kernel_class_load(struct kernel *kernel, uint32_t index, const struct plan_class *class,
		      struct error *err);
uint32_t kernel_class_count(const struct kernel *kernel);
/* Size in bytes of the machine code of a class's program at hits, or at ends. 0: it has no program
 * of its own, or the kernel does not tell. */
uint32_t kernel_class_jited(const struct kernel *kernel, uint32_t index, bool at_end);

/* ---- spans and pairs that never end ---- */

/* A process has ended: the next sweep removes its spans and pairs from the kernel's tables. */
void kernel_forget(struct kernel *kernel, pid_t pid);
/*
 * Call it often. Once a second, or at once when a table is full, it removes obsolete entries: first
 * those of processes that have ended; if a table is more than half full, spans older than 5 s that
 * their threads have left (longjmp(), pthread_exit()); if it is nearly full, the oldest pairs.
 * Removed entries of living processes count as dropped.
 */
void kernel_sweep(struct kernel *kernel, uint64_t now_ns);

/* ---- calls ---- */

/*
 * Waits until the BPF programs for calls are loaded, which takes about 100 ms. A thread begins that
 * soon after kernel_attach(). Arming the first call waits, too. Returns 0 or the negative errno of
 * loading.
 */
int kernel_calls_ready(struct kernel *kernel);
/* Sets the fetch program of a call's site, before its probes are armed.
 * -E2BIG: there are WAFFLE_FETCH_PROGRAMS_MAX already. */
int kernel_fetch_program_set(struct kernel *kernel, uint32_t site,
			     const struct waffle_fetch_program *fetch_program);
/* Sets the tables of names that fetch programs refer to. */
int kernel_enums_set(struct kernel *kernel, const struct waffle_enum *enums, uint32_t count);
/* Attaches to a tracepoint, by its id in tracefs, as hits of a site whose fetch program is set.
 * `use` counts in a filtered session. */
struct arm_use;
int kernel_tracepoint_attach(struct kernel *kernel, uint64_t id, uint32_t site,
			     const struct arm_use *use);
/* The number of reads from arguments' addresses that failed. */
uint64_t kernel_call_faults(const struct kernel *kernel);
/* The number of calls dropped because their thread had WAFFLE_CALL_DEPTH_MAX open ones. */
uint64_t kernel_calls_too_deep(const struct kernel *kernel);

/* ---- arming ---- */

struct armed;

/* Whether one link can arm many probes of one process: 1, 0, or a negative errno. */
int uprobe_multi_try(void);
/* Whether this session does so; otherwise each probe takes two descriptors. */
bool kernel_arms_many(const struct kernel *kernel);

/* How a site of an object is armed. */
struct arm_use {
	enum plan_use use;
	uint32_t class;
};

/* An object in one process or, with pid -1, wherever the file is mapped. */
struct arm_request {
	const struct object *object;
	const char *path; /* a path to the file that is valid now */
	pid_t pid;
	uint32_t first_site; /* a hit's site is this + the site's index in the object */
	/* One for each site of the object; NULL: all are armed. Classes need a filter. */
	const struct arm_use *uses;
	const bool *stacks; /* for each site: its stacks are requested; NULL: none are */
	/* The filter decides only which sites are armed, since userspace filters their hits. */
	bool unfiltered;
};

/* Arms the probes of an object. *armed is NULL if there is nothing to arm. The kernel raises the
 * semaphores, and lowers them when the link is closed. */
int kernel_arm(struct kernel *kernel, struct armed **armed, const struct arm_request *request,
	       struct error *err);
/* The number of probes left out because another tracer, such as bpftrace, uses them with another
 * semaphore. */
size_t armed_refused(const struct armed *armed);
/* Probes left out because the kernel can't probe such an instruction. */
struct armed_unsupported {
	size_t count;
	uint64_t first; /* offset in the file */
};
struct armed_unsupported armed_unsupported(const struct armed *armed);
void armed_release(struct armed *armed);
/* Releases many, in the time of one. NULLs are skipped. */
void armed_release_all(struct armed *const *list, size_t count);
/* Does the same in another thread, since the kernel takes some 50 ms. */
void kernel_disarm_later(struct kernel *kernel, struct armed *const *list, size_t count);
/* Whether that thread has released all. */
bool kernel_is_disarmed(const struct kernel *kernel);
/* Leaves the thread alone, which may wait for ever for a process that keeps its mmap_lock. Then
 * this process can't end before that, but do all else. */
void kernel_disarm_give_up(struct kernel *kernel);

/* A function of the running kernel. */
struct kernel_symbol {
	char name[256];  /* "vfs_read", or with its module: "ext4_map_blocks [ext4]" */
	uint32_t offset; /* bytes from its beginning */
};

/*
 * Finds the function at an address in the kernel. False: it has no name. Names are valid for this
 * boot, and those of modules and BPF programs while they are loaded. Only for sessions that take
 * stacks, and for one thread at a time.
 */
bool kernel_symbol_find(const struct kernel *kernel, uint64_t address,
			struct kernel_symbol *symbol);

/* Whether a system call can wait, and its first argument is a descriptor. */
bool kernel_waits_for_descriptor(int syscall);

#endif
