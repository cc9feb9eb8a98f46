// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Hits and span ends of a filtered capture. Programs that are generated from the expression decide,
 * and continue here by a tail call (enum waffle_next). At sites where the decision is fixed, the
 * programs here are attached directly. A span that passes is stored until it ends, so that its end
 * passes too. A span whose duration the filter tests is deferred: its begin is copied into a map,
 * and becomes a record with its own time if the program for its end accepts it. A span that does
 * not fit into these maps is counted as one record produced and dropped.
 */
#include "vmlinux.h"
#include "children.bpf.h"
#include "deferred.bpf.h"
#include "rate.bpf.h"
#include "stack.h"
#include "uprobe.bpf.h"

__u64 rate_windows[WAFFLE_RATE_WINDOWS];

/* Userspace sets the sizes of these maps before loading, by the needs of the expression. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, struct waffle_open);
} filter_open SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct waffle_class);
} filter_classes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, WAFFLE_NEXT_COUNT);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} filter_next SEC(".maps");

/* A separate program takes the stack of a recorded site. It is reached by a tail call, since a
 * function call would need too much of the kernel's stack. */
static __always_inline int site_stack(struct pt_regs *ctx, bool recorded)
{
	if (recorded && bpf_get_attach_cookie(ctx) & WAFFLE_COOKIE_STACK)
		bpf_tail_call(ctx, &filter_next, WAFFLE_NEXT_STACK);
	return 0;
}

UPROBE(filter_stack)
{
	return stack_emit(PT_REGS_PARM1(ctx), bpf_ktime_get_ns(), 0, WAFFLE_STACK_SITE);
}

/* Returns 1, as the functions below do if the hit is or may be recorded. */
static __noinline int begin_emit(struct pt_regs *ctx, __u64 ts)
{
	hit_emit(ctx, bpf_get_current_task_btf(), ts);
	return 1;
}

static __always_inline void family_get(struct pt_regs *ctx, struct family *family)
{
	const struct waffle_frame *frame = (const void *)PT_REGS_PARM3(ctx);

	family->parent = NULL;
	family->parent_id = 0;
	family->parent_bits = 0;
	family->depth = WAFFLE_DEPTH_UNKNOWN;
	if ((!config.filter_tracks && !config.keep_children) ||
	    bpf_probe_read_user(&family->parent_id, sizeof(__u64), &frame->parent))
		return;
	if (!family->parent_id) {
		family->depth = 0;
		return;
	}
	family->parent = bpf_map_lookup_elem(&filter_open, &family->parent_id);
	if (!family->parent)
		return;
	family->parent_bits = family->parent->name_bits;
	if (family->parent->depth != WAFFLE_DEPTH_UNKNOWN)
		family->depth = family->parent->depth + 1;
}

static __always_inline struct waffle_class *class_get(struct pt_regs *ctx, struct waffle_open *open)
{
	__u32 index = (bpf_get_attach_cookie(ctx) & ~WAFFLE_COOKIE_STACK) >> 32;
	struct waffle_class *class = bpf_map_lookup_elem(&filter_classes, &index);

	if (class) {
		__builtin_memset(open, 0, sizeof(*open));
		open->name_bits = class->name_bits;
		open->class = index;
		open->slot = WAFFLE_SLOT_NONE;
	}
	return class;
}

static __always_inline bool open_add(struct pt_regs *ctx, struct waffle_open *open,
				     struct task_struct *task, enum waffle_open_state state,
				     __u64 now)
{
	__u64 id = PT_REGS_PARM1(ctx);

	open->tid = task->pid;
	open->tgid = task->tgid;
	open->state = state;
	open->ts = now;
	open->sp = PT_REGS_SP(ctx);
	if (!bpf_map_update_elem(&filter_open, &id, open, BPF_NOEXIST))
		return true;
	sweep_wanted = true;
	return false;
}

/* Delivers the begin of a span that passes. */
static __always_inline int span_keep(struct pt_regs *ctx, struct waffle_open *open,
				     struct task_struct *task, __u64 now)
{
	if (open_add(ctx, open, task, WAFFLE_OPEN_KEPT, now))
		return begin_emit(ctx, now);
	loss_count(1);
	return 0;
}

static __always_inline bool is_kept(const struct waffle_open *open)
{
	return config.keep_children && open && open->state == WAFFLE_OPEN_KEPT;
}

/*
 * Finds the verdict of the deferred spans around a record; NULL: there are none. They are in the
 * buffer of the thread that began the parent. A record of another thread can't be buffered there.
 * If they are not decided yet, it counts as dropped if they pass.
 */
static __always_inline struct buffer *children_verdict(struct waffle_open *parent,
						       struct task_struct *task,
						       struct deferred_verdict *verdict)
{
	struct buffer *buffer;
	bool own = parent->tid == (__u32)task->pid && parent->tgid == (__u32)task->tgid;
	__u64 inside = open_inside(parent);

	buffer = inside ? buffer_get(parent->tgid, parent->tid) : NULL;
	if (!buffer || (!own && parent->state == WAFFLE_OPEN_DEFERRED)) {
		if (parent->state == WAFFLE_OPEN_DEFERRED)
			__sync_fetch_and_add(&parent->lost, 1);
		return NULL;
	}
	verdict_get(buffer, inside, parent->born, verdict);
	if (own || verdict->kept)
		return buffer;
	if (verdict->pending)
		slot_lose(buffer, verdict->innermost, 1);
	return NULL;
}

/* A hit that does not pass (yet): it may be a parent of others, or a child of a kept span. */
static __noinline int hit_reject(struct pt_regs *ctx, __u64 now)
{
	struct task_struct *task = bpf_get_current_task_btf();
	enum waffle_open_state state = WAFFLE_OPEN_REJECTED;
	struct deferred_verdict verdict;
	struct waffle_class *class;
	struct waffle_open open;
	struct family family;
	struct buffer *buffer;
	int buffered = 0;

	if (!config.filter_tracks && !config.keep_children)
		return 0;
	class = class_get(ctx, &open);
	if (!class || (!class->is_span && !config.keep_children))
		return 0;
	family_get(ctx, &family);
	open.depth = family.depth;
	if (config.keep_children && family.parent) {
		if (is_kept(family.parent))
			return class->is_span ? span_keep(ctx, &open, task, now)
					      : begin_emit(ctx, now);
		buffer = children_verdict(family.parent, task, &verdict);
		if (buffer && verdict.kept)
			return class->is_span ? span_keep(ctx, &open, task, now)
					      : begin_emit(ctx, now);
		if (buffer && verdict.pending) {
			open.inside = verdict.pending;
			open.position = buffer->head;
			open.born = buffer->clock;
			if (child_add_hit(ctx, buffer, &verdict, task, now, class->is_span)) {
				state = WAFFLE_OPEN_BUFFERED;
				buffered = 1;
			}
		}
	}
	/* If it finds no room, its children will seem to have an unknown parent. */
	if (class->is_span && !open_add(ctx, &open, task, state, now))
		loss_count(1);
	return buffered;
}

UPROBE(filter_hit)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 now;

	if (!wanted(task))
		return 0;
	if (!config.rate_unit_ns && !(bpf_get_attach_cookie(ctx) & WAFFLE_COOKIE_STACK))
		return hit_emit(ctx, task, 0);
	now = bpf_ktime_get_ns();
	return site_stack(ctx, !config.rate_unit_ns || rate_take(now) ? begin_emit(ctx, now)
								      : hit_reject(ctx, now));
}

UPROBE(filter_keep)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 now = bpf_ktime_get_ns();
	struct waffle_open open;
	struct family family;

	if (!wanted(task))
		return 0;
	if (!rate_take(now))
		return site_stack(ctx, hit_reject(ctx, now));
	if (!class_get(ctx, &open))
		return 0;
	family_get(ctx, &family);
	open.depth = family.depth;
	return site_stack(ctx, span_keep(ctx, &open, task, now));
}

UPROBE(filter_reject)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return wanted(task) ? site_stack(ctx, hit_reject(ctx, bpf_ktime_get_ns())) : 0;
}

/* Finds the deferred spans around a span that will be deferred, and takes a slot for those inside
 * it. False: one of them was kept, so that this one passes at once. */
static __always_inline bool defer_place(struct waffle_open *open, const struct family *family,
					struct task_struct *task)
{
	struct waffle_open *parent = family->parent;
	struct deferred_verdict verdict;
	struct buffer *buffer = buffer_make(task);

	if (parent && open_inside(parent) && buffer && parent->tid == (__u32)task->pid &&
	    parent->tgid == (__u32)task->tgid) {
		verdict_get(buffer, open_inside(parent), parent->born, &verdict);
		if (verdict.kept)
			return false;
		open->inside = verdict.pending;
	}
	if (buffer)
		slot_take(buffer, open);
	return true;
}

UPROBE(filter_defer)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 now = bpf_ktime_get_ns(), id = PT_REGS_PARM1(ctx);
	struct waffle_class *class;
	struct waffle_open open;
	struct family family;
	struct buffer *buffer;

	if (!wanted(task))
		return 0;
	class = class_get(ctx, &open);
	if (!class)
		return 0;
	family_get(ctx, &family);
	open.depth = family.depth;
	open.deferred = class->deferred;
	if (is_kept(family.parent) || (config.keep_children && !defer_place(&open, &family, task)))
		return site_stack(ctx, span_keep(ctx, &open, task, now));
	if (deferred_add_sized(class->deferred, ctx, &family, now)) {
		if (open_add(ctx, &open, task, WAFFLE_OPEN_DEFERRED, now))
			return site_stack(ctx, true); /* its stack can't be taken later */
		deferred_delete(class->deferred, id);
	}
	loss_count(1);
	if (config.keep_children && open.slot < WAFFLE_CHILD_SLOTS) {
		buffer = buffer_get(task->tgid, task->pid);
		if (buffer)
			__sync_fetch_and_and(&buffer->deferred, ~(1ull << open.slot));
	}
	return 0;
}

/* The end of a span whose begin is in the buffer of its thread. */
static __noinline void buffered_end(struct pt_regs *ctx, struct waffle_open *open, __u64 now)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct buffer *buffer = buffer_get(open->tgid, open->tid);
	struct deferred_verdict verdict;

	if (!buffer)
		return;
	verdict_get(buffer, open->inside, open->born, &verdict);
	if (verdict.kept) /* then its begin was already overwritten */
		loss_count(1);
	else if (!verdict.pending)
		return;
	else if (open->tid != (__u32)task->pid ||
		 buffer->head - open->position > WAFFLE_CHILD_COUNT)
		slot_lose(buffer, verdict.innermost, 1);
	else
		child_add_end(ctx, buffer, &verdict, task, now, open->position);
}

UPROBE(filter_end)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 id = PT_REGS_PARM1(ctx), now;
	struct waffle_deferred *deferred;
	struct waffle_open *open;

	if (!wanted(task))
		return 0;
	open = bpf_map_lookup_elem(&filter_open, &id);
	/* A child process has copies of the spans that were open at the fork. */
	if (!open || open->tgid != (__u32)task->tgid)
		return 0;
	now = bpf_ktime_get_ns();
	if (open->state == WAFFLE_OPEN_DEFERRED) {
		deferred = deferred_get(open->deferred, id);
		if (deferred) {
			deferred->end_ts = now;
			bpf_tail_call(ctx, &filter_next, WAFFLE_NEXT_COUNT + open->class);
			deferred_delete(open->deferred, id);
		}
	} else if (open->state == WAFFLE_OPEN_KEPT) {
		span_end_emit(ctx, task, now);
	} else if (config.keep_children && open->state == WAFFLE_OPEN_BUFFERED) {
		buffered_end(ctx, open, now);
	}
	bpf_map_delete_elem(&filter_open, &id);
	return 0;
}

/* ---- the end of a deferred span ---- */

/* A walk over the buffered records of a deferred span. */
struct filter_walk {
	struct buffer *buffer;
	__u64 bit;
	__u32 from;
	__u32 lost;
	bool count; /* another thread's span: its buffered records are lost */
};

static long walk_child(__u32 index, void *context)
{
	struct filter_walk *walk = context;
	__u32 cpu = bpf_get_smp_processor_id(), position = walk->from + index;
	struct child *child = &walk->buffer->children[position & (WAFFLE_CHILD_COUNT - 1)];
	struct waffle_open *open;
	struct waffle_cpu *counts;
	__u32 bytes = child->bytes;
	void *ring;
	__u64 id;

	if (!(child->inside & walk->bit))
		return 0;
	if (walk->count) {
		walk->lost++;
		return 0;
	}
	child->inside = 0;
	/* The end of a span whose begin was overwritten. */
	if (child->ends && (__s32)(child->position - walk->from) < 0) {
		walk->lost++;
		return 0;
	}
	counts = cpu_get(cpu);
	ring = ring_get(cpu);
	if (!counts || !ring || bytes > WAFFLE_CHILD_BYTES)
		return 0;
	__sync_fetch_and_add(&counts->produced[WAFFLE_SOURCE_SPANS], 1);
	if (bpf_ringbuf_output(ring, child->record, bytes, BPF_RB_NO_WAKEUP))
		__sync_fetch_and_add(&counts->dropped[WAFFLE_SOURCE_SPANS], 1);
	if (child->begins) {
		id = *(__u64 *)(child->record + sizeof(struct waffle_rec_hit));
		open = bpf_map_lookup_elem(&filter_open, &id);
		if (open && open->state == WAFFLE_OPEN_BUFFERED)
			open->state = WAFFLE_OPEN_KEPT;
	}
	return 0;
}

/* Delivers the buffered records of a deferred span, which passes. */
static __noinline void children_release(struct waffle_open *open)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct buffer *buffer = buffer_get(open->tgid, open->tid);
	struct filter_walk walk = {.buffer = buffer, .lost = open->lost};
	struct slot *slot;
	__u32 count;

	if (buffer && open->slot < WAFFLE_CHILD_SLOTS) {
		slot = &buffer->slots[open->slot & (WAFFLE_CHILD_SLOTS - 1)];
		walk.bit = 1ull << (open->slot & (WAFFLE_CHILD_SLOTS - 1));
		walk.count = open->tid != (__u32)task->pid;
		walk.lost += slot->lost;
		walk.from = slot->first;
		count = buffer->head - slot->first;
		if (count > WAFFLE_CHILD_COUNT) {
			count = WAFFLE_CHILD_COUNT;
			walk.from = buffer->head - WAFFLE_CHILD_COUNT;
		}
		slot->kept_from = slot->begin;
		slot->kept_to = buffer->clock;
		bpf_loop(count, walk_child, &walk, 0);
		__sync_fetch_and_and(&buffer->deferred, ~walk.bit);
	}
	loss_count(walk.lost);
}

/* Delivers a deferred span that passes: its begin, its buffered records, and its end. */
static __noinline int release(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 id = PT_REGS_PARM1(ctx);
	struct waffle_open *open = bpf_map_lookup_elem(&filter_open, &id);
	struct waffle_deferred *deferred = open ? deferred_get(open->deferred, id) : NULL;

	if (!open || !deferred)
		return 0;
	if (deferred_emit(open->deferred, id))
		span_end_emit(ctx, task, deferred->end_ts);
	else
		loss_count(1);
	if (config.keep_children)
		children_release(open);
	deferred_delete(open->deferred, id);
	bpf_map_delete_elem(&filter_open, &id);
	return 0;
}

/* --keep-children: a deferred span that does not pass may be inside one that does, or that is not
 * decided yet. True: one around it passed, so it must be released. */
static __noinline bool children_discard(struct pt_regs *ctx, struct waffle_open *open,
					struct waffle_deferred *deferred)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct buffer *buffer = buffer_get(open->tgid, open->tid);
	struct deferred_verdict verdict;
	__u32 position, lost = open->lost;

	if (!buffer)
		return false;
	verdict_get(buffer, open->inside, open->born, &verdict);
	if (verdict.kept)
		return true;
	if (open->slot < WAFFLE_CHILD_SLOTS) {
		__sync_fetch_and_and(&buffer->deferred,
				     ~(1ull << (open->slot & (WAFFLE_CHILD_SLOTS - 1))));
		lost += buffer->slots[open->slot & (WAFFLE_CHILD_SLOTS - 1)].lost;
	}
	if (!verdict.pending)
		return false;
	position = buffer->head;
	if (open->tid != (__u32)task->pid)
		lost += 2;
	else if (child_add_deferred(buffer, &verdict, deferred))
		child_add_end(ctx, buffer, &verdict, task, deferred->end_ts, position);
	else
		lost++;
	if (lost)
		slot_lose(buffer, verdict.innermost, lost);
	return false;
}

static __noinline int discard(struct pt_regs *ctx)
{
	__u64 id = PT_REGS_PARM1(ctx);
	struct waffle_open *open = bpf_map_lookup_elem(&filter_open, &id);
	struct waffle_deferred *deferred = open ? deferred_get(open->deferred, id) : NULL;

	if (!open || !deferred)
		return 0;
	if (config.keep_children && children_discard(ctx, open, deferred))
		return release(ctx);
	deferred_delete(open->deferred, id);
	bpf_map_delete_elem(&filter_open, &id);
	return 0;
}

UPROBE(filter_release)
{
	return rate_take(bpf_ktime_get_ns()) ? release(ctx) : discard(ctx);
}

UPROBE(filter_discard)
{
	return discard(ctx);
}

/* Deletes the buffer of a thread that exits. If another thread must still end spans that it holds,
 * it stays while the process lives. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(filter_thread_exit, struct task_struct *task)
{
	__u64 key = (__u64)task->tgid << 32 | task->pid;
	struct buffer *buffer = bpf_map_lookup_elem(&filter_buffers, &key);

	if (buffer && !buffer->deferred)
		bpf_map_delete_elem(&filter_buffers, &key);
	return 0;
}
