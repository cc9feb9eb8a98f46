/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Storage for the begins of deferred spans, which are decided at their end. */
#ifndef WAFFLE_DEFERRED_BPF_H
#define WAFFLE_DEFERRED_BPF_H

#include "children.bpf.h"
#include "emit.bpf.h"
#include "filter.h"

/* The sizes are set before loading. */
#define DEFERRED_MAP(name, room)                                                                   \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_HASH);                                                   \
		__uint(max_entries, 1);                                                            \
		__uint(key_size, sizeof(__u64));                                                   \
		__uint(value_size, sizeof(struct waffle_deferred) + (room));                       \
	} name SEC(".maps")

DEFERRED_MAP(filter_deferred_small, WAFFLE_DEFERRED_SMALL_BYTES);
DEFERRED_MAP(filter_deferred_medium, WAFFLE_DEFERRED_MEDIUM_BYTES);
DEFERRED_MAP(filter_deferred_large, WAFFLE_FRAME_MAX);

/* The parent of a hit. */
struct family {
	struct waffle_open *parent; /* NULL: none, or unknown */
	__u64 parent_id, parent_bits;
	__u32 depth; /* of the hit */
};

/* Stores the begin of a deferred span. */
static __always_inline bool deferred_add(void *map, __u32 room, struct pt_regs *ctx,
					 const struct family *family, __u64 now)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 id = PT_REGS_PARM1(ctx), size = PT_REGS_PARM4(ctx);
	struct waffle_deferred *deferred;
	__u32 zero = 0;
	void *empty = bpf_map_lookup_elem(&filter_zero, &zero);

	if (!empty || bpf_map_update_elem(map, &id, empty, BPF_NOEXIST)) {
		sweep_wanted = true;
		return false;
	}
	deferred = bpf_map_lookup_elem(map, &id);
	if (!deferred)
		return false;
	deferred->ts = now;
	deferred->parent_bits = family->parent_bits;
	deferred->tid = task->pid;
	deferred->tgid = task->tgid;
	deferred->cpu = bpf_get_smp_processor_id();
	deferred->site = bpf_get_attach_cookie(ctx);
	deferred->depth = family->depth;
	deferred->has_parent = family->parent != NULL;
	bpf_get_current_comm(deferred->comm, sizeof(deferred->comm));
	/* If the values cannot be read, the record has none, as in hit_copy(). */
	barrier_var(size); /* checked next to its use, for the verifier of 6.1 */
	if (size > room || bpf_probe_read_user(deferred + 1, size, (void *)PT_REGS_PARM3(ctx)))
		size = 0;
	deferred->frame_bytes = size;
	return true;
}

static __always_inline bool deferred_add_sized(__u32 deferred, struct pt_regs *ctx,
					       const struct family *family, __u64 now)
{
	switch (deferred) {
	case WAFFLE_DEFERRED_SMALL:
		return deferred_add(&filter_deferred_small, WAFFLE_DEFERRED_SMALL_BYTES, ctx,
				    family, now);
	case WAFFLE_DEFERRED_MEDIUM:
		return deferred_add(&filter_deferred_medium, WAFFLE_DEFERRED_MEDIUM_BYTES, ctx,
				    family, now);
	default:
		return deferred_add(&filter_deferred_large, WAFFLE_FRAME_MAX, ctx, family, now);
	}
}

static __always_inline struct waffle_deferred *deferred_get(__u32 deferred, __u64 id)
{
	switch (deferred) {
	case WAFFLE_DEFERRED_SMALL:
		return bpf_map_lookup_elem(&filter_deferred_small, &id);
	case WAFFLE_DEFERRED_MEDIUM:
		return bpf_map_lookup_elem(&filter_deferred_medium, &id);
	default:
		return bpf_map_lookup_elem(&filter_deferred_large, &id);
	}
}

static __always_inline void deferred_delete(__u32 deferred, __u64 id)
{
	switch (deferred) {
	case WAFFLE_DEFERRED_SMALL:
		bpf_map_delete_elem(&filter_deferred_small, &id);
		break;
	case WAFFLE_DEFERRED_MEDIUM:
		bpf_map_delete_elem(&filter_deferred_medium, &id);
		break;
	default:
		bpf_map_delete_elem(&filter_deferred_large, &id);
	}
}

static __always_inline bool deferred_copy(struct waffle_deferred *deferred, __u32 room, __u32 size)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct waffle_rec_hit *rec = record_reserve(cpu, sizeof(*rec) + room);

	if (!rec)
		return false;
	barrier_var(size); /* checked next to its use, for the verifier of 6.1 */
	if (size > room || bpf_probe_read_kernel(rec + 1, size, deferred + 1))
		size = 0;
	record_begin(&rec->rec, WAFFLE_REC_HIT, deferred->tid, deferred->cpu);
	rec->rec.ts = deferred->ts;
	rec->tgid = deferred->tgid;
	rec->site = deferred->site;
	rec->frame_bytes = size;
	rec->reserved = 0;
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
	return true;
}

/* Delivers the begin of a deferred span, as if it had passed at once. */
static __noinline bool deferred_emit(__u32 where, __u64 id)
{
	struct waffle_deferred *deferred;
	__u32 size;

	if (where == WAFFLE_DEFERRED_SMALL) {
		deferred = bpf_map_lookup_elem(&filter_deferred_small, &id);
		if (!deferred)
			return false;
		size = deferred->frame_bytes;
		return size <= 64 ? deferred_copy(deferred, 64, size)
				  : deferred_copy(deferred, WAFFLE_DEFERRED_SMALL_BYTES, size);
	}
	if (where == WAFFLE_DEFERRED_MEDIUM) {
		deferred = bpf_map_lookup_elem(&filter_deferred_medium, &id);
		if (!deferred)
			return false;
		size = deferred->frame_bytes;
		return size <= 256 ? deferred_copy(deferred, 256, size)
				   : deferred_copy(deferred, WAFFLE_DEFERRED_MEDIUM_BYTES, size);
	}
	deferred = bpf_map_lookup_elem(&filter_deferred_large, &id);
	if (!deferred)
		return false;
	size = deferred->frame_bytes;
	if (size <= 256)
		return deferred_copy(deferred, 256, size);
	return size <= 1536 ? deferred_copy(deferred, 1536, size)
			    : deferred_copy(deferred, WAFFLE_FRAME_MAX, size);
}

#endif
