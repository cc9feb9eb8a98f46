// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Calls of watched functions of Python (python.h). The program runs when a thread has accessed one
 * of the watched addresses, and records what the thread's stack of Python frames says then.
 * capture/python_calls.c tells calls from other accesses.
 */
#include "vmlinux.h"
#include "python.h"
#include "emit.bpf.h"
#include "python_thread.bpf.h"

/* By address. The size is set before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, struct waffle_watch);
} python_watches SEC(".maps");

/* struct bpf_perf_event_data, whose registers userspace has as bpf_user_pt_regs_t. */
struct watch_context {
#if defined(__TARGET_ARCH_x86)
	__u64 registers[21];
#elif defined(__TARGET_ARCH_arm64)
	__u64 registers[34];
#endif
	__u64 period;
	__u64 address;
};

/* The context of bpf_loop() must be on the stack. */
struct frame_search {
	const struct waffle_watch *watch;
	__u64 at; /* the next frame to look at */
	__u64 frame, caller, outer;
};

static long frame_step(__u32 index, void *context)
{
	struct frame_search *search = context;
	const struct waffle_watch *watch = search->watch;
	const struct waffle_python *python = &watch->python;
	__u64 frame = search->at;

	if (!frame)
		return 1;
	search->at = word_at(frame + python->frame_previous);
	if ((word_at(frame + python->frame_code) & ~WAFFLE_PYTHON_MARKS) != watch->code)
		return 0;
	if (search->frame) {
		search->outer = frame;
		return 1;
	}
	search->frame = frame;
	search->caller = search->at;
	return 0;
}

/* The instruction of a frame: an address or an index, which is only compared. */
static __always_inline __u64 instruction_word(const struct waffle_python *python, __u64 frame)
{
	__u32 last = 0;

	if (!frame)
		return 0;
	if (!python->index_bytes)
		return word_at(frame + python->frame_instr);
	bpf_probe_read_user(&last, sizeof(last), (void *)(frame + python->frame_instr));
	return last;
}

static __always_inline bool is_same_code(const struct waffle_watch *watch)
{
	__u32 line = 0;

	bpf_probe_read_user(&line, sizeof(line),
			    (void *)(watch->code + watch->python.code_first_line));
	return line == watch->first_line &&
	       word_at(watch->code + watch->python.code_name) == watch->name;
}

static __always_inline bool returns(const struct waffle_watch *watch, __u64 instruction)
{
	__u8 opcode = 0;

	if (!watch->return_opcode)
		return false;
	bpf_probe_read_user(&opcode, sizeof(opcode), (void *)instruction);
	return opcode == watch->return_opcode;
}

static __always_inline void watched_fill(struct waffle_rec_watched *rec,
					 const struct frame_search *search, __u64 current)
{
	const struct waffle_watch *watch = search->watch;
	const struct waffle_python *python = &watch->python;

	rec->function = watch->function;
	rec->frame = search->frame;
	rec->outer = search->outer;
	rec->caller = search->caller;
	rec->caller_at = instruction_word(python, search->caller);
	rec->current = current;
	rec->current_at = instruction_word(python, current);
	rec->flags = search->at && !search->outer ? WAFFLE_WATCHED_DEEP : 0;
	rec->reserved = 0;
	if (current && current == search->frame && returns(watch, rec->current_at))
		rec->flags |= WAFFLE_WATCHED_RETURN;
}

SEC("perf_event")
int on_watched(struct watch_context *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 cpu = bpf_get_smp_processor_id();
	struct frame_search search = {};
	struct waffle_rec_watched *rec;
	__u64 address = ctx->address, current;
	bool begins, by_address;

	if (finished || !target_has(task->tgid))
		return 0;
	if (privileged_seen && program_is_privileged(task->tgid))
		return 0;
	search.watch = bpf_map_lookup_elem(&python_watches, &address);
	if (!search.watch || !is_same_code(search.watch))
		return 0;
	begins = address == search.watch->first;
	by_address = !search.watch->python.index_bytes;
	current = search.at = python_innermost(&search.watch->python, task);
	bpf_loop(WAFFLE_WATCH_FRAMES_MAX, frame_step, &search, 0);
	rec = record_reserve(cpu, sizeof(*rec));
	if (!rec)
		return 0;
	record_begin(&rec->rec, WAFFLE_REC_WATCHED, task->pid, cpu);
	rec->tgid = task->tgid;
	watched_fill(rec, &search, current);
	if (begins)
		rec->flags |= WAFFLE_WATCHED_BEGIN;
	if (begins && (!current || search.frame != current ||
		       (by_address && rec->current_at > address))) /* it calls itself */
		rec->flags |= WAFFLE_WATCHED_EARLY;
	else if (begins && by_address && rec->current_at < address)
		rec->flags |= WAFFLE_WATCHED_FRESH;
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
	return 0;
}
