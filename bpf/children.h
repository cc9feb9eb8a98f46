/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * --keep-children: what happens inside a held span waits in a ring of its thread until the span is
 * decided. Held spans of a thread have a slot each; a waiting record has the bits of all that it is
 * in. A thread's buffer is written by this thread alone, but for atomic counts and marks.
 *
 * Slots are used again. `born` numbers what begins in a thread, so that an old bit is told from the
 * slot's new owner, and the last owner that was kept is remembered: a child may outlive it.
 */
#ifndef WAFFLE_CHILDREN_H
#define WAFFLE_CHILDREN_H

#include "emit.h"
#include "filter.h"

#define CHILD_COUNT 128 /* records that wait in a thread at most */
#define CHILD_BYTES 240 /* of a record at most */
#define CHILD_FRAME_BYTES (CHILD_BYTES - sizeof(struct waffle_rec_hit))
#define SLOT_COUNT 64 /* held spans of a thread whose children are kept */

struct child {
	__u64 inside; /* 0: emitted, or of no use any more */
	__u32 born;
	__u32 position; /* of the begin, if it is the end of a span */
	__u8 bytes;
	__u8 begins, ends; /* a span */
	__u8 padding[5];
	__u8 record[CHILD_BYTES];
};

struct slot {
	__u32 begin, first;       /* its owner: born, and the position of its first child */
	__u32 kept_from, kept_to; /* the last owner that was kept: born in [from, to) is inside */
	__u32 lost;               /* children of its owner that could not wait */
};

struct buffer {
	__u64 held; /* slots that have an owner */
	__u32 head; /* position of the next child */
	__u32 clock;
	struct slot slots[SLOT_COUNT];
	struct child children[CHILD_COUNT];
};

/* Threads with a held span in their life; key: tgid << 32 | tid. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, struct buffer);
} filter_buffers SEC(".maps");

/* What a big map element is made of before it is filled. */
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

/* Of the current thread, made if it has none; NULL if there are too many. */
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

/* What the held spans around a record decide for it. */
struct standing {
	struct buffer *buffer;
	__u64 inside;  /* bits that were not looked at yet, the next one lowest */
	__u64 pending; /* those that are not decided */
	__u32 born;
	__u32 innermost; /* slot of the youngest of them */
	__u32 youngest;
	bool kept; /* one of them was kept */
};

static long standing_slot(__u32 index, void *context)
{
	struct standing *standing = context;
	struct slot *slot = &standing->buffer->slots[index & (SLOT_COUNT - 1)];
	__u64 inside = standing->inside;

	standing->inside = inside >> 1;
	if (!(inside & 1))
		return !inside;
	if ((standing->buffer->held >> index & 1) && (__s32)(standing->born - slot->begin) >= 0) {
		if (!standing->pending || (__s32)(slot->begin - standing->youngest) > 0) {
			standing->youngest = slot->begin;
			standing->innermost = index;
		}
		standing->pending |= 1ull << index;
	} else if ((__s32)(standing->born - slot->kept_from) >= 0 &&
		   (__s32)(slot->kept_to - standing->born) > 0) {
		standing->kept = true;
	}
	return 0;
}

/* A callback, since the verifier would follow all rounds of a loop. */
static __noinline void standing_get(struct buffer *buffer, __u64 inside, __u32 born,
				    struct standing *standing)
{
	standing->buffer = buffer;
	standing->inside = inside;
	standing->pending = 0;
	standing->born = born;
	standing->innermost = 0;
	standing->youngest = 0;
	standing->kept = false;
	bpf_loop(SLOT_COUNT, standing_slot, standing, 0);
}

static __always_inline void slot_lose(struct buffer *buffer, __u32 slot, __u32 count)
{
	__sync_fetch_and_add(&buffer->slots[slot & (SLOT_COUNT - 1)].lost, count);
}

/* What is inside the parent of a record is also inside the parent itself, if it is held. */
static __always_inline __u64 open_inside(const struct waffle_open *open)
{
	__u64 own = open->state == WAFFLE_OPEN_HELD && open->slot < SLOT_COUNT
			    ? 1ull << (open->slot & (SLOT_COUNT - 1))
			    : 0;

	return open->inside | own;
}

/* Gives a span that is to be held a slot in its thread. */
static __always_inline void slot_take(struct buffer *buffer, struct waffle_open *open)
{
	__u64 taken = buffer->held;
	struct slot *slot;
	__u32 index = 0;

	open->born = buffer->clock++;
	while (index < SLOT_COUNT && (taken >> index & 1))
		index++;
	if (index == SLOT_COUNT)
		return;
	slot = &buffer->slots[index];
	slot->begin = open->born;
	slot->first = buffer->head;
	slot->lost = 0;
	__sync_fetch_and_or(&buffer->held, 1ull << index);
	open->slot = index;
}

/* Room for a record that waits. What was there is lost for those who still wait for it. */
static __always_inline struct child *child_add(struct buffer *buffer,
					       const struct standing *standing)
{
	struct child *child = &buffer->children[buffer->head & (CHILD_COUNT - 1)];
	struct standing old;

	if (child->inside) {
		standing_get(buffer, child->inside, child->born, &old);
		if (old.pending)
			slot_lose(buffer, old.innermost, 1);
	}
	buffer->head++;
	child->inside = standing->pending;
	child->born = buffer->clock++;
	child->begins = child->ends = 0;
	return child;
}

/* Lets the hit of the current probe wait; false if it is too big. */
static __always_inline bool child_add_hit(struct pt_regs *ctx, struct buffer *buffer,
					  const struct standing *standing, struct task_struct *task,
					  __u64 ts, bool begins)
{
	__u64 size = PT_REGS_PARM4(ctx);
	struct waffle_rec_hit *rec;
	struct child *child;

	barrier_var(size); /* checked next to its use, for the verifier of 6.1 */
	if (size > CHILD_FRAME_BYTES) {
		slot_lose(buffer, standing->innermost, 1);
		return false;
	}
	child = child_add(buffer, standing);
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

/* The begin of a span that was held and did not pass: a child of an outer one. */
static __always_inline bool child_add_held(struct buffer *buffer, const struct standing *standing,
					   const struct waffle_held *held)
{
	__u64 size = held->frame_bytes;
	struct waffle_rec_hit *rec;
	struct child *child;

	barrier_var(size); /* checked next to its use, for the verifier of 6.1 */
	if (size > CHILD_FRAME_BYTES) {
		slot_lose(buffer, standing->innermost, 1);
		return false;
	}
	child = child_add(buffer, standing);
	rec = (struct waffle_rec_hit *)child->record;
	if (bpf_probe_read_kernel(rec + 1, size, held + 1))
		size = 0;
	rec->rec.ts = held->ts;
	rec->rec.tid = held->tid;
	rec->rec.kind = WAFFLE_REC_HIT;
	rec->rec.cpu = held->cpu;
	rec->tgid = held->tgid;
	rec->site = held->site;
	rec->frame_bytes = size;
	rec->reserved = 0;
	child->bytes = sizeof(*rec) + size;
	child->begins = 1;
	return true;
}

/* The end of a span whose begin waits at `position`. */
static __always_inline void child_add_end(struct pt_regs *ctx, struct buffer *buffer,
					  const struct standing *standing, struct task_struct *task,
					  __u64 ts, __u32 position)
{
	struct child *child = child_add(buffer, standing);
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
