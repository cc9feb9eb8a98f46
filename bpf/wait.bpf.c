// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Details of waits that do not come from the scheduler: page
 * faults, block devices, signals, CPU frequency. */
#include "vmlinux.h"
#include "wait.h"

#define SI_KERNEL 0x80 /* include/uapi/asm-generic/siginfo.h */
#define EIO 5

static __always_inline void fault_add(struct thread_wait *wait, __u64 from_ts, __u64 took)
{
	if (!wait->faults)
		wait->faults_from_ts = from_ts;
	wait->faults++;
	wait->faults_ns += took;
}

/*
 * Handles a fault whose end was not reported. A kernel that preempts a thread within a bpf() system
 * call skips the programs of perf events on that CPU meanwhile (bpf_prog_active). A minor fault is
 * then counted without its time. A fault that became a signal has no end, and the kernel does not
 * count it.
 */
static __always_inline void fault_missed(struct thread_wait *wait, struct task_struct *task)
{
	if (task->maj_flt != wait->major_flt)
		loss_count_of(WAFFLE_SOURCE_WAITS, 1);
	else if (task->min_flt != wait->minor_flt)
		fault_add(wait, wait->fault_ts, 0);
}

/* A page fault begins … */
static __always_inline int fault_begin(unsigned long address, struct pt_regs *regs)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread_state *state;

	if (finished || !target_maybe(task->tgid) || !faults_are_counted())
		return 0;
	state = thread_get(task);
	if (!state)
		return 0;
	if (state->wait.fault_ts)
		fault_missed(&state->wait, task);
	state->wait.minor_flt = task->min_flt;
	state->wait.major_flt = task->maj_flt;
	state->wait.fault_ts = bpf_ktime_get_ns();
	state->wait.fault_address = address;
	state->wait.fault_ip = PT_REGS_IP(regs);
	return 0;
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(on_fault, unsigned long address, struct pt_regs *regs)
{
	return fault_begin(address, regs);
}

/* Faults of system calls, if they access the program's own memory. */
SEC("tp_btf/page_fault_kernel")
int BPF_PROG(on_fault_kernel, unsigned long address, struct pt_regs *regs)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if ((long)address < 0 || task->pagefault_disabled)
		return 0;
	return fault_begin(address, regs);
}

/* The last step of the kernel is to count the fault as a major or a minor one. */
static __always_inline int fault_done(__u32 flags)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread_state *state;
	struct thread_wait *wait;
	__u64 now, from_ts;

	if (finished || !target_maybe(task->tgid) || task->flags & PF_EXITING)
		return 0;
	state = thread_get(task);
	if (!state)
		return 0;
	wait = &state->wait;
	now = bpf_ktime_get_ns();
	from_ts = wait->fault_ts ?: now; /* its begin may be missing, too */
	if (flags && !wait->fault_ts)
		return 0;          /* it began before the thread was traced */
	if (flags && wait->faults) /* a major fault is a record of its own */
		faults_emit(wait, task, from_ts, 0);
	fault_add(wait, from_ts, now - from_ts);
	wait->fault_ts = 0;
	if (flags || now - wait->faults_from_ts >= FAULTS_GAP_NS)
		faults_emit(wait, task, now, flags);
	return 0;
}

SEC("perf_event")
int on_fault_minor(void *ctx)
{
	return fault_done(0);
}

SEC("perf_event")
int on_fault_major(void *ctx)
{
	return fault_done(WAFFLE_FAULT_MAJOR);
}

/* Requests in flight; key: address of the request. */
struct io_begin {
	__u64 ts;
	__u32 tid;
	__u32 reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, struct io_begin);
} requests SEC(".maps");

/* A request begins, by a target's thread or by a kernel thread on behalf of another. */
static __always_inline int io_begin(struct request *request, __u64 flags)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct io_begin begin = {.ts = bpf_ktime_get_ns(), .tid = task->pid};
	__u64 key = (__u64)request;

	if (finished || (!target_maybe(task->tgid) && !(task->flags & PF_KTHREAD)))
		return 0;
	if (!target_maybe(task->tgid))
		name_stranger(task);
	bpf_map_update_elem(&requests, &key, &begin, flags);
	return 0;
}

/* The thread that submits the request, which a kernel worker may issue. Since Linux 6.5. */
SEC("tp_btf/block_io_start")
int BPF_PROG(on_io_start, struct request *request)
{
	return io_begin(request, BPF_ANY);
}

SEC("tp_btf/block_rq_issue")
int BPF_PROG(on_io_issue, struct request *request)
{
	return io_begin(request, BPF_NOEXIST);
}

/* A request was merged into another one: it never completes, and its address is reused. A raw
 * tracepoint, so that a test can run it. */
SEC("raw_tp/block_rq_merge")
int on_io_merge(__u64 *args)
{
	__u64 key = args[0];

	bpf_map_delete_elem(&requests, &key);
	return 0;
}

/* include/linux/blk_types.h: the operation in the low byte, odd ones write; flags above. */
static __always_inline __u32 io_flags(__u32 cmd_flags)
{
	__u32 operation = cmd_flags & 0xff, flags = 0;

	if (operation & 1)
		flags |= WAFFLE_IO_WRITE;
	if (operation == 2) /* REQ_OP_FLUSH */
		flags |= WAFFLE_IO_FLUSH;
	if (cmd_flags & 1 << 11) /* REQ_SYNC */
		flags |= WAFFLE_IO_SYNC;
	return flags;
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_io_complete, struct request *request, __u8 error, unsigned int bytes)
{
	__u64 key = (__u64)request;
	struct io_begin *begin = bpf_map_lookup_elem(&requests, &key), was;
	__u32 cpu = bpf_get_smp_processor_id();
	struct waffle_rec_io *rec;

	if (!begin)
		return 0;
	was = *begin;
	bpf_map_delete_elem(&requests, &key);
	rec = finished ? NULL : record_reserve_of(WAFFLE_SOURCE_WAITS, cpu, sizeof(*rec));
	if (!rec)
		return 0;
	record_begin(&rec->rec, WAFFLE_REC_IO, was.tid, cpu);
	rec->issue_ts = was.ts;
	rec->sector = request->__sector;
	rec->bytes = bytes;
	rec->dev = BPF_CORE_READ(request, part, bd_dev);
	if (!rec->dev) /* a disk that keeps no statistics */
		rec->dev = BPF_CORE_READ(request, q, disk, part0, bd_dev);
	rec->flags = io_flags(request->cmd_flags);
	rec->error = error ? -EIO : 0; /* a blk_status_t; an int before 5.16 */
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
	return 0;
}

SEC("tp_btf/signal_generate")
int BPF_PROG(on_signal, int signo, struct kernel_siginfo *info, struct task_struct *task, int group,
	     int result)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct task_struct *sender = bpf_get_current_task_btf();
	struct waffle_rec_signal *rec;

	if (finished || !target_has(task->tgid))
		return 0;
	rec = record_reserve_of(WAFFLE_SOURCE_WAITS, cpu, sizeof(*rec));
	if (!rec)
		return 0;
	record_begin(&rec->rec, WAFFLE_REC_SIGNAL, sender->pid, cpu);
	rec->target_tid = task->pid;
	rec->target_tgid = task->tgid;
	rec->signo = signo;
	rec->code = (__u64)info == 1 ? SI_KERNEL : 0; /* SEND_SIG_PRIV, SEND_SIG_NOINFO */
	if ((__u64)info > 1)
		bpf_core_read(&rec->code, sizeof(rec->code), &info->si_code);
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
	return 0;
}

/* Indexed by CPU. Userspace sets the number of entries and max_khz. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct waffle_frequency);
} frequencies SEC(".maps");

#define FREQUENCY_PARTS 20 /* a change by 1/20 of the last frequency is recorded */

/* A raw tracepoint, so that userspace can run it with the frequency that it reads at the begin. */
SEC("raw_tp/cpu_frequency")
int on_frequency(__u64 *args)
{
	__u32 khz = args[0], which = args[1], cpu = bpf_get_smp_processor_id(), change;
	struct waffle_frequency *last = bpf_map_lookup_elem(&frequencies, &which);
	struct waffle_rec_frequency *rec;

	if (finished || !last)
		return 0;
	change = khz > last->khz ? khz - last->khz : last->khz - khz;
	if ((__u64)change * FREQUENCY_PARTS < last->khz || !change)
		return 0;
	rec = record_reserve_of(WAFFLE_SOURCE_WAITS, cpu, sizeof(*rec));
	if (!rec)
		return 0;
	record_begin(&rec->rec, WAFFLE_REC_FREQUENCY, 0, which);
	rec->khz = khz;
	rec->max_khz = last->max_khz;
	rec->flags = last->flags;
	rec->reserved = 0;
	last->khz = khz;
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
	return 0;
}
