// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* The target's processes and threads: fork, exec, rename, exit, and a snapshot of all. */
#include "vmlinux.h"
#include "shared.h"
#include "python_thread.bpf.h"
#include "stack.h"
#include "thread_name.bpf.h"
#include "thread_storage.bpf.h"
#include "uprobe.bpf.h"
#include "wait.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile struct waffle_config config = {};
const volatile bool never = false;

__u64 tgid_bits[WAFFLE_TGID_WORDS];
__u64 fault_cpus[WAFFLE_CPU_WORDS];
bool privileged_seen;
bool probes_wide;
bool finished;
bool snapshot_at_end;
bool sweep_wanted;
__u32 stack_numbers;
__u64 targets_refused; /* processes that did not fit into `targets` */
__u64 forks;           /* WAFFLE_REC_FORK records that were submitted */

struct cpus_map cpus SEC(".maps");
struct targets_map targets SEC(".maps");
struct programs_map programs SEC(".maps");
struct threads_map threads SEC(".maps");
struct call_threads_map call_threads SEC(".maps");
struct stack_walks_map stack_walks SEC(".maps");
struct named_map named SEC(".maps");
struct rings_map rings SEC(".maps");
struct stacks_map stacks SEC(".maps");
struct stack_scratches_map stack_scratches SEC(".maps");
struct wait_sites_map wait_sites SEC(".maps");
struct no_programs_map no_programs SEC(".maps");

__noinline int stack_hash(struct stack_scratch *scratch, __u32 count)
{
	__u64 hash = count;

	if (!scratch)
		return 0;
	for (__u32 i = 0; i < WAFFLE_STACK_DEPTH; i++) {
		if (i >= count)
			break;
		hash = (hash ^ scratch->addresses[i]) * 0x9e3779b97f4a7c15ull;
		hash ^= hash >> 29;
	}
	scratch->hash = hash;
	return 0;
}

/* Reserves `room` bytes for the addresses. It is a constant, as the verifier demands. */
static __always_inline __u32 trace_write(const struct stack_scratch *scratch, __u32 room,
					 __u32 count, __u32 tgid, __u64 now)
{
	__u32 cpu = bpf_get_smp_processor_id(), size = count * sizeof(__u64), number;
	struct waffle_rec_trace *rec =
		record_reserve_of(WAFFLE_SOURCE_WAITS, cpu, sizeof(*rec) + room);

	if (!rec)
		return 0;
	/* Never 0 or WAFFLE_STACK_BY_FRAMES. */
	number = __sync_fetch_and_add(&stack_numbers, 1) % (WAFFLE_STACK_BY_FRAMES - 1) + 1;
	record_begin(&rec->rec, WAFFLE_REC_TRACE, bpf_get_current_task_btf()->pid, cpu);
	rec->rec.ts = now - TRACE_AHEAD_NS;
	rec->number = number;
	rec->tgid = tgid;
	rec->reserved = 0;
	barrier_var(size); /* checked next to its use, for the verifier of 6.1 */
	if (size > room || bpf_probe_read_kernel(rec + 1, size, scratch->addresses))
		size = 0;
	rec->frame_bytes = size;
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
	return number;
}

__noinline int trace_emit(struct stack_scratch *scratch, __u32 count, __u32 tgid, __u64 now)
{
	if (!scratch)
		return 0;
	if (count <= 16)
		return trace_write(scratch, 16 * sizeof(__u64), count, tgid, now);
	if (count <= 32)
		return trace_write(scratch, 32 * sizeof(__u64), count, tgid, now);
	return trace_write(scratch, WAFFLE_STACK_DEPTH * sizeof(__u64), count, tgid, now);
}

/* Records the pending faults of a thread that exits. Later ones are not recorded. */
static __always_inline void faults_flush(struct task_struct *task)
{
	struct thread_state *state = bpf_task_storage_get(&threads, task, NULL, 0);

	if (state && state->wait.faults)
		faults_emit(&state->wait, task, bpf_ktime_get_ns(), 0);
}

static __always_inline void program_begins(__u32 tgid, bool privileged)
{
	struct waffle_program program = {.since = bpf_ktime_get_ns(), .privileged = privileged};

	if (privileged)
		privileged_seen = true;
	if (bpf_map_update_elem(&programs, &tgid, &program, BPF_ANY))
		bpf_map_delete_elem(&programs, &tgid);
}

/* Makes the state of a thread of the target, before it runs. */
static __always_inline struct thread_state *thread_born(struct task_struct *task)
{
	if (!scheduler_allocates() && config.stack_tables)
		bpf_task_storage_get(&stack_walks, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!scheduler_allocates() && config.call_points)
		bpf_task_storage_get(&call_threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	return bpf_task_storage_get(&threads, task, NULL, 0) ?: thread_make(task);
}

static __always_inline __u64 *tgid_word(__u32 tgid)
{
	return &tgid_bits[(tgid >> 6) & (WAFFLE_TGID_WORDS - 1)];
}

/* Adds a child to the targets. If there is no room it is not followed, and its FORK counts as
 * dropped. */
static __always_inline bool target_add(__u32 tgid, __u32 parent)
{
	const struct waffle_program *program = bpf_map_lookup_elem(&programs, &parent);
	__u32 value = WAFFLE_TARGET;

	if (bpf_map_update_elem(&targets, &tgid, &value, BPF_ANY)) {
		__sync_fetch_and_add(&targets_refused, 1);
		loss_count(1);
		return false;
	}
	program_begins(tgid, !program || program->privileged);
	/* The bit is set after the entry was added, since on_free() clears the bit and then
	 * looks up the entry again. */
	__sync_fetch_and_or(tgid_word(tgid), 1ull << (tgid & 63));
	return true;
}

/* Runs in the parent, before the child does. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 cpu = bpf_get_smp_processor_id(), tgid = child->tgid;
	struct thread_state *state;
	struct waffle_rec_fork *rec;

	if (finished || !target_has(parent->tgid))
		return 0;
	if (parent->tgid == child->tgid) {
		state = thread_born(child);
		if (state && thread_name_wanted(tgid))
			state->name_tries = THREAD_NAME_TRIES;
		return 0;
	}
	if (!target_is_whole(parent->tgid))
		return 0;
	if (config.follow_children) {
		if (!target_add(tgid, parent->tgid))
			return 0;
		stack_fork(parent->tgid, tgid);
	}
	rec = record_reserve(cpu, sizeof(*rec));
	if (rec) {
		record_begin(&rec->rec, WAFFLE_REC_FORK, parent->pid, cpu);
		rec->tgid = parent->tgid;
		rec->child_tgid = tgid | (BPF_CORE_READ(child, mm) == BPF_CORE_READ(parent, mm)
						  ? WAFFLE_FORK_SHARES
						  : 0);
		bpf_ringbuf_submit(rec, BPF_RB_FORCE_WAKEUP);
		__sync_fetch_and_add(&forks, 1);
	}
	if (config.follow_children)
		thread_born(child);
	return 0;
}

/* Records that a tid is gone. At an exec the calling thread takes over the tid of the main thread
 * (de_thread() of fs/exec.c). */
static __always_inline void tid_exit_emit(struct task_struct *task, __u32 tid)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct waffle_rec_exit *rec = record_reserve(cpu, sizeof(*rec));

	if (!rec)
		return;
	record_begin(&rec->rec, WAFFLE_REC_EXIT, tid, cpu);
	rec->tgid = task->tgid;
	rec->code = 0;
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old_pid, struct linux_binprm *bprm)
{
	__u32 cpu = bpf_get_smp_processor_id();
	bool privileged = BPF_CORE_READ_BITFIELD_PROBED(bprm, secureexec);
	struct waffle_rec_exit *rec;

	if (!target_has(task->tgid))
		return 0;
	program_begins(task->tgid, privileged);
	if (old_pid != task->pid && !finished)
		tid_exit_emit(task, old_pid);
	rec = finished ? NULL : record_reserve(cpu, sizeof(*rec));
	if (rec) {
		record_begin(&rec->rec, WAFFLE_REC_EXEC, task->pid, cpu);
		rec->tgid = task->tgid;
		rec->code = (old_pid == task->pid ? 0 : old_pid) |
			    (privileged ? WAFFLE_EXEC_PRIVILEGED : 0);
		bpf_ringbuf_submit(rec, BPF_RB_FORCE_WAKEUP);
	}
	task_emit(task, NULL, WAFFLE_TASK_TRACED_FLAG);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	__u32 cpu = bpf_get_smp_processor_id(), tgid = task->tgid;
	struct waffle_rec_exit *rec;
	bool last;

	/* Threads that exit together may all be the last one. The first of them deletes the
	 * process from the targets. From then on only the state of the others shows that they
	 * are traced. */
	if (!target_maybe(tgid) ||
	    (!bpf_task_storage_get(&threads, task, NULL, 0) && !target_has(tgid)))
		return 0;
	last = BPF_CORE_READ(task, signal, live.counter) == 0;
	if (!finished)
		faults_flush(task);
	rec = finished ? NULL : record_reserve(cpu, sizeof(*rec));
	if (rec) {
		record_begin(&rec->rec, WAFFLE_REC_EXIT, task->pid, cpu);
		rec->tgid = tgid;
		rec->code = BPF_CORE_READ(task, signal, group_exit_code) ?: task->exit_code;
		bpf_ringbuf_submit(rec, last ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
	}
	if (last) {
		bpf_map_delete_elem(&targets, &tgid);
		bpf_map_delete_elem(&programs, &tgid);
	}
	return 0;
}

/* Processes that share a bit: PID_MAX_LIMIT of include/linux/threads.h is 2^22. */
#define TGIDS_A_BIT ((1u << 22) / (64 * WAFFLE_TGID_WORDS))

struct bit_owners {
	__u32 tgid;
	bool is_owned;
};

static long bit_owner(__u32 round, void *context)
{
	struct bit_owners *owners = context;
	__u32 tgid = owners->tgid + round * 64 * WAFFLE_TGID_WORDS;

	owners->is_owned = bpf_map_lookup_elem(&targets, &tgid);
	return owners->is_owned;
}

static __always_inline bool bit_is_owned(__u32 tgid)
{
	struct bit_owners owners = {.tgid = tgid & (64 * WAFFLE_TGID_WORDS - 1)};

	bpf_loop(TGIDS_A_BIT, bit_owner, &owners, 0);
	return owners.is_owned;
}

/*
 * The kernel frees a process, after its last switch off a CPU. Its bit is cleared. Otherwise, after
 * some 65,536 processes, each switch of the machine would take the slow path. Meanwhile a process
 * with the same bit may be forked, but it does not run yet.
 */
SEC("tp_btf/sched_process_free")
int BPF_PROG(on_free, struct task_struct *task)
{
	__u32 tgid = task->tgid;

	if ((__u32)task->pid != tgid || !target_maybe(tgid) || bit_is_owned(tgid))
		return 0;
	__sync_fetch_and_and(tgid_word(tgid), ~(1ull << (tgid & 63)));
	if (bit_is_owned(tgid))
		__sync_fetch_and_or(tgid_word(tgid), 1ull << (tgid & 63));
	return 0;
}

static __always_inline bool same_name(const char *old, const char *new)
{
	__u64 a[WAFFLE_COMM_BYTES / 8] = {}, b[WAFFLE_COMM_BYTES / 8] = {};

	bpf_probe_read_kernel_str(a, sizeof(a), old);
	bpf_probe_read_kernel_str(b, sizeof(b), new);
	return a[0] == b[0] && a[1] == b[1];
}

SEC("tp_btf/task_rename")
int BPF_PROG(on_rename, struct task_struct *task, const char *comm)
{
	__u32 tid = task->pid;
	bool traced = target_has(task->tgid);

	if ((traced || bpf_map_lookup_elem(&named, &tid)) && !same_name(task->comm, comm))
		task_emit(task, comm, traced ? WAFFLE_TASK_TRACED_FLAG : stranger_flags(task));
	return 0;
}

/* Records stolen time of threads that run while the capture begins or ends. */
static __always_inline void stolen_snapshot(struct thread_state *state, struct task_struct *task)
{
	__u64 now = bpf_ktime_get_ns(), stolen_ns;

	if (!(config.wait_sources & WAFFLE_WAIT_STEAL) || !task->on_cpu)
		return;
	stolen_ns = cpu_stolen_ns(task);
	if (state->on_ts) {
		stolen_check(state, task, stolen_ns, now);
		return;
	}
	state->stolen_ns = stolen_ns;
	state->on_ts = now;
}

/* Writes the system call, the registers and the stacks of a thread that is blocked when the capture
 * ends. The kernel stack is taken here only if it was not taken when the thread blocked. */
static __always_inline void halted_write(struct seq_file *seq, struct task_struct *task,
					 const struct waffle_rec_state *state,
					 const struct thread_wait *wait)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	__u32 place = STACK_OF_SNAPSHOT;
	struct stack_scratch *scratch = bpf_map_lookup_elem(&stack_scratches, &place);
	struct waffle_rec_halted rec = {.rec = state->rec};
	long bytes = 0;

	rec.rec.kind = WAFFLE_REC_HALTED;
	rec.tgid = state->tgid;
	rec.from_ts = wait->from_ts;
	rec.kernel_stack = wait->kernel_stack;
	rec.user_stack = wait->user_stack;
	rec.python_key = thread_key(task);
	rec.syscall = state->syscall;
	for (int i = 0; i < WAFFLE_SYSCALL_ARGS; i++)
		rec.args[i] = state->args[i];
#if defined(__TARGET_ARCH_x86)
	rec.ip = regs->ip;
	rec.sp = regs->sp;
	rec.fp = regs->bp;
#elif defined(__TARGET_ARCH_arm64)
	rec.ip = regs->pc;
	rec.sp = regs->sp;
	rec.fp = regs->regs[29];
#endif
	if (scratch && !wait->kernel_stack)
		bytes = bpf_get_task_stack(task, scratch->addresses, sizeof(scratch->addresses), 0);
	if (bytes < 0 || bytes > (long)sizeof(scratch->addresses))
		bytes = 0;
	rec.kernel_bytes = bytes;
	bpf_seq_write(seq, &rec, sizeof(rec));
	if (scratch && bytes > 0)
		bpf_seq_write(seq, scratch->addresses, bytes);
}

/* Writes the state of each thread of the target into the iterator's file. */
SEC("iter/task")
int snapshot(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct waffle_rec_state rec = {};
	struct thread_state *thread;
	__u32 state;

	if (!task || !target_has(task->tgid))
		return 0;
	thread = thread_born(task);
	if (!thread)
		return 0;
	stolen_snapshot(thread, task);
	state = task->__state | task->exit_state;
	rec.rec.kind = WAFFLE_REC_STATE;
	rec.rec.tid = task->pid;
	rec.rec.cpu = task->thread_info.cpu;
	rec.tgid = task->tgid;
	rec.at_end = snapshot_at_end;
	rec.syscall = -1;
	if (task->on_cpu) {
		rec.state = WAFFLE_THREAD_RUNNING;
	} else if (task->on_rq || !state) {
		rec.state = WAFFLE_THREAD_RUNNABLE;
	} else {
		rec.state = WAFFLE_THREAD_BLOCKED;
		rec.task_state = task_state_normal(state);
		rec.syscall = task_syscall(task, rec.args);
	}
	rec.exec_ns = task->se.sum_exec_runtime;
	rec.run_delay_ns = task->sched_info.run_delay;
	rec.rec.ts = bpf_ktime_get_ns();
	bpf_seq_write(ctx->meta->seq, &rec, sizeof(rec));
	if (snapshot_at_end && rec.state == WAFFLE_THREAD_BLOCKED)
		halted_write(ctx->meta->seq, task, &rec, &thread->wait);
	return 0;
}
