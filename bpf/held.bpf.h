/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Storage for the begins of held spans, which are decided at their end. */
#ifndef WAFFLE_HELD_BPF_H
#define WAFFLE_HELD_BPF_H

#include "children.bpf.h"
#include "emit.bpf.h"
#include "filter.h"

/* The sizes are set before loading. */
#define HELD_MAP(name, room)                                                                       \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_HASH);                                                   \
		__uint(max_entries, 1);                                                            \
		__uint(key_size, sizeof(__u64));                                                   \
		__uint(value_size, sizeof(struct waffle_held) + (room));                           \
	} name SEC(".maps")

HELD_MAP(filter_held_small, WAFFLE_HELD_SMALL_BYTES);
HELD_MAP(filter_held_medium, WAFFLE_HELD_MEDIUM_BYTES);
HELD_MAP(filter_held_large, WAFFLE_FRAME_MAX);

/* The parent of a hit. */
struct family {
	struct waffle_open *parent; /* NULL: none, or unknown */
	__u64 parent_id, parent_bits;
	__u32 depth; /* of the hit */
};

/* Stores the begin of a held span. */
static __always_inline bool held_add(void *map, __u32 room, struct pt_regs *ctx,
				     const struct family *family, __u64 now)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 id = PT_REGS_PARM1(ctx), size = PT_REGS_PARM4(ctx);
	struct waffle_held *held;
	__u32 zero = 0;
	void *empty = bpf_map_lookup_elem(&filter_zero, &zero);

	if (!empty || bpf_map_update_elem(map, &id, empty, BPF_NOEXIST)) {
		sweep_wanted = true;
		return false;
	}
	held = bpf_map_lookup_elem(map, &id);
	if (!held)
		return false;
	held->ts = now;
	held->parent_bits = family->parent_bits;
	held->tid = task->pid;
	held->tgid = task->tgid;
	held->cpu = bpf_get_smp_processor_id();
	held->site = bpf_get_attach_cookie(ctx);
	held->depth = family->depth;
	held->has_parent = family->parent != NULL;
	bpf_get_current_comm(held->comm, sizeof(held->comm));
	/* If the values cannot be read, the record has none, as in hit_copy(). */
	barrier_var(size); /* checked next to its use, for the verifier of 6.1 */
	if (size > room || bpf_probe_read_user(held + 1, size, (void *)PT_REGS_PARM3(ctx)))
		size = 0;
	held->frame_bytes = size;
	return true;
}

static __always_inline bool held_add_sized(__u32 held, struct pt_regs *ctx,
					   const struct family *family, __u64 now)
{
	switch (held) {
	case WAFFLE_HELD_SMALL:
		return held_add(&filter_held_small, WAFFLE_HELD_SMALL_BYTES, ctx, family, now);
	case WAFFLE_HELD_MEDIUM:
		return held_add(&filter_held_medium, WAFFLE_HELD_MEDIUM_BYTES, ctx, family, now);
	default:
		return held_add(&filter_held_large, WAFFLE_FRAME_MAX, ctx, family, now);
	}
}

static __always_inline struct waffle_held *held_get(__u32 held, __u64 id)
{
	switch (held) {
	case WAFFLE_HELD_SMALL:
		return bpf_map_lookup_elem(&filter_held_small, &id);
	case WAFFLE_HELD_MEDIUM:
		return bpf_map_lookup_elem(&filter_held_medium, &id);
	default:
		return bpf_map_lookup_elem(&filter_held_large, &id);
	}
}

static __always_inline void held_delete(__u32 held, __u64 id)
{
	switch (held) {
	case WAFFLE_HELD_SMALL:
		bpf_map_delete_elem(&filter_held_small, &id);
		break;
	case WAFFLE_HELD_MEDIUM:
		bpf_map_delete_elem(&filter_held_medium, &id);
		break;
	default:
		bpf_map_delete_elem(&filter_held_large, &id);
	}
}

static __always_inline bool held_copy(struct waffle_held *held, __u32 room, __u32 size)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct waffle_rec_hit *rec = record_reserve(cpu, sizeof(*rec) + room);

	if (!rec)
		return false;
	barrier_var(size); /* checked next to its use, for the verifier of 6.1 */
	if (size > room || bpf_probe_read_kernel(rec + 1, size, held + 1))
		size = 0;
	record_begin(&rec->rec, WAFFLE_REC_HIT, held->tid, held->cpu);
	rec->rec.ts = held->ts;
	rec->tgid = held->tgid;
	rec->site = held->site;
	rec->frame_bytes = size;
	rec->reserved = 0;
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
	return true;
}

/* Delivers the begin of a held span, as if it had passed at once. */
static __noinline bool held_emit(__u32 where, __u64 id)
{
	struct waffle_held *held;
	__u32 size;

	if (where == WAFFLE_HELD_SMALL) {
		held = bpf_map_lookup_elem(&filter_held_small, &id);
		if (!held)
			return false;
		size = held->frame_bytes;
		return size <= 64 ? held_copy(held, 64, size)
				  : held_copy(held, WAFFLE_HELD_SMALL_BYTES, size);
	}
	if (where == WAFFLE_HELD_MEDIUM) {
		held = bpf_map_lookup_elem(&filter_held_medium, &id);
		if (!held)
			return false;
		size = held->frame_bytes;
		return size <= 256 ? held_copy(held, 256, size)
				   : held_copy(held, WAFFLE_HELD_MEDIUM_BYTES, size);
	}
	held = bpf_map_lookup_elem(&filter_held_large, &id);
	if (!held)
		return false;
	size = held->frame_bytes;
	if (size <= 256)
		return held_copy(held, 256, size);
	return size <= 1536 ? held_copy(held, 1536, size) : held_copy(held, WAFFLE_FRAME_MAX, size);
}

#endif
