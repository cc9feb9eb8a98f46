// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Refused locks of files. A program that waits for a lock in its own way, as SQLite does, tries to
 * take it, sleeps, and tries again. Such a try does not block, so no wait shows it. The kernel
 * reports it when it has released its own lock of the list of locks. So the list may change while
 * it is searched here, and what is found may already have been freed: its memory is only read by
 * helpers that check addresses, and a lock counts only if it is one of the same file.
 */
#include "vmlinux.h"
#include "shared.h"

#define EAGAIN 11
#define F_RDLCK 0 /* include/uapi/asm-generic/fcntl.h */

#define LOCKS_MAX 256 /* a file may have very many, and only the first ones are searched */

/* A lock of a file, or a try to get one. */
struct lock {
	__u64 owner, file, inode;
	__s64 start, end;
	__u32 pid;
	__u8 type;
};

struct lock_search {
	struct lock tried, found;
	struct list_head *head, *at;
	bool flock;
	bool done;
};

static __always_inline void lock_read(struct lock *lock, struct file_lock *from)
{
	struct file_lock___old *old = (void *)from;
	struct file *file;

	if (bpf_core_type_exists(struct file_lock_core)) {
		lock->owner = (__u64)BPF_CORE_READ(from, c.flc_owner);
		lock->file = (__u64)BPF_CORE_READ(from, c.flc_file);
		lock->pid = BPF_CORE_READ(from, c.flc_pid);
		lock->type = BPF_CORE_READ(from, c.flc_type);
		lock->start = BPF_CORE_READ(from, fl_start);
		lock->end = BPF_CORE_READ(from, fl_end);
	} else {
		lock->owner = (__u64)BPF_CORE_READ(old, fl_owner);
		lock->file = (__u64)BPF_CORE_READ(old, fl_file);
		lock->pid = BPF_CORE_READ(old, fl_pid);
		lock->type = BPF_CORE_READ(old, fl_type);
		lock->start = BPF_CORE_READ(old, fl_start);
		lock->end = BPF_CORE_READ(old, fl_end);
	}
	file = (struct file *)lock->file;
	lock->inode = (__u64)BPF_CORE_READ(file, f_inode);
}

static __always_inline struct file_lock *lock_of_entry(struct list_head *entry)
{
	if (bpf_core_type_exists(struct file_lock_core))
		return (void *)entry - bpf_core_field_offset(struct file_lock, c.flc_list);
	return (void *)entry - bpf_core_field_offset(struct file_lock___old, fl_list);
}

static __always_inline struct list_head *entry_next(struct list_head *entry)
{
	return BPF_CORE_READ(entry, next);
}

/* As flock_locks_conflict() and posix_locks_conflict() of fs/locks.c. */
static __always_inline bool is_in_the_way(const struct lock *held, const struct lock *tried,
					  bool flock)
{
	if (held->inode != tried->inode || (held->type == F_RDLCK && tried->type == F_RDLCK))
		return false;
	if (flock)
		return held->file != tried->file;
	return held->owner != tried->owner && held->end >= tried->start &&
	       tried->end >= held->start;
}

/* Looks at one entry of the list. Returns 1 to end the loop. */
static long lock_step(__u32 i, void *context)
{
	struct lock_search *search = context;

	if (!search->at || search->at == search->head)
		return 1;
	lock_read(&search->found, lock_of_entry(search->at));
	search->done = is_in_the_way(&search->found, &search->tried, search->flock);
	if (search->done)
		return 1;
	search->at = entry_next(search->at);
	return 0;
}

/* Finds the first lock that is in the way of the one that was tried. */
static __always_inline void holder_find(struct lock_search *search, struct inode *inode)
{
	struct file_lock_context *locks = BPF_CORE_READ(inode, i_flctx);

	if (!locks)
		return;
	search->head = (void *)locks +
		       (search->flock ? bpf_core_field_offset(struct file_lock_context, flc_flock)
				      : bpf_core_field_offset(struct file_lock_context, flc_posix));
	search->at = entry_next(search->head);
	bpf_loop(LOCKS_MAX, lock_step, search, 0);
}

static __always_inline void refusal_emit(struct lock_search *search, struct inode *inode,
					 struct task_struct *task)
{
	__u64 args[WAFFLE_SYSCALL_ARGS];
	__s32 syscall = task_syscall(task, args);
	__u32 cpu = bpf_get_smp_processor_id();
	struct waffle_rec_lock_refusal *rec;

	rec = record_reserve_of(WAFFLE_SOURCE_WAITS, cpu, sizeof(*rec));
	if (!rec)
		return;
	record_begin(&rec->rec, WAFFLE_REC_LOCK_REFUSAL, task->pid, cpu);
	rec->ino = BPF_CORE_READ(inode, i_ino);
	rec->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	rec->object = syscall < 0 ? -1 : args[0];
	rec->holder_pid = search->done ? search->found.pid : 0;
	rec->flags = search->flock ? WAFFLE_LOCK_FLOCK : 0;
	if (search->done && search->found.type == F_RDLCK)
		rec->flags |= WAFFLE_LOCK_SHARED;
	__builtin_memset(rec->holder_comm, 0, sizeof(rec->holder_comm));
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
}

static __always_inline int lock_tried(struct inode *inode, struct file_lock *tried, int result,
				      bool flock)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct lock_search search = {.flock = flock};
	struct thread_state *state;

	/* The verifier takes the pointers for ones that may be NULL. */
	if (result != -EAGAIN || !inode || !tried || finished || !target_has(task->tgid))
		return 0;
	state = thread_get(task);
	if (!state || !refusal_is_due(&state->refused_ts))
		return 0;
	lock_read(&search.tried, tried);
	holder_find(&search, inode);
	refusal_emit(&search, inode, task);
	return 0;
}

SEC("tp_btf/flock_lock_inode")
int BPF_PROG(on_flock, struct inode *inode, struct file_lock *tried, int result)
{
	return lock_tried(inode, tried, result, true);
}

SEC("tp_btf/posix_lock_inode")
int BPF_PROG(on_posix_lock, struct inode *inode, struct file_lock *tried, int result)
{
	return lock_tried(inode, tried, result, false);
}
