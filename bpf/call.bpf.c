// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Calls: one interpreter of recipes (call.h) at the entries and returns of functions, at USDT
 * probes and at tracepoints. What it makes are the records that a site of a macro makes, so that
 * nobody behind it has to tell them apart.
 */
#include "vmlinux.h"
#include "call_frame.h"
#include "stack.h"
#include "wait.h"

const volatile __u64 call_seed = 0;
/* Some stacks are wanted. False: the verifier need not look at how they are taken, which is most of
 * its time. */
const volatile bool call_stacks = false;
__u64 call_faults;

struct call_threads_map call_threads SEC(".maps");
struct recipes_map recipes SEC(".maps");
struct call_enums_map call_enums SEC(".maps");
struct call_sequences_map call_sequences SEC(".maps");

/* Pairs that have begun. */
struct pair_key {
	__u64 value;
	__u32 tgid, pair;
};
struct pair {
	__u64 id, ts;
	__u32 site;
	__u32 level; /* of a thread's own entry: how many pairs it is in */
};

/* Pairs without a key nest in their thread. What is deeper takes the place of what began first. */
#define PAIR_LEVELS 256
#define PAIR_THREAD 0xffffffffull /* the level of the entry that counts the others */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct pair_key);
	__type(value, struct pair);
} call_pairs SEC(".maps");

/*
 * Ids of spans and events: no two of a thread begin in the same nanosecond, and no two sessions
 * have the same seed. The low 22 bits hold any tid (PID_MAX_LIMIT), the rest 73 minutes; which 73
 * minutes these are is mixed in by itself, or else ids would come again in a longer capture.
 */
#define ID_TID_BITS 22
#define ID_MULTIPLIER 0x9e3779b97f4a7c15ull /* odd: no two products are equal */
#define ID_AGE_MULTIPLIER 0xc2b2ae3d27d4eb4full

/* What a return takes off the stack. */
#if defined(__TARGET_ARCH_x86)
#define RETURN_POPS 8
#else
#define RETURN_POPS 0
#endif

static __always_inline __u64 call_id(__u64 now, struct task_struct *task)
{
	__u64 age = now >> (64 - ID_TID_BITS);
	__u64 id = (now << ID_TID_BITS | (__u32)task->pid) * ID_MULTIPLIER ^
		   age * ID_AGE_MULTIPLIER ^ call_seed;

	return id ?: 1;
}

/* Begins a slot: who calls what and when, and the frame's header. */
static __always_inline void slot_begin(struct waffle_call_slot *slot, __u32 site, __u64 now,
				       struct task_struct *task)
{
	__u64 *frame = (__u64 *)slot->frame;

	slot->id = call_id(now, task);
	slot->recipe = site;
	slot->held.ts = now;
	slot->held.tid = task->pid;
	slot->held.tgid = task->tgid;
	slot->held.cpu = bpf_get_smp_processor_id();
	slot->held.site = site;
	slot->held.depth = WAFFLE_DEPTH_UNKNOWN;
	slot->held.has_parent = 0;
	slot->held.parent_bits = 0;
	frame[0] = slot->id;
	frame[1] = frame[2] = frame[3] = 0;
}

static __always_inline int hit_room(struct waffle_call_slot *slot, __u32 room)
{
	struct waffle_rec_hit *rec =
		record_reserve(bpf_get_smp_processor_id(), sizeof(*rec) + room);
	__u32 size = slot->held.frame_bytes;

	if (!rec)
		return 0;
	rec->tgid = slot->held.tgid;
	rec->site = slot->held.site;
	rec->reserved = 0;
	barrier_var(size); /* checked next to its use, for the verifier of 6.1 */
	if (size > room || bpf_probe_read_kernel(rec + 1, size, slot->frame))
		size = 0;
	rec->frame_bytes = size;
	record_begin(&rec->rec, WAFFLE_REC_HIT, slot->held.tid, slot->held.cpu);
	rec->rec.ts = slot->held.ts;
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
	return 0;
}

/* Delivers the begin of a call, or all of an event. */
static __noinline int call_hit(struct waffle_call_slot *slot)
{
	__u32 size;

	if (!slot)
		return 0;
	size = slot->held.frame_bytes;
	if (size <= 64)
		return hit_room(slot, 64);
	if (size <= 128)
		return hit_room(slot, 128);
	if (size <= 256)
		return hit_room(slot, 256);
	return hit_room(slot, WAFFLE_CALL_FRAME_MAX);
}

static __always_inline int return_room(struct waffle_call_slot *slot, __u32 room, __u64 now)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 cpu = bpf_get_smp_processor_id();
	struct waffle_rec_return *rec = record_reserve(cpu, sizeof(*rec) + room);
	__u32 size = slot->held.frame_bytes;

	if (!rec)
		return 0;
	rec->span_id = slot->id;
	rec->tgid = slot->held.tgid;
	rec->site = slot->held.site;
	rec->reserved = 0;
	barrier_var(size);
	if (size > room || bpf_probe_read_kernel(rec + 1, size, slot->frame))
		size = 0;
	rec->frame_bytes = size;
	record_begin(&rec->rec, WAFFLE_REC_RETURN, task->pid, cpu);
	rec->rec.ts = now;
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
	return 0;
}

/* Delivers the end of a call; its frame is what is known at the return only. */
static __noinline int call_return(struct waffle_call_slot *slot, __u64 now)
{
	__u32 size;

	if (!slot)
		return 0;
	size = slot->held.frame_bytes;
	if (size <= 64)
		return return_room(slot, 64, now);
	return return_room(slot, WAFFLE_CALL_FRAME_MAX, now);
}

/* ---- nesting ---- */

static __always_inline struct call_thread *call_thread_get(struct task_struct *task)
{
	return bpf_task_storage_get(&call_threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* Where the function that is being entered returns to. */
static __always_inline __u64 return_address(struct pt_regs *ctx)
{
#if defined(__TARGET_ARCH_x86)
	__u64 address = 0;

	bpf_probe_read_user(&address, sizeof(address), (void *)PT_REGS_SP(ctx));
	return address;
#else
	return PT_REGS_RET(ctx);
#endif
}

/* The event at outer_sp is still being called: from it, or by a jump in place of a call. */
static __always_inline bool outer_holds(const struct call_thread *thread, struct pt_regs *ctx)
{
	__u64 sp = PT_REGS_SP(ctx), there = 0;

	if (thread->outer_sp == sp)
		return return_address(ctx) == thread->outer_link;
	return thread->outer_sp > sp &&
	       !bpf_probe_read_user(&there, sizeof(there), (void *)thread->outer_sp) &&
	       there == thread->outer_word;
}

/*
 * Whether a call is part of one that counts by itself. An event that does is forgotten when the
 * first call in it was met: what it starts is one launch.
 */
static __always_inline bool call_is_inner(struct call_thread *thread, __u32 flags,
					  struct pt_regs *ctx)
{
	bool inner;

	if (!(flags & WAFFLE_CALL_INNER))
		return false;
	if (thread->outer)
		return true;
	if (!thread->outer_sp)
		return false;
	inner = outer_holds(thread, ctx);
	thread->outer_sp = 0;
	return inner;
}

/* Remembers an event that counts by itself. */
static __always_inline void outer_set(struct call_thread *thread, struct pt_regs *ctx)
{
	__u64 sp = PT_REGS_SP(ctx);

	thread->outer_sp = 0;
	if (bpf_probe_read_user(&thread->outer_word, sizeof(__u64), (void *)sp))
		return;
#if defined(__TARGET_ARCH_x86)
	thread->outer_link = thread->outer_word;
#else
	thread->outer_link = return_address(ctx);
#endif
	thread->outer_sp = sp;
}

static __always_inline struct waffle_recipe *recipe_get(__u64 cookie, __u32 *site)
{
	__u32 recipe = (__u32)cookie >> WAFFLE_COOKIE_RECIPE_SHIFT;

	*site = cookie & ((1u << WAFFLE_COOKIE_RECIPE_SHIFT) - 1);
	return bpf_map_lookup_elem(&recipes, &recipe);
}

static __always_inline void slot_pop(struct call_thread *thread, __u32 depth)
{
	thread->depth = depth;
	if (thread->outer && thread->slots[depth & (WAFFLE_CALL_DEPTH_MAX - 1)].outer)
		thread->outer--;
}

/* What is lower than a stack pointer has returned (its slot has 0), or never will: longjmp(), an
 * exception. */
static __always_inline void slots_drop_below(struct call_thread *thread, __u64 sp)
{
	for (int i = 0; i < WAFFLE_CALL_DEPTH_MAX; i++) {
		__u32 top = thread->depth - 1;

		if (top >= WAFFLE_CALL_DEPTH_MAX || thread->slots[top].sp >= sp)
			return;
		slot_pop(thread, top);
	}
}

/*
 * Calls with the stack pointer of one that is entered. Those that jumped to it in place of a call
 * are still under way: it returns to where the kernel makes functions return whose return is
 * probed. Those of the same entry are, too, by another description of the function. All others were
 * left, and the same caller calls again.
 */
static __always_inline void slots_drop_left(struct call_thread *thread, __u64 sp, __u64 ip,
					    __u32 site)
{
	__u64 keep = thread->depth;

	for (int i = 0; i < WAFFLE_CALL_DEPTH_MAX; i++) {
		__u64 at = thread->depth - 1 - i;
		const struct waffle_call_slot *slot;

		barrier_var(at);
		if (at >= WAFFLE_CALL_DEPTH_MAX)
			break;
		slot = &thread->slots[at];
		if (slot->sp && slot->sp != sp)
			break;
		if (slot->ip != ip || slot->recipe == site)
			keep = at;
	}
	for (int i = 0; i < WAFFLE_CALL_DEPTH_MAX && thread->depth > keep; i++)
		slot_pop(thread, thread->depth - 1);
}

/* Drops the calls that are over when `site` is entered. Global: the verifier looks at it once. */
__noinline int call_drop_stale(struct call_thread *thread, __u64 sp, __u64 ip, __u64 link,
			       __u32 site)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 top;

	if (!thread)
		return 0;
	slots_drop_below(thread, sp);
	top = thread->depth - 1;
	barrier_var(top);
	if (top >= WAFFLE_CALL_DEPTH_MAX || thread->slots[top].sp != sp)
		return 0;
	if (RETURN_POPS && bpf_probe_read_user(&link, sizeof(link), (void *)sp))
		return 0;
	if (link != BPF_CORE_READ(task, mm, uprobes_state.xol_area, vaddr))
		slots_drop_left(thread, sp, ip, site);
	return 0;
}

/* ---- pairs ---- */

/* The thread's level for its next pair, or for its last one. False: it is in none. */
static __always_inline bool pair_level(struct pair_key *key, __u32 tid, bool begins)
{
	struct pair none = {}, *own;
	__u32 level;

	key->value = (__u64)tid << 32 | PAIR_THREAD;
	own = bpf_map_lookup_elem(&call_pairs, key);
	if (!own && begins) {
		bpf_map_update_elem(&call_pairs, key, &none, BPF_NOEXIST);
		own = bpf_map_lookup_elem(&call_pairs, key);
	}
	if (!own || (!begins && !own->level))
		return false;
	level = begins ? own->level++ : --own->level;
	key->value = (__u64)tid << 32 | level % PAIR_LEVELS;
	return true;
}

static __always_inline bool pair_key_get(struct fetches *walk, struct pair_key *key, bool begins)
{
	const struct waffle_recipe *recipe = walk->recipe;
	__u32 index = recipe->begins + recipe->saves + recipe->returns;

	key->tgid = walk->tgid;
	key->pair = recipe->pair;
	if (!recipe->keys)
		return pair_level(key, bpf_get_current_task_btf()->pid, begins);
	barrier_var(index);
	if (index >= WAFFLE_FETCHES_MAX)
		return false;
	key->value =
		fetch_extend(fetch_value(walk, &recipe->fetches[index]), &recipe->fetches[index]);
	return true;
}

/* Remembers a pair that begins. */
static __always_inline void pair_begin(struct fetches *walk, const struct waffle_call_slot *slot)
{
	struct pair pair = {.id = slot->id, .ts = slot->held.ts, .site = slot->recipe};
	struct pair_key key;

	if (pair_key_get(walk, &key, true) &&
	    bpf_map_update_elem(&call_pairs, &key, &pair, BPF_ANY))
		loss_count(1);
}

/* ---- programs ---- */

/* What a program at an entry knows. */
struct entry {
	struct task_struct *task;
	struct call_thread *thread;
	struct waffle_recipe *recipe;
	__u64 now, sp, cookie;
	__u32 site;
};

static __always_inline bool entry_get(struct entry *entry, struct pt_regs *ctx)
{
	entry->now = bpf_ktime_get_ns();
	entry->task = bpf_get_current_task_btf();
	if (!wanted(entry->task))
		return false;
	entry->cookie = bpf_get_attach_cookie(ctx);
	entry->recipe = recipe_get(entry->cookie, &entry->site);
	entry->thread = call_thread_get(entry->task);
	entry->sp = PT_REGS_SP(ctx);
	if (!entry->thread)
		loss_count(1); /* no memory for it */
	return entry->recipe && entry->thread;
}

/* Whether what is entered is recorded. */
static __always_inline bool entry_counts(const struct entry *entry, struct pt_regs *ctx)
{
	/* Nearly always the thread is in no call. */
	if (entry->thread->depth)
		call_drop_stale(entry->thread, entry->sp, PT_REGS_IP(ctx), PT_REGS_RET(ctx),
				entry->site);
	return !call_is_inner(entry->thread, entry->recipe->flags, ctx);
}

static __always_inline struct fetches entry_fetches(const struct entry *entry,
						    struct waffle_call_slot *slot)
{
	return (struct fetches){
		.recipe = entry->recipe,
		.thread = entry->thread,
		.slot = slot,
		.now = entry->now,
		.tgid = entry->task->tgid,
	};
}

static __always_inline bool entry_wants_stack(const struct entry *entry)
{
	return call_stacks && entry->recipe->flags & WAFFLE_CALL_STACK;
}

static __always_inline int entry_stack(const struct entry *entry,
				       const struct waffle_call_slot *slot, __u64 kernel_stack)
{
	if (!entry_wants_stack(entry))
		return 0;
	return stack_emit(slot->id, slot->held.ts, kernel_stack, 0);
}

SEC("uprobe.multi")
int call_instant(struct pt_regs *ctx)
{
	struct waffle_call_slot *slot;
	struct fetches walk;
	struct entry entry;

	if (!entry_get(&entry, ctx) || !entry_counts(&entry, ctx))
		return 0;
	if (entry.recipe->flags & WAFFLE_CALL_OUTER)
		outer_set(entry.thread, ctx);
	slot = &entry.thread->slots[WAFFLE_CALL_DEPTH_MAX];
	slot_begin(slot, entry.site, entry.now, entry.task);
	regs_read(entry.thread, ctx);
	walk = entry_fetches(&entry, slot);
	if (entry.recipe->flags & WAFFLE_CALL_PAIR)
		pair_begin(&walk, slot);
	frame_make(&walk, 0, entry.recipe->begins, sizeof(struct waffle_frame));
	call_hit(slot);
	return entry_stack(&entry, slot, 0);
}

SEC("uprobe.multi")
int call_enter(struct pt_regs *ctx)
{
	struct waffle_call_slot *slot;
	struct call_thread *thread;
	struct fetches walk;
	struct entry entry;
	__u32 depth;

	if (!entry_get(&entry, ctx) || !entry_counts(&entry, ctx))
		return 0;
	thread = entry.thread;
	depth = thread->depth;
	barrier_var(depth);
	if (depth >= WAFFLE_CALL_DEPTH_MAX) {
		loss_count(1);
		return 0;
	}
	slot = &thread->slots[depth];
	thread->depth = depth + 1;
	slot->sp = entry.sp;
	slot->ip = PT_REGS_IP(ctx);
	slot->outer = !!(entry.recipe->flags & WAFFLE_CALL_OUTER);
	thread->outer += slot->outer;
	slot_begin(slot, entry.site, entry.now, entry.task);
	regs_read(thread, ctx);
	walk = entry_fetches(&entry, slot);
	if (entry.recipe->saves) {
		walk.first = entry.recipe->begins;
		thread->saved = 0;
		bpf_loop(entry.recipe->saves, fetch_saved, &walk, 0);
	}
	frame_make(&walk, 0, entry.recipe->begins, sizeof(struct waffle_frame));
	call_hit(slot);
	return entry_stack(&entry, slot, 0);
}

/*
 * The slot of the call that returns: its entry had this stack pointer. Those of functions that
 * jumped to each other, or of one with two descriptions, have the same; they return in any order.
 * NULL: the entry was not recorded.
 */
static __always_inline struct waffle_call_slot *slot_returning(struct call_thread *thread, __u64 sp,
							       __u32 site)
{
	slots_drop_below(thread, sp);
	for (int i = 0; i < WAFFLE_CALL_DEPTH_MAX; i++) {
		__u64 at = thread->depth - 1 - i;
		struct waffle_call_slot *slot;

		barrier_var(at);
		if (at >= WAFFLE_CALL_DEPTH_MAX)
			return NULL;
		slot = &thread->slots[at];
		if (slot->sp > sp)
			return NULL;
		if (slot->sp == sp && slot->recipe == site) {
			slot->sp = 0; /* it goes when it is the last one */
			return slot;
		}
	}
	return NULL;
}

SEC("uretprobe.multi")
int call_leave(struct pt_regs *ctx)
{
	struct waffle_call_slot *slot;
	struct fetches walk;
	struct entry entry;

	if (!entry_get(&entry, ctx))
		return 0;
	slot = slot_returning(entry.thread, entry.sp - RETURN_POPS, entry.site);
	if (!slot)
		return 0;
	regs_read(entry.thread, ctx);
	walk = entry_fetches(&entry, slot);
	frame_make(&walk, entry.recipe->begins + entry.recipe->saves, entry.recipe->returns, 0);
	return call_return(slot, entry.now);
}

/* The end of a pair, on whatever thread. */
SEC("uprobe.multi")
int call_end(struct pt_regs *ctx)
{
	struct waffle_call_slot *slot;
	struct pair_key key;
	struct fetches walk;
	struct entry entry;
	struct pair *pair;

	if (!entry_get(&entry, ctx))
		return 0;
	slot = &entry.thread->slots[WAFFLE_CALL_DEPTH_MAX];
	regs_read(entry.thread, ctx);
	walk = entry_fetches(&entry, slot);
	if (!pair_key_get(&walk, &key, false))
		return 0;
	pair = bpf_map_lookup_elem(&call_pairs, &key);
	if (!pair)
		return 0;
	slot->id = pair->id;
	slot->held.ts = pair->ts;
	slot->held.tgid = entry.task->tgid;
	slot->held.site = pair->site;
	bpf_map_delete_elem(&call_pairs, &key);
	frame_make(&walk, entry.recipe->begins + entry.recipe->saves, entry.recipe->returns, 0);
	return call_return(slot, entry.now);
}

/* ---- tracepoints ---- */

SEC("tracepoint")
int call_point(void *ctx)
{
	struct waffle_call_slot *slot;
	struct fetches walk;
	struct entry entry;
	long number = -1;

	entry.now = bpf_ktime_get_ns();
	entry.task = bpf_get_current_task_btf();
	if (finished || !target_has(entry.task->tgid))
		return 0;
	entry.cookie = bpf_get_attach_cookie(ctx);
	entry.recipe = recipe_get(entry.cookie, &entry.site);
	entry.thread = call_thread_get(entry.task);
	if (!entry.recipe || !entry.thread)
		return 0;
	slot = &entry.thread->slots[WAFFLE_CALL_DEPTH_MAX + 1];
	slot_begin(slot, entry.site, entry.now, entry.task);
	entry.thread->context = (__u64)ctx;
	walk = entry_fetches(&entry, slot);
	frame_make(&walk, 0, entry.recipe->begins, sizeof(struct waffle_frame));
	call_hit(slot);
	if (entry_wants_stack(&entry))
		number = bpf_get_stackid(ctx, &stacks, 0);
	return entry_stack(&entry, slot, number < 0 ? 0 : number + 1);
}
