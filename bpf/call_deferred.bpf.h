/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Calls whose filter decides when they return, with all values of the entry. */
#ifndef WAFFLE_CALL_DEFERRED_BPF_H
#define WAFFLE_CALL_DEFERRED_BPF_H

#include "call_frame.bpf.h"

/* One map for the lower half of a thread's calls, one for the upper half. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct waffle_calls_deferred);
} call_deferred_low SEC(".maps"), call_deferred_high SEC(".maps");

/* The deferred slot of an open call; NULL: there is none, or no memory for it. */
static __always_inline struct waffle_call_slot *call_deferred(struct task_struct *task, __u64 open,
							      __u64 flags)
{
	struct waffle_calls_deferred *calls;

	if (open < WAFFLE_CALL_DEFERRED_MAX)
		calls = bpf_task_storage_get(&call_deferred_low, task, NULL, flags);
	else
		calls = bpf_task_storage_get(&call_deferred_high, task, NULL, flags);
	open &= WAFFLE_CALL_DEFERRED_MAX - 1;
	barrier_var(open);
	if (!calls || open >= WAFFLE_CALL_DEFERRED_MAX)
		return NULL;
	return &calls->slots[open];
}

static __always_inline bool call_deferred_put(struct task_struct *task,
					      const struct waffle_call_slot *slot)
{
	struct waffle_call_slot *deferred =
		call_deferred(task, slot->open, BPF_LOCAL_STORAGE_GET_F_CREATE);

	return deferred && !bpf_probe_read_kernel(deferred, sizeof(*deferred), slot);
}

/* Restores the slot of a call that returns, from index `at` of its thread's open calls. False: the
 * call did not pass. */
static __always_inline bool slot_restore(struct task_struct *task,
					 const struct waffle_call_open *open, __u64 at,
					 struct waffle_call_slot *slot)
{
	const struct waffle_call_slot *deferred;

	if (open->state == WAFFLE_OPEN_REJECTED)
		return false;
	if (config.call_filtered && open->state == WAFFLE_OPEN_DEFERRED) {
		deferred = call_deferred(task, at, 0);
		return deferred && !bpf_probe_read_kernel(slot, sizeof(*slot), deferred);
	}
	slot->state = WAFFLE_OPEN_KEPT;
	slot->id = open->id;
	slot->deferred.ts = open->ts;
	slot->deferred.tgid = task->tgid;
	slot->deferred.site = open->fetch_program;
	__builtin_memcpy(slot->saved, open->saved, sizeof(slot->saved));
	return true;
}

/* Sets the state of a slot's open call, if it has one. */
static __always_inline void open_set(struct waffle_call_thread *thread, __u64 open, __u16 state)
{
	barrier_var(open);
	if (open < WAFFLE_CALL_DEPTH_MAX)
		thread->open[open].state = state;
}

#endif
