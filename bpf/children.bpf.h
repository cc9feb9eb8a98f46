/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * --keep-children: records inside a deferred span are buffered in a ring of their thread until the
 * span is decided. Each deferred span of a thread has a slot; a buffered record has a bit for each
 * deferred span around it. Only the thread itself writes its buffer, except for atomic counts and
 * marks. Slots are reused. `born` numbers what begins in a thread, so that a bit of an old record
 * is not mistaken for the slot's new owner. The last owner that was kept is remembered, because a
 * child may end after it.
 */
#ifndef WAFFLE_CHILDREN_BPF_H
#define WAFFLE_CHILDREN_BPF_H

#include "emit.bpf.h"
#include "filter.h"

#define CHILD_FRAME_BYTES (WAFFLE_CHILD_BYTES - sizeof(struct waffle_rec_hit))

struct child {
	__u64 inside; /* 0: emitted or obsolete */
	__u32 born;
	__u32 position; /* of its begin, if this is the end of a span */
	__u8 bytes;
	__u8 begins, ends; /* a span */
	__u8 padding[5];
	__u8 record[WAFFLE_CHILD_BYTES];
};

struct slot {
	__u32 begin, first; /* the owner's `born`, and the position of its first child */
	/* the last kept owner: spans and events that began in [from, to) are inside it */
	__u32 kept_from, kept_to;
	__u32 lost; /* children of its owner that could not be buffered */
};

struct buffer {
	__u64 deferred; /* slots that have an owner, one bit each */
	__u32 head;     /* position of the next child */
	__u32 clock;
	struct slot slots[WAFFLE_CHILD_SLOTS];
	struct child children[WAFFLE_CHILD_COUNT];
};

/* Threads that have had a deferred span; key: tgid << 32 | tid. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, struct buffer);
} filter_buffers SEC(".maps");

/* Zeros to create a large map element from. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct buffer);
} filter_zero SEC(".maps");

static __always_inline struct buffer *buffer_get(__u32 tgid, __u32 tid)
{
	__u64 key = (__u64)tgid << 32 | tid;

	return bpf_map_lookup_elem(&filter_buffers, &key);
}

/* The buffer of the current thread, created if it has none. NULL: there are too many. */
static __always_inline struct buffer *buffer_make(struct task_struct *task)
{
	__u64 key = (__u64)task->tgid << 32 | task->pid;
	struct buffer *buffer = bpf_map_lookup_elem(&filter_buffers, &key);
	__u32 zero = 0;
	void *empty;

	if (buffer)
		return buffer;
	empty = bpf_map_lookup_elem(&filter_zero, &zero);
	if (!empty || bpf_map_update_elem(&filter_buffers, &key, empty, BPF_NOEXIST))
		return NULL;
	return bpf_map_lookup_elem(&filter_buffers, &key);
}

/* The decision of the deferred spans around a record: keep it, buffer it, or drop it. */
struct deferred_verdict {
	struct buffer *buffer;
	__u64 inside;  /* bits not examined yet, the next one lowest */
	__u64 pending; /* those not decided yet */
	__u32 born;
	__u32 innermost; /* slot of the youngest of these */
	__u32 youngest;
	bool kept; /* one of them was kept */
};

static long verdict_slot(__u32 index, void *context)
{
	struct deferred_verdict *verdict = context;
	struct slot *slot = &verdict->buffer->slots[index & (WAFFLE_CHILD_SLOTS - 1)];
	__u64 inside = verdict->inside;

	verdict->inside = inside >> 1;
	if (!(inside & 1))
		return !inside;
	if ((verdict->buffer->deferred >> index & 1) && (__s32)(verdict->born - slot->begin) >= 0) {
		if (!verdict->pending || (__s32)(slot->begin - verdict->youngest) > 0) {
			verdict->youngest = slot->begin;
			verdict->innermost = index;
		}
		verdict->pending |= 1ull << index;
	} else if ((__s32)(verdict->born - slot->kept_from) >= 0 &&
		   (__s32)(slot->kept_to - verdict->born) > 0) {
		verdict->kept = true;
	}
	return 0;
}

/* Uses bpf_loop(), since the verifier would follow every round of a plain loop. */
static __noinline void verdict_get(struct buffer *buffer, __u64 inside, __u32 born,
				   struct deferred_verdict *verdict)
{
	verdict->buffer = buffer;
	verdict->inside = inside;
	verdict->pending = 0;
	verdict->born = born;
	verdict->innermost = 0;
	verdict->youngest = 0;
	verdict->kept = false;
	bpf_loop(WAFFLE_CHILD_SLOTS, verdict_slot, verdict, 0);
}

static __always_inline void slot_lose(struct buffer *buffer, __u32 slot, __u32 count)
{
	__sync_fetch_and_add(&buffer->slots[slot & (WAFFLE_CHILD_SLOTS - 1)].lost, count);
}

/* The deferred spans around a child of `open`: those around it, and itself if it is deferred. */
static __always_inline __u64 open_inside(const struct waffle_open *open)
{
	__u64 own = open->state == WAFFLE_OPEN_DEFERRED && open->slot < WAFFLE_CHILD_SLOTS
			    ? 1ull << (open->slot & (WAFFLE_CHILD_SLOTS - 1))
			    : 0;

	return open->inside | own;
}

/* Gives a slot of its thread to a span that will be deferred. */
static __always_inline void slot_take(struct buffer *buffer, struct waffle_open *open)
{
	__u64 taken = buffer->deferred;
	struct slot *slot;
	__u32 index = 0;

	open->born = buffer->clock++;
	while (index < WAFFLE_CHILD_SLOTS && (taken >> index & 1))
		index++;
	if (index == WAFFLE_CHILD_SLOTS)
		return;
	slot = &buffer->slots[index];
	slot->begin = open->born;
	slot->first = buffer->head;
	slot->lost = 0;
	__sync_fetch_and_or(&buffer->deferred, 1ull << index);
	open->slot = index;
}

/* Adds a record to the ring. The one that it overwrites is lost if a deferred span needs it. */
static __always_inline struct child *child_add(struct buffer *buffer,
					       const struct deferred_verdict *verdict)
{
	struct child *child = &buffer->children[buffer->head & (WAFFLE_CHILD_COUNT - 1)];
	struct deferred_verdict old;

	if (child->inside) {
		verdict_get(buffer, child->inside, child->born, &old);
		if (old.pending)
			slot_lose(buffer, old.innermost, 1);
	}
	buffer->head++;
	child->inside = verdict->pending;
	child->born = buffer->clock++;
	child->begins = child->ends = 0;
	return child;
}

/* Buffers the hit of the current probe. False: it is too big. */
static __always_inline bool child_add_hit(struct pt_regs *ctx, struct buffer *buffer,
					  const struct deferred_verdict *verdict,
					  struct task_struct *task, __u64 ts, bool begins)
{
	__u64 size = PT_REGS_PARM4(ctx);
	struct waffle_rec_hit *rec;
	struct child *child;

	barrier_var(size); /* checked next to its use, for the verifier of 6.1 */
	if (size > CHILD_FRAME_BYTES) {
		slot_lose(buffer, verdict->innermost, 1);
		return false;
	}
	child = child_add(buffer, verdict);
	rec = (struct waffle_rec_hit *)child->record;
	if (bpf_probe_read_user(rec + 1, size, (void *)PT_REGS_PARM3(ctx)))
		size = 0;
	record_begin(&rec->rec, WAFFLE_REC_HIT, task->pid, bpf_get_smp_processor_id());
	rec->rec.ts = ts;
	rec->tgid = task->tgid;
	rec->site = bpf_get_attach_cookie(ctx);
	rec->frame_bytes = size;
	rec->reserved = 0;
	child->bytes = sizeof(*rec) + size;
	child->begins = begins;
	return true;
}

/* Buffers the begin of a deferred span that did not pass, as a child of an outer one. */
static __always_inline bool child_add_deferred(struct buffer *buffer,
					       const struct deferred_verdict *verdict,
					       const struct waffle_deferred *deferred)
{
	__u64 size = deferred->frame_bytes;
	struct waffle_rec_hit *rec;
	struct child *child;

	barrier_var(size); /* checked next to its use, for the verifier of 6.1 */
	if (size > CHILD_FRAME_BYTES) {
		slot_lose(buffer, verdict->innermost, 1);
		return false;
	}
	child = child_add(buffer, verdict);
	rec = (struct waffle_rec_hit *)child->record;
	if (bpf_probe_read_kernel(rec + 1, size, deferred + 1))
		size = 0;
	rec->rec.ts = deferred->ts;
	rec->rec.tid = deferred->tid;
	rec->rec.kind = WAFFLE_REC_HIT;
	rec->rec.cpu = deferred->cpu;
	rec->tgid = deferred->tgid;
	rec->site = deferred->site;
	rec->frame_bytes = size;
	rec->reserved = 0;
	child->bytes = sizeof(*rec) + size;
	child->begins = 1;
	return true;
}

/* Buffers the end of a span whose begin is at `position`. */
static __always_inline void child_add_end(struct pt_regs *ctx, struct buffer *buffer,
					  const struct deferred_verdict *verdict,
					  struct task_struct *task, __u64 ts, __u32 position)
{
	struct child *child = child_add(buffer, verdict);
	struct waffle_rec_span_end *rec = (struct waffle_rec_span_end *)child->record;

	record_begin(&rec->rec, WAFFLE_REC_SPAN_END, task->pid, bpf_get_smp_processor_id());
	rec->rec.ts = ts;
	rec->span_id = PT_REGS_PARM1(ctx);
	rec->tgid = task->tgid;
	rec->site = WAFFLE_SITE_UNKNOWN;
	rec->probe_addr = PT_REGS_PARM2(ctx);
	child->bytes = sizeof(*rec);
	child->ends = 1;
	child->position = position;
}

#endif
