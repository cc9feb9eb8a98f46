/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Pairs: calls that end at another probe, on any thread of the process. */
#ifndef WAFFLE_CALL_PAIR_BPF_H
#define WAFFLE_CALL_PAIR_BPF_H

#include "call_frame.bpf.h"
#include "call_nest.bpf.h"

/* The levels of nested pairs without a key. A deeper pair replaces the outermost one. */
#define PAIR_LEVELS 256
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct waffle_pair_key);
	__type(value, struct waffle_pair);
} call_pairs SEC(".maps");

/* Pairs whose filter decides at their end, with all values of the begin. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct waffle_pair_key);
	__type(value, struct waffle_call_slot);
} call_pairs_deferred SEC(".maps");

static __always_inline void pair_forget(const struct waffle_pair_key *key)
{
	bpf_map_delete_elem(&call_pairs, key);
	bpf_map_delete_elem(&call_pairs_deferred, key);
}

/* Sets the key of the pair that begins or ends on a thread, by its level. False: none is open. */
static __always_inline bool pair_level(struct waffle_pair_key *key, __u32 tid, bool begins)
{
	struct waffle_pair none = {}, *own;
	__u32 level;

	key->value = (__u64)tid << 32 | WAFFLE_PAIR_THREAD;
	own = bpf_map_lookup_elem(&call_pairs, key);
	if (!own && begins) {
		if (bpf_map_update_elem(&call_pairs, key, &none, BPF_NOEXIST))
			sweep_wanted = true;
		own = bpf_map_lookup_elem(&call_pairs, key);
	}
	if (!own || (!begins && !own->level))
		return false;
	level = begins ? own->level++ : --own->level;
	if (!begins && !level)
		bpf_map_delete_elem(&call_pairs, key);
	key->value = (__u64)tid << 32 | level % PAIR_LEVELS;
	return true;
}

/* Deletes a pair that was left. If its begin was delivered, records its end. */
__noinline int frame_drop(struct waffle_call_thread *thread, __u64 at)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct waffle_pair_key key = {.tgid = task->tgid};
	const struct waffle_pair *pair;

	barrier_var(at);
	if (!thread || at >= WAFFLE_CALL_FRAMES_MAX)
		return 0;
	key.pair = thread->frames[at].pair;
	key.value = (__u64)task->pid << 32 | at;
	pair = bpf_map_lookup_elem(&call_pairs, &key);
	if (pair && (!config.call_filtered || !bpf_map_lookup_elem(&call_pairs_deferred, &key)))
		left_emit(pair->id, pair->site, thread->now);
	pair_forget(&key);
	return 0;
}

static __always_inline void frames_drop(struct waffle_call_thread *thread, __u64 keep)
{
	for (int i = 0; i < WAFFLE_CALL_FRAMES_MAX && thread->frame_count > keep; i++)
		frame_drop(thread, --thread->frame_count);
}

/* The number of open pairs that a new pair leaves open: those that began higher on the stack,
 * and others of the same function. */
__noinline int frames_kept(struct waffle_call_thread *thread, __u64 sp, __u32 pair)
{
	__u64 keep, at;

	if (!thread)
		return 0;
	keep = thread->frame_count;
	for (int i = 0; i < WAFFLE_CALL_FRAMES_MAX; i++) {
		at = thread->frame_count - 1 - i;
		barrier_var(at);
		if (at >= WAFFLE_CALL_FRAMES_MAX || thread->frames[at].sp > sp)
			break;
		if (thread->frames[at].sp < sp || thread->frames[at].pair == pair)
			keep = at;
	}
	return keep;
}

/*
 * The index of the frame that ends: the highest one of its pair up to this stack pointer, since
 * those below it were left. If there is none, the last one, as the compiler may move the stack
 * pointer in between. -1: no frame ends.
 */
__noinline int frame_ending(struct waffle_call_thread *thread, __u64 sp, __u32 pair)
{
	int found = -1;
	__u64 at;

	if (!thread)
		return -1;
	for (int i = 0; i < WAFFLE_CALL_FRAMES_MAX; i++) {
		at = thread->frame_count - 1 - i;
		barrier_var(at);
		if (at >= WAFFLE_CALL_FRAMES_MAX)
			break;
		if (thread->frames[at].pair == pair && (found < 0 || thread->frames[at].sp <= sp))
			found = at;
	}
	return found;
}

/* Does what pair_level() does, for pairs that begin and end in one function. */
__noinline int frame_level(struct waffle_call_thread *thread, __u32 pair, bool begins)
{
	__u64 sp, at;
	int found;

	if (!thread)
		return -1;
	sp = thread->words[REGS_SP];
	found = begins ? frames_kept(thread, sp, pair) : frame_ending(thread, sp, pair);
	if (found < 0)
		return -1;
	at = found;
	frames_drop(thread, begins ? at : at + 1);
	thread->frame_count = begins ? at + 1 : at;
	barrier_var(at);
	if (at >= WAFFLE_CALL_FRAMES_MAX) {
		thread->frame_count = WAFFLE_CALL_FRAMES_MAX;
		return -1;
	}
	if (begins)
		thread->frames[at] = (struct waffle_call_frame){.sp = sp, .pair = pair};
	return at;
}

static __always_inline bool pair_key_get(struct fetches *walk, struct waffle_pair_key *key,
					 bool begins)
{
	const struct waffle_fetch_program *fetch_program = walk->fetch_program;
	__u32 index = fetch_program->begins + fetch_program->saves + fetch_program->returns;
	__u32 tid = bpf_get_current_task_btf()->pid;
	int level;

	key->tgid = walk->tgid;
	key->pair = fetch_program->pair;
	if (fetch_program->flags & WAFFLE_CALL_FRAME) {
		walk->thread->now = walk->now;
		level = frame_level(walk->thread, fetch_program->pair, begins);
		key->value = (__u64)tid << 32 | (__u32)level;
		return level >= 0;
	}
	if (!fetch_program->keys)
		return pair_level(key, tid, begins);
	barrier_var(index);
	if (index >= WAFFLE_FETCHES_MAX)
		return false;
	key->value = fetch_extend(fetch_value(walk, &fetch_program->fetches[index]),
				  &fetch_program->fetches[index]);
	return true;
}

/* Records the end of a delivered pair that another pair with the same key replaces. */
static __always_inline void pair_replace(const struct fetches *walk,
					 const struct waffle_pair_key *key)
{
	const struct waffle_pair *pair = bpf_map_lookup_elem(&call_pairs, key);

	if (pair && (!config.call_filtered || !bpf_map_lookup_elem(&call_pairs_deferred, key)))
		left_emit(pair->id, pair->site, walk->now);
}

/* A pair begins, whether it is recorded or not, and replaces an open one with the same key. False:
 * there is no room for it, which is counted. */
static __always_inline bool pair_begin(struct fetches *walk, struct waffle_call_slot *slot)
{
	struct waffle_pair_key key;

	if (!pair_key_get(walk, &key, true)) {
		loss_count(1);
		return false;
	}
	slot->key = key.value;
	if (walk->fetch_program->keys)
		pair_replace(walk, &key);
	if (config.call_filtered)
		pair_forget(&key);
	return true;
}

/* Stores a pair that has begun, with all its values if its end decides. */
static __always_inline void pair_keep(const struct waffle_fetch_program *fetch_program, __u32 tgid,
				      struct waffle_call_slot *slot)
{
	struct waffle_pair pair = {
		.id = slot->id, .ts = slot->deferred.ts, .site = slot->fetch_program};
	struct waffle_pair_key key = {
		.value = slot->key, .tgid = tgid, .pair = fetch_program->pair};
	bool deferred = config.call_filtered && slot->state == WAFFLE_OPEN_DEFERRED;

	if ((deferred && bpf_map_update_elem(&call_pairs_deferred, &key, slot, BPF_ANY)) ||
	    bpf_map_update_elem(&call_pairs, &key, &pair, BPF_ANY)) {
		loss_count(1);
		sweep_wanted = true;
	}
}

#endif
