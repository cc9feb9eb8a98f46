/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Pairs: calls that end at another probe, on any thread of the process. */
#ifndef WAFFLE_CALL_PAIR_H
#define WAFFLE_CALL_PAIR_H

#include "call_frame.h"

extern const volatile bool call_filtered;

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

/* Those of them that a filter decides about when they end: all that was known at the begin. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct pair_key);
	__type(value, struct waffle_call_slot);
} call_pairs_held SEC(".maps");

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
	if (!begins && !level)
		bpf_map_delete_elem(&call_pairs, key);
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

/*
 * A pair begins, whether it is recorded or not: its thread is in it from now on, and one with the
 * same key is over. False: there is no room for it, which is counted.
 */
static __always_inline bool pair_begin(struct fetches *walk, struct waffle_call_slot *slot)
{
	struct pair_key key;

	if (!pair_key_get(walk, &key, true)) {
		loss_count(1);
		return false;
	}
	slot->key = key.value;
	if (call_filtered) {
		bpf_map_delete_elem(&call_pairs, &key);
		bpf_map_delete_elem(&call_pairs_held, &key);
	}
	return true;
}

/* Remembers a pair that has begun; all of it if its end is to be decided about. */
static __always_inline void pair_keep(const struct waffle_recipe *recipe, __u32 tgid,
				      struct waffle_call_slot *slot)
{
	struct pair pair = {.id = slot->id, .ts = slot->held.ts, .site = slot->recipe};
	struct pair_key key = {.value = slot->key, .tgid = tgid, .pair = recipe->pair};
	bool held = call_filtered && slot->state == WAFFLE_OPEN_HELD;

	if (held && bpf_map_update_elem(&call_pairs_held, &key, slot, BPF_ANY))
		loss_count(1);
	else if (bpf_map_update_elem(&call_pairs, &key, &pair, BPF_ANY))
		loss_count(1);
}

#endif
