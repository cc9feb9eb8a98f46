// SPDX-License-Identifier: Apache-2.0
#include "analyze/stragglers.h"

#include <stdlib.h>
#include <string.h>

#include "util/keymap.h"
#include "util/memory.h"
#include "util/strtab.h"

/* State while the tables are built. */
struct counting {
	struct stragglers *made;
	const struct model *model;
	struct map several;     /* pids that have several ranks, → 1 */
	struct map rank_of;     /* pid, or thread + 1 << 32 | pid, → index in ranks */
	struct strtab *names;   /* of groups */
	struct keymap group_of; /* {communicator, name} → index in groups */
	struct keymap blame_of; /* {group, rank} → index in blames */
	VEC(uint64_t) blames;   /* how long ranks of the group waited for that rank */
};

/* What is known of one collective. */
struct split {
	uint32_t group;
	uint32_t shortest; /* index of the shortest call */
	uint32_t last;     /* of the call that others waited for; MODEL_NONE: none waited */
	uint64_t made_wait_ns, longest_ns;
	uint64_t shortest_ns, total_ns, transfer_ns;
	bool known; /* the ends of all calls are */
	bool sure;  /* no other call can have come last */
};

/* ---- ranks ---- */

/* Finds the processes that call one collective several times. */
static void find_several(struct counting *counting)
{
	const struct model_comm *comm = counting->made->comm;
	struct map seen = {0}; /* pid → the last collective */

	for (size_t i = 0; i < model_collective_count(comm); i++) {
		const struct model_collective *collective = model_collective_at(comm, i);

		for (uint32_t k = 0; k < collective->count; k++) {
			uint32_t pid = collective->calls[k].pid;

			if (map_get(&seen, pid) == i)
				map_put(&counting->several, pid, 1);
			map_put(&seen, pid, (uint32_t)i);
		}
	}
	map_free(&seen);
}

/* Index of the rank of a call. */
static uint32_t rank_of(struct counting *counting, const struct model_collective *collective,
			const struct model_rank_call *call)
{
	bool several = map_get(&counting->several, call->pid) != MAP_NONE;
	uint64_t key = several ? (uint64_t)(call->thread + 1) << 32 | call->pid : call->pid;
	uint32_t found = map_get(&counting->rank_of, key);
	struct straggler_rank *rank;

	if (found == MAP_NONE) {
		const struct model_process *process =
			model_process_of(counting->model, call->thread);
		struct straggler_rank add = {.thread = call->thread, .rank = MODEL_NONE};

		/* The rank in the job is better known than those in communicators. */
		if (process && process->rank != MODEL_NONE && !several) {
			add.rank = process->rank;
			add.places = UINT32_MAX;
		}
		found = (uint32_t)counting->made->ranks.len;
		vec_add(&counting->made->ranks, add);
		map_put(&counting->rank_of, key, found);
	}
	rank = &counting->made->ranks.data[found];
	if (call->rank != MODEL_NONE && collective->nranks > rank->places) {
		rank->rank = call->rank;
		rank->places = collective->nranks;
	}
	return found;
}

/* ---- one collective ---- */

static uint64_t after(uint64_t ts, uint64_t since)
{
	return ts > since ? ts - since : 0;
}

static uint32_t root_call(const struct model_collective *collective)
{
	for (uint32_t i = 0; i < collective->count; i++)
		if (collective->calls[i].rank == collective->root)
			return i;
	return MODEL_NONE;
}

/* Whether a call is the receiving end of a message. The send is the first of two. */
static bool receives(const struct model_collective *collective, uint32_t index)
{
	return collective->count == 2 && index == 1;
}

/* Whether all calls of a collective have no elements, so that nobody waits. */
static bool is_empty(const struct model_collective *collective)
{
	bool message = collective->mpi && collective->flow == FLOW_PAIR;

	return collective->data == MODEL_DATA_NONE && collective->flow != FLOW_NONE && !message;
}

/* The call whose data this call needs and that arrived last; the call itself: it needs none.
 * *latest is 0 for the first call of a collective, and the calls must come in order. */
static uint32_t needed(const struct model_collective *collective, uint32_t index, uint32_t root,
		       uint32_t *latest)
{
	if (is_empty(collective))
		return index;
	switch (collective->flow) {
	case FLOW_NONE:
	case FLOW_ALL:
		return collective->last;
	case FLOW_FROM_ROOT:
		return root != MODEL_NONE ? root : index;
	case FLOW_TO_ROOT:
		return index == root ? collective->last : index;
	case FLOW_PREFIX:
		if (collective->calls[index].arrival_ts >= collective->calls[*latest].arrival_ts)
			*latest = index;
		return *latest;
	case FLOW_PAIR:
		return receives(collective, index) ? 0 : index;
	default:
		return collective->synchronizes ? collective->last : index;
	}
}

/* How long a call waited for another one. */
static uint64_t waited(const struct model_rank_call *call, const struct model_rank_call *other)
{
	uint64_t until = other->arrival_ts;

	/* It did not wait longer than it took. */
	if (call->end_ts < until)
		until = call->end_ts;
	return after(until, call->arrival_ts);
}

/* Whether no other rank can have come last, with the errors of their clocks and the ranks that are
 * not traced. */
static bool is_sure(const struct counting *counting, const struct model_collective *collective)
{
	const struct model_rank_call *call = &collective->calls[collective->last];

	if (collective->alignment != COLLECTIVE_BY_CREATION || !collective->comparable)
		return false;
	/* All wait for the root of a broadcast only. Else a rank that is not traced may have come
	 * later than those that are. */
	if (collective->flow != FLOW_FROM_ROOT && collective->count < collective->nranks)
		return false;
	for (uint32_t i = 0; i < collective->count; i++)
		if (i != collective->last &&
		    !model_order_known(counting->model, collective->calls[i].thread,
				       collective->calls[i].arrival_ts, call->thread,
				       call->arrival_ts))
			return false;
	return true;
}

/* Sets the durations, if the ends of all calls are known. */
static void durations_add(const struct model_collective *collective, struct split *split)
{
	uint64_t least = UINT64_MAX, total = 0;

	for (uint32_t i = 0; i < collective->count; i++) {
		const struct model_rank_call *call = &collective->calls[i];
		uint64_t ns = after(call->end_ts, call->arrival_ts);

		if (call->end_ts == UINT64_MAX)
			return;
		total += ns;
		if (ns >= least)
			continue;
		least = ns;
		split->shortest = i;
	}
	split->known = true;
	split->total_ns = total;
	split->shortest_ns = least;
	split->transfer_ns = least * collective->count;
}

/* Another rank waited ns for a rank. */
static void blame_add(struct counting *counting, const struct split *split, uint32_t rank,
		      uint64_t ns)
{
	uint64_t key[2] = {split->group, rank};
	uint32_t found;

	counting->made->ranks.data[rank].made_wait_ns += ns;
	if (!split->sure)
		counting->made->ranks.data[rank].unsure_ns += ns;
	found = keymap_get(&counting->blame_of, key, sizeof(key));
	if (found == MAP_NONE) {
		found = (uint32_t)counting->blames.len;
		vec_add(&counting->blames, 0);
		keymap_put(&counting->blame_of, key, sizeof(key), found);
	}
	counting->blames.data[found] += ns;
}

/* The call that a call waited for, and how long; the call itself: it waited for none. */
static uint32_t cause_of(const struct model_collective *collective, uint32_t index, uint32_t root,
			 const struct split *split, uint32_t *latest, uint64_t *ns)
{
	const struct model_rank_call *call = &collective->calls[index];
	uint32_t cause = index;

	*ns = 0;
	if (collective->comparable) {
		cause = needed(collective, index, root, latest);
		*ns = waited(call, &collective->calls[cause]);
	} else if (collective->synchronizes && split->known) {
		cause = split->shortest;
		*ns = after(call->end_ts, call->arrival_ts) - split->shortest_ns;
	}
	return *ns ? cause : index;
}

/* Adds the waits of all calls. */
static void waits_add(struct counting *counting, const struct model_collective *collective,
		      struct split *split)
{
	uint32_t root = root_call(collective), latest = 0;

	for (uint32_t i = 0; i < collective->count; i++) {
		uint32_t rank = rank_of(counting, collective, &collective->calls[i]), other;
		uint32_t cause;
		uint64_t ns;

		counting->made->ranks.data[rank].calls++;
		cause = cause_of(collective, i, root, split, &latest, &ns);
		other = rank_of(counting, collective, &collective->calls[cause]);
		if (other == rank)
			continue;
		counting->made->ranks.data[rank].waited_ns += ns;
		split->made_wait_ns += ns;
		split->last = cause;
		split->longest_ns = ns > split->longest_ns ? ns : split->longest_ns;
		blame_add(counting, split, other, ns);
	}
	if (split->known && !collective->synchronizes)
		split->transfer_ns = after(split->total_ns, split->made_wait_ns);
}

/* Notes who came last. */
static void last_add(struct counting *counting, size_t index,
		     const struct model_collective *collective, const struct split *split)
{
	const struct model_rank_call *call = &collective->calls[split->last];
	uint32_t number = rank_of(counting, collective, call);
	struct straggler_rank *rank = &counting->made->ranks.data[number];

	rank->last++;
	vec_add(&counting->made->waits, (struct straggler_wait){.collective = (uint32_t)index,
								.rank = number,
								.ts = call->arrival_ts,
								.made_wait_ns = split->made_wait_ns,
								.longest_ns = split->longest_ns,
								.transfer_ns = split->shortest_ns,
								.sure = split->sure});
}

/* Index of the group of a collective. */
static uint32_t group_of(struct counting *counting, const struct model_collective *collective)
{
	const char *name = model_site(counting->model, collective->site)->name;
	uint32_t text = strtab_put(counting->names, name, strlen(name));
	uint64_t key[2] = {collective->comm, text};
	struct straggler_group group = {.name = name,
					.comm = collective->comm,
					.mpi = collective->mpi,
					.worst = MODEL_NONE};
	uint32_t found;

	found = keymap_get(&counting->group_of, key, sizeof(key));
	if (found != MAP_NONE)
		return found;
	found = (uint32_t)counting->made->groups.len;
	vec_add(&counting->made->groups, group);
	keymap_put(&counting->group_of, key, sizeof(key), found);
	return found;
}

static void group_count(struct straggler_group *group, const struct model_collective *collective,
			const struct split *split)
{
	group->count++;
	if (collective->nranks > group->nranks)
		group->nranks = collective->nranks;
	if (collective->count > group->traced)
		group->traced = collective->count;
	if (!split->known)
		return;
	group->known++;
	group->total_ns += split->total_ns;
	group->transfer_ns += split->transfer_ns;
	group->waiting_ns += split->total_ns - split->transfer_ns;
}

static void collective_count(struct counting *counting, size_t index)
{
	const struct model_collective *collective =
		model_collective_at(counting->made->comm, index);
	struct split split = {.last = MODEL_NONE};

	if (collective->count < 2)
		return;
	split.group = group_of(counting, collective);
	split.sure = is_sure(counting, collective);
	durations_add(collective, &split);
	waits_add(counting, collective, &split);
	group_count(&counting->made->groups.data[split.group], collective, &split);
	if (split.last != MODEL_NONE)
		last_add(counting, index, collective, &split);
}

/* ---- tables ---- */

static int rank_compare(const void *left, const void *right)
{
	const struct straggler_rank *a = left, *b = right;

	if (a->made_wait_ns != b->made_wait_ns)
		return a->made_wait_ns > b->made_wait_ns ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return a->thread < b->thread ? -1 : a->thread > b->thread;
}

static int group_compare(const void *left, const void *right)
{
	const struct straggler_group *a = left, *b = right;

	if (a->waiting_ns != b->waiting_ns)
		return a->waiting_ns > b->waiting_ns ? -1 : 1;
	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	return strcmp(a->name, b->name);
}

static int wait_compare(const void *left, const void *right)
{
	const struct straggler_wait *a = left, *b = right;

	if (a->made_wait_ns != b->made_wait_ns)
		return a->made_wait_ns > b->made_wait_ns ? -1 : 1;
	return a->collective < b->collective ? -1 : a->collective > b->collective;
}

/* Finds the worst rank of each group. */
static void find_worst(struct counting *counting)
{
	for (size_t i = 0; i < counting->blame_of.entries.len; i++) {
		const struct keymap_entry *entry = &counting->blame_of.entries.data[i];
		uint64_t key[2], ns = counting->blames.data[entry->value];
		struct straggler_group *group;

		memcpy(key, entry->key, sizeof(key));
		group = &counting->made->groups.data[key[0]];
		if (ns <= group->worst_ns)
			continue;
		group->worst_ns = ns;
		group->worst = (uint32_t)key[1];
	}
}

/* Sorts the ranks, to which groups and waits refer. */
static void sort_ranks(struct stragglers *made)
{
	size_t count = made->ranks.len;
	uint32_t *place = memory_zeroed(count, sizeof(*place));

	for (uint32_t i = 0; i < count; i++)
		made->ranks.data[i].number = i;
	if (count)
		qsort(made->ranks.data, count, sizeof(*made->ranks.data), rank_compare);
	for (uint32_t i = 0; i < count; i++)
		place[made->ranks.data[i].number] = i;
	for (size_t i = 0; i < made->groups.len; i++)
		if (made->groups.data[i].worst != MODEL_NONE)
			made->groups.data[i].worst = place[made->groups.data[i].worst];
	for (size_t i = 0; i < made->waits.len; i++)
		made->waits.data[i].rank = place[made->waits.data[i].rank];
	free(place);
}

static void make(struct counting *counting, uint32_t waits)
{
	struct stragglers *made = counting->made;

	find_several(counting);
	for (size_t i = 0; i < model_collective_count(made->comm); i++)
		collective_count(counting, i);
	find_worst(counting);
	if (made->waits.len)
		qsort(made->waits.data, made->waits.len, sizeof(*made->waits.data), wait_compare);
	if (made->waits.len > waits)
		made->waits.len = waits;
	sort_ranks(made);
	if (made->groups.len)
		qsort(made->groups.data, made->groups.len, sizeof(*made->groups.data),
		      group_compare);
}

struct stragglers *stragglers_new(const struct model *model, uint32_t waits)
{
	struct counting counting = {.made = memory_zeroed(1, sizeof(struct stragglers)),
				    .model = model,
				    .names = strtab_make()};

	counting.made->model = model;
	counting.made->gpu = model_gpu_new(model);
	counting.made->comm = model_comm_new(model, counting.made->gpu);
	make(&counting, waits);
	map_free(&counting.several);
	map_free(&counting.rank_of);
	strtab_free(counting.names);
	keymap_free(&counting.group_of);
	keymap_free(&counting.blame_of);
	vec_free(&counting.blames);
	return counting.made;
}

void stragglers_free(struct stragglers *stragglers)
{
	if (!stragglers)
		return;
	model_comm_free(stragglers->comm);
	model_gpu_free(stragglers->gpu);
	vec_free(&stragglers->ranks);
	vec_free(&stragglers->groups);
	vec_free(&stragglers->waits);
	free(stragglers);
}
