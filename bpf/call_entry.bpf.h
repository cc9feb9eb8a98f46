/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The common beginning of all programs at entries: it finds the thread, its open calls, and the
 * fetch program. */
#ifndef WAFFLE_CALL_ENTRY_BPF_H
#define WAFFLE_CALL_ENTRY_BPF_H

#include "call_nest.bpf.h"

/* Begins a slot: thread, site and time of the call, and the header of the frame. */
static __always_inline void slot_begin(struct waffle_call_slot *slot, __u32 site, __u64 now,
				       struct task_struct *task)
{
	__u64 *frame = (__u64 *)slot->frame;

	slot->id = waffle_call_id(now, task->pid, config.call_seed);
	slot->fetch_program = site;
	slot->open = WAFFLE_CALL_DEPTH_MAX;
	slot->deferred.ts = now;
	slot->deferred.tid = task->pid;
	slot->deferred.tgid = task->tgid;
	slot->deferred.cpu = bpf_get_smp_processor_id();
	slot->deferred.site = site;
	slot->deferred.depth = WAFFLE_DEPTH_UNKNOWN;
	slot->deferred.has_parent = 0;
	slot->deferred.parent_bits = 0;
	frame[0] = slot->id;
	frame[1] = frame[2] = frame[3] = 0;
}

static __always_inline struct waffle_call_thread *call_thread_get(struct task_struct *task)
{
	return bpf_task_storage_get(&call_threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* Does what call_thread_get() does, without an allocation: the tracepoint may be one of the
 * scheduler's, which must not allocate. */
static __always_inline struct waffle_call_thread *call_thread_at_point(struct task_struct *task)
{
	if (scheduler_allocates())
		return call_thread_get(task);
	return bpf_task_storage_get(&call_threads, task, NULL, 0);
}

static __always_inline struct waffle_fetch_program *fetch_program_get(__u64 cookie)
{
	__u32 fetch_program = WAFFLE_COOKIE_FETCH_PROGRAM(cookie);

	return bpf_map_lookup_elem(&fetch_programs, &fetch_program);
}

/* The state of a program at an entry. */
struct entry {
	struct task_struct *task;
	struct waffle_call_thread *thread;
	struct waffle_fetch_program *fetch_program;
	__u64 now, sp, cookie;
	__u32 site;
};

/* False: nothing of this thread is recorded. */
static __always_inline bool entry_thread(struct entry *entry, struct pt_regs *ctx)
{
	entry->task = bpf_get_current_task_btf();
	if (!wanted(entry->task))
		return false;
	entry->thread = call_thread_get(entry->task);
	entry->sp = PT_REGS_SP(ctx);
	if (!entry->thread)
		loss_count(1); /* no memory for it */
	return entry->thread;
}

static __always_inline void entry_cookie(struct entry *entry, void *ctx)
{
	entry->cookie = bpf_get_attach_cookie(ctx);
	entry->site = WAFFLE_COOKIE_SITE(entry->cookie);
}

static __always_inline bool entry_fetch_program(struct entry *entry, void *ctx)
{
	entry_cookie(entry, ctx);
	entry->fetch_program = fetch_program_get(entry->cookie);
	return entry->fetch_program;
}

static __always_inline bool entry_get(struct entry *entry, struct pt_regs *ctx)
{
	return entry_thread(entry, ctx) && entry_fetch_program(entry, ctx);
}

/* Drops the calls that are over. Nearly always the thread has none. */
static __always_inline void entry_drop_stale(struct entry *entry, struct pt_regs *ctx)
{
	if (!entry->thread->depth)
		return;
	entry->thread->now = bpf_ktime_get_ns();
	call_drop_stale(entry->thread, entry->sp, PT_REGS_IP(ctx), PT_REGS_RET(ctx), entry->site);
}

/* Whether the call is nested in an outer one, as it mostly is. Then nothing is left to do. */
static __always_inline bool entry_is_inner(struct entry *entry, struct pt_regs *ctx)
{
	if (entry->thread->depth) {
		entry_cookie(entry, ctx);
		entry_drop_stale(entry, ctx);
	}
	return call_is_inner(entry->thread, ctx);
}

#endif
