// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Finds threads that are blocked while the mmap_lock of their process is held. To set a uprobe, the
 * kernel waits for the mmap_lock of each process that maps the file, and the fork() of every
 * process waits for the kernel meanwhile (register_for_each_vma() of kernel/events/uprobes.c). The
 * locks are only looked at here, since whoever took one to find out would wait, too: that is why
 * /proc/PID/maps is of no use.
 */
#include "vmlinux.h"
#include "shared.h"
#include "mmap_lock.h"

/* kernel/locking/rwsem.c. The readers are counted from bit 8 to below RWSEM_FLAG_READFAIL. */
#define RWSEM_WRITER_LOCKED 1ull
#define RWSEM_HELD (RWSEM_WRITER_LOCKED | 0x7fffffffffffff00ull)
#define RWSEM_OWNER_FLAGS 7ull /* the owner's low bits; the rest is its address */

/* A lock for writing names its owner. One for reading names the last thread that took it, which may
 * not be the one that keeps it: so any uninterruptible thread counts. */
static __always_inline bool may_hold(const struct task_struct *task, __u64 lock, bool owner)
{
	return (owner && lock & RWSEM_WRITER_LOCKED) ||
	       task_state_normal(task->__state) == WAFFLE_TASK_UNINTERRUPTIBLE;
}

SEC("iter/task")
int mmap_lock_waits(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct waffle_mmap_lock_wait wait = {};
	__u64 args[WAFFLE_SYSCALL_ARGS], lock;
	struct mm_struct *mm;

	if (!task || !bpf_core_field_exists(struct rw_semaphore, count))
		return 0;
	mm = task->mm;
	if (!mm || task->on_cpu || task->on_rq || !task->__state)
		return 0;
	lock = mm->mmap_lock.count.counter;
	wait.owner = (mm->mmap_lock.owner.counter & ~RWSEM_OWNER_FLAGS) == (__u64)task;
	if (!(lock & RWSEM_HELD) || !may_hold(task, lock, wait.owner))
		return 0;
	wait.switches = task->nvcsw + task->nivcsw;
	wait.tid = task->pid;
	wait.tgid = task->tgid;
	wait.syscall = task_syscall(task, args);
	__builtin_memcpy(wait.comm, task->comm, sizeof(wait.comm));
	bpf_seq_write(ctx->meta->seq, &wait, sizeof(wait));
	return 0;
}
