// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Calls: one interpreter of fetch programs (call.h) at the entries and returns of functions, at
 * USDT probes and at tracepoints. It makes the same records as a site of a macro, so readers need
 * not distinguish them.
 */
#include "vmlinux.h"
#include "call_emit.bpf.h"
#include "call_entry.bpf.h"
#include "call_deferred.bpf.h"
#include "call_nest.bpf.h"
#include "call_pair.bpf.h"
#include "rate.bpf.h"
#include "stack.h"
#include "uprobe.bpf.h"
#include "wait.h"

__u64 call_faults;
__u64 call_too_deep; /* calls dropped because their thread had WAFFLE_CALL_DEPTH_MAX open ones */

struct fetch_programs_map fetch_programs SEC(".maps");
struct call_enums_map call_enums SEC(".maps");
struct call_sequences_map call_sequences SEC(".maps");

/* Program arrays: enum waffle_call_next, then classes. Uprobes and tracepoints have one each, since
 * the kernel refuses tail calls between the two. Sizes are set before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} call_next SEC(".maps"), call_next_point SEC(".maps");

static __always_inline struct fetches entry_fetches(const struct entry *entry,
						    struct waffle_call_slot *slot)
{
	return (struct fetches){
		.fetch_program = entry->fetch_program,
		.thread = entry->thread,
		.slot = slot,
		.now = entry->now,
		.tgid = entry->task->tgid,
	};
}

static __always_inline bool entry_wants_stack(const struct entry *entry)
{
	return config.call_stacks && entry->fetch_program->flags & WAFFLE_CALL_STACK;
}

/* `instruction`: the probe is at an instruction of the function, not a return probe. */
static __always_inline void entry_stack_at(const struct entry *entry, bool instruction)
{
	if (config.call_stacks)
		entry->thread->at_call =
			instruction && entry->fetch_program->flags & WAFFLE_CALL_FUNCTION
				? WAFFLE_STACK_CALL
				: 0;
}

/* The last step of a program: a tail call of the program that takes the stacks. That one is only
 * loaded if stacks are requested, because the verifier takes longer for it than for all others. */
static __always_inline int entry_stack(const struct entry *entry, void *ctx, bool point)
{
	if (!entry_wants_stack(entry))
		return 0;
	if (point)
		bpf_tail_call(ctx, &call_next_point, WAFFLE_CALL_STACKS);
	else
		bpf_tail_call(ctx, &call_next, WAFFLE_CALL_STACKS);
	return 0;
}

/* Delivers a begin or an event that passes. */
static __always_inline int entry_keep(const struct entry *entry, void *ctx,
				      struct waffle_call_slot *slot, bool point)
{
	if (config.call_filtered && !rate_take(slot->deferred.ts))
		return 0;
	slot->state = WAFFLE_OPEN_KEPT;
	open_set(entry->thread, slot->open, WAFFLE_OPEN_KEPT);
	if (!point && entry->fetch_program->flags & WAFFLE_CALL_PAIR)
		pair_keep(entry->fetch_program, entry->task->tgid, slot);
	call_hit(slot);
	return entry_stack(entry, ctx, point);
}

/* Defers a call whose filter is decided when it ends. */
static __always_inline int entry_defer(const struct entry *entry, struct waffle_call_slot *slot)
{
	slot->state = WAFFLE_OPEN_DEFERRED;
	if (entry->fetch_program->flags & WAFFLE_CALL_PAIR)
		pair_keep(entry->fetch_program, entry->task->tgid, slot);
	else if (call_deferred_put(entry->task, slot))
		open_set(entry->thread, slot->open, WAFFLE_OPEN_DEFERRED);
	else
		loss_count(1);
	return 0;
}

/* Delivers a deferred call that passes at its end: its begin with its own time, then its end. */
static __always_inline int deferred_keep(const struct entry *entry, void *ctx,
					 struct waffle_call_slot *slot)
{
	__u32 bytes = slot->deferred.frame_bytes, begin = slot->begin_bytes;

	if (!rate_take(slot->deferred.end_ts))
		return 0;
	slot->deferred.frame_bytes = begin;
	call_hit(slot);
	slot->deferred.frame_bytes = bytes > begin ? bytes - begin : 0;
	call_return(slot, slot->deferred.end_ts, begin);
	return entry_stack(entry, ctx, false);
}

/* Whether a call that begins passes without a filter. Otherwise the program of its class decides,
 * at once (slot->state is REJECTED so far) or when the call ends (DEFERRED). */
static __always_inline bool entry_passes(const struct entry *entry, struct waffle_call_slot *slot)
{
	slot->begin_bytes = slot->deferred.frame_bytes;
	if (!config.call_filtered ||
	    !(entry->cookie & (WAFFLE_COOKIE_ENTRY_FILTER | WAFFLE_COOKIE_RETURN_FILTER))) {
		slot->state = WAFFLE_OPEN_REJECTED;
		return true;
	}
	slot->class = WAFFLE_COOKIE_CLASS(entry->cookie);
	bpf_get_current_comm(slot->deferred.comm, sizeof(slot->deferred.comm));
	slot->state = entry->cookie & WAFFLE_COOKIE_ENTRY_FILTER ? WAFFLE_OPEN_REJECTED
								 : WAFFLE_OPEN_DEFERRED;
	return false;
}

/* Continues in the program of the class. If there is none, the call does not pass. */
static __always_inline void class_decide(const struct waffle_call_slot *slot, void *ctx,
					 void *programs)
{
	bpf_tail_call(ctx, programs, WAFFLE_CALL_NEXT_COUNT + slot->class);
}

static __always_inline int instant(struct entry *entry, struct pt_regs *ctx)
{
	struct waffle_call_slot *slot = &entry->thread->slots[WAFFLE_CALL_AT_UPROBE];
	struct fetches walk;

	entry->now = bpf_ktime_get_ns();
	entry_stack_at(entry, true);
	slot_begin(slot, entry->site, entry->now, entry->task);
	regs_read(entry->thread, ctx);
	walk = entry_fetches(entry, slot);
	frame_begin(&walk);
	if (entry->fetch_program->flags & WAFFLE_CALL_OUTER)
		outer_set(entry->thread, ctx, WAFFLE_COOKIE_FETCH_PROGRAM(entry->cookie));
	if (entry->fetch_program->flags & WAFFLE_CALL_PAIR && !pair_begin(&walk, slot))
		return 0;
	if (entry_passes(entry, slot))
		return entry_keep(entry, ctx, slot, false);
	if (slot->state == WAFFLE_OPEN_DEFERRED)
		return entry_defer(entry, slot);
	class_decide(slot, ctx, &call_next);
	return 0;
}

UPROBE(call_instant)
{
	struct entry entry;

	if (!entry_get(&entry, ctx))
		return 0;
	entry_drop_stale(&entry, ctx);
	return instant(&entry, ctx);
}

UPROBE(call_inner)
{
	struct entry entry;

	if (!entry_thread(&entry, ctx) || entry_is_inner(&entry, ctx) ||
	    !entry_fetch_program(&entry, ctx))
		return 0;
	return instant(&entry, ctx);
}

/* Pushes a call on its thread's stack of open calls, as one that has not passed yet. */
static __always_inline void open_begin(const struct entry *entry, struct pt_regs *ctx, __u64 at,
				       __u64 id)
{
	struct waffle_call_thread *thread = entry->thread;
	struct waffle_call_open *open = &thread->open[at];

	open->id = id;
	open->ts = entry->now;
	open->sp = entry->sp;
	open->ip = PT_REGS_IP(ctx);
	open->link = return_address(ctx);
	open->fetch_program = entry->site;
	open->state = WAFFLE_OPEN_REJECTED;
	open->outer = !!(entry->fetch_program->flags & WAFFLE_CALL_OUTER);
	thread->outer_open += open->outer;
	thread->depth = at + 1;
}

UPROBE(call_enter)
{
	struct waffle_call_slot *slot;
	struct waffle_call_thread *thread;
	struct fetches walk;
	struct entry entry;
	__u64 depth;

	if (!entry_get(&entry, ctx))
		return 0;
	entry_drop_stale(&entry, ctx);
	thread = entry.thread;
	if (entry.fetch_program->flags & WAFFLE_CALL_INNER && call_is_inner(thread, ctx))
		return 0;
	entry.now = bpf_ktime_get_ns();
	depth = thread->depth;
	barrier_var(depth);
	if (depth >= WAFFLE_CALL_DEPTH_MAX) {
		loss_count(1);
		__sync_fetch_and_add(&call_too_deep, 1);
		return 0;
	}
	slot = &thread->slots[WAFFLE_CALL_AT_UPROBE];
	entry_stack_at(&entry, true);
	slot_begin(slot, entry.site, entry.now, entry.task);
	slot->open = depth;
	open_begin(&entry, ctx, depth, slot->id);
	regs_read(thread, ctx);
	walk = entry_fetches(&entry, slot);
	if (entry.fetch_program->saves) {
		walk.first = entry.fetch_program->begins;
		slot->saved_count = 0;
		bpf_loop(entry.fetch_program->saves, fetch_saved, &walk, 0);
		__builtin_memcpy(thread->open[depth].saved, slot->saved, sizeof(slot->saved));
	}
	frame_begin(&walk);
	if (entry_passes(&entry, slot))
		return entry_keep(&entry, ctx, slot, false);
	if (slot->state == WAFFLE_OPEN_DEFERRED)
		return entry_defer(&entry, slot);
	class_decide(slot, ctx, &call_next);
	return 0;
}

/* Makes the record of the end. If a filter decides now, makes the rest of the frame instead. */
static __always_inline int slot_end(const struct entry *entry, void *ctx,
				    struct waffle_call_slot *slot)
{
	bool deferred = config.call_filtered && slot->state == WAFFLE_OPEN_DEFERRED;
	struct fetches walk = entry_fetches(entry, slot);

	frame_make(&walk, entry->fetch_program->begins + entry->fetch_program->saves,
		   entry->fetch_program->returns, deferred ? slot->begin_bytes : 0);
	if (!deferred)
		return call_return(slot, entry->now, 0);
	slot->deferred.end_ts = entry->now;
	bpf_tail_call(ctx, &call_next, WAFFLE_CALL_NEXT_COUNT + WAFFLE_CLASSES_MAX + slot->class);
	return 0;
}

static __always_inline int leave(struct pt_regs *ctx, __u64 popped, bool returned)
{
	struct waffle_call_slot *slot;
	struct entry entry;
	__u64 at;

	entry.now = bpf_ktime_get_ns();
	if (!entry_get(&entry, ctx))
		return 0;
	entry.thread->now = entry.now;
	entry_stack_at(&entry, !returned);
	at = open_returning(entry.thread, entry.sp - popped, entry.site);
	slot = &entry.thread->slots[WAFFLE_CALL_AT_UPROBE];
	barrier_var(at);
	if (at >= WAFFLE_CALL_DEPTH_MAX ||
	    !slot_restore(entry.task, &entry.thread->open[at], at, slot))
		return 0;
	regs_read(entry.thread, ctx);
	return slot_end(&entry, ctx, slot);
}

/* After the return. */
URETPROBE(call_leave)
{
	return leave(ctx, RETURN_POPS, true);
}

/* At a return instruction: the stack pointer is what it was at the entry. */
UPROBE(call_ret)
{
	return leave(ctx, 0, false);
}

/* The end of a pair, on whatever thread. */
UPROBE(call_end)
{
	struct waffle_call_slot *slot, *deferred;
	struct waffle_pair_key key;
	struct fetches walk;
	struct entry entry;
	struct waffle_pair *pair;

	entry.now = bpf_ktime_get_ns();
	if (!entry_get(&entry, ctx))
		return 0;
	entry_stack_at(&entry, true);
	slot = &entry.thread->slots[WAFFLE_CALL_AT_UPROBE];
	regs_read(entry.thread, ctx);
	walk = entry_fetches(&entry, slot);
	if (!pair_key_get(&walk, &key, false))
		return 0;
	pair = bpf_map_lookup_elem(&call_pairs, &key);
	if (!pair)
		return 0;
	deferred = config.call_filtered ? bpf_map_lookup_elem(&call_pairs_deferred, &key) : NULL;
	if (deferred) {
		bpf_probe_read_kernel(slot, sizeof(*slot), deferred);
		bpf_map_delete_elem(&call_pairs_deferred, &key);
	} else {
		slot->id = pair->id;
		slot->deferred.ts = pair->ts;
		slot->deferred.tgid = entry.task->tgid;
		slot->deferred.site = pair->site;
		slot->state = WAFFLE_OPEN_KEPT;
	}
	bpf_map_delete_elem(&call_pairs, &key);
	return slot_end(&entry, ctx, slot);
}

/* ---- a new program ---- */

/* An exec ends all open calls of its thread. Their stack pointers belong to the old program, and
 * would hide calls of the new one. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(call_exec, struct task_struct *task)
{
	struct waffle_call_thread *thread = bpf_task_storage_get(&call_threads, task, NULL, 0);

	if (!thread)
		return 0;
	thread->now = bpf_ktime_get_ns();
	calls_drop_all(thread);
	frames_drop(thread, 0);
	bpf_task_storage_delete(&call_deferred_low, task);
	bpf_task_storage_delete(&call_deferred_high, task);
	bpf_task_storage_delete(&call_threads, task);
	if (config.call_points && !scheduler_allocates()) /* as thread_born() of task.bpf.c */
		call_thread_get(task);
	return 0;
}

/* ---- after a filter's decision ---- */

/* The slot that the program before the tail call filled. */
static __always_inline struct waffle_call_slot *slot_decided(struct waffle_call_thread *thread,
							     enum waffle_call_at at)
{
	return thread ? &thread->slots[at] : NULL;
}

/* The call that the filter has decided; NULL: none. */
static __always_inline struct waffle_call_slot *entry_decided(struct entry *entry, void *ctx,
							      enum waffle_call_at at)
{
	entry->now = 0;
	entry->task = bpf_get_current_task_btf();
	entry->thread = call_thread_get(entry->task);
	return entry_fetch_program(entry, ctx) ? slot_decided(entry->thread, at) : NULL;
}

UPROBE(call_accept)
{
	struct waffle_call_slot *slot;
	struct entry entry;

	slot = entry_decided(&entry, ctx, WAFFLE_CALL_AT_UPROBE);
	if (!slot)
		return 0;
	return slot->state == WAFFLE_OPEN_DEFERRED ? deferred_keep(&entry, ctx, slot)
						   : entry_keep(&entry, ctx, slot, false);
}

UPROBE(call_defer)
{
	struct waffle_call_slot *slot;
	struct entry entry;

	slot = entry_decided(&entry, ctx, WAFFLE_CALL_AT_UPROBE);
	return slot ? entry_defer(&entry, slot) : 0;
}

SEC("tracepoint")
int call_accept_point(void *ctx)
{
	struct waffle_call_slot *slot;
	struct entry entry;

	slot = entry_decided(&entry, ctx, WAFFLE_CALL_AT_POINT);
	return slot ? entry_keep(&entry, ctx, slot, true) : 0;
}

/* ---- stacks ---- */

UPROBE(call_stacks_take)
{
	struct waffle_call_thread *thread = call_thread_get(bpf_get_current_task_btf());
	struct waffle_call_slot *slot = slot_decided(thread, WAFFLE_CALL_AT_UPROBE);

	return slot ? stack_emit(slot->id, slot->deferred.ts, 0, thread->at_call) : 0;
}

/* At a tracepoint the kernel's stack is of interest, too. */
SEC("tracepoint")
int call_stacks_take_point(void *ctx)
{
	struct waffle_call_slot *slot = slot_decided(
		call_thread_at_point(bpf_get_current_task_btf()), WAFFLE_CALL_AT_POINT);

	return slot ? stack_emit(slot->id, slot->deferred.ts,
				 stack_number(ctx, 0, slot->deferred.ts, STACK_OF_POINT), 0)
		    : 0;
}

/* ---- tracepoints ---- */

SEC("tracepoint")
int call_point(void *ctx)
{
	struct waffle_call_slot *slot;
	struct fetches walk;
	struct entry entry;

	entry.now = bpf_ktime_get_ns();
	entry.task = bpf_get_current_task_btf();
	if (finished || !target_has(entry.task->tgid))
		return 0;
	entry.thread = call_thread_at_point(entry.task);
	if (!entry.thread) {
		loss_count(1);
		return 0;
	}
	if (!entry_fetch_program(&entry, ctx))
		return 0;
	slot = &entry.thread->slots[WAFFLE_CALL_AT_POINT];
	slot_begin(slot, entry.site, entry.now, entry.task);
	entry.thread->context = (__u64)ctx;
	walk = entry_fetches(&entry, slot);
	frame_make(&walk, 0, entry.fetch_program->begins,
		   sizeof(struct waffle_frame)); /* no words */
	if (entry_passes(&entry, slot))
		return entry_keep(&entry, ctx, slot, true);
	class_decide(slot, ctx, &call_next_point);
	return 0;
}
