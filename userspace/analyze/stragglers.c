// SPDX-License-Identifier: Apache-2.0
#include "analyze/stragglers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/strtab.h"

/* State while the tables are built. */
struct counting {
	struct stragglers *made;
	const struct model *model;
	uint32_t waits_max;
	struct map several;    /* pids that have several ranks, → 1 */
	struct map rank_of;    /* pid, or thread << 32 | pid, → index in ranks */
	struct map group_of;   /* number of the communicator << 32 | name → index in groups */
	struct strtab *names;  /* of the groups */
	uint64_t comm;         /* of the current collective */
	uint32_t comm_number;  /* of that communicator */
	uint32_t group_first;  /* unused groups before are of other communicators */
	VEC(uint64_t) made_wait; /* of the current group, by rank */
};

/* What is known of one collective. */
struct split {
	uint32_t last;             /* index of the call that the others waited for; MODEL_NONE */
	uint64_t made_wait_ns, longest_ns;
	uint64_t total_ns, transfer_ns;
	bool known, sure;
};

/* ---- ranks ---- */

static bool find_several(struct counting *counting)
{
	const struct model_comm *comm = counting->made->comm;

	for (size_t i = 0; i < model_collective_count(comm); i++) {
		const struct model_collective *collective = model_collective_at(comm, i);

		/* Calls are by rank; those of one process are seldom neighbours. */
		for (uint32_t k = 1; k < collective->count; k++)
			for (uint32_t l = k; l-- > 0 && k - l <= 8;)
				if (collective->calls[k].pid == collective->calls[l].pid &&
				    !map_set(&counting->several, collective->calls[k].pid, 1))
					return false;
	}
	return true;
}

/* Index of the rank of a call; MODEL_NONE: out of memory. */
static uint32_t rank_of(struct counting *counting, const struct model_collective *collective,
			const struct model_rank_call *call)
{
	bool several = map_get(&counting->several, call->pid) != MAP_NONE;
	uint64_t key = several ? (uint64_t)(call->thread + 1) << 32 | call->pid : call->pid;
	uint32_t found = map_get(&counting->rank_of, key);
	struct straggler_rank *rank;

	if (found == MAP_NONE) {
		struct straggler_rank add = {.thread = call->thread,
					     .rank = MODEL_NONE,
					     .longest_collective = MODEL_NONE};

		found = (uint32_t)counting->made->ranks.len;
		if (!vec_push(&counting->made->ranks, add) ||
		    !map_set(&counting->rank_of, key, found))
			return MODEL_NONE;
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

/* The call of `rank` among two, the ends of a message. */
static bool receives(const struct model_collective *collective, uint32_t index)
{
	return collective->calls[index].rank == collective->to && index + 1 == collective->count;
}

/* For each call the one whose data it needs and that arrived last; itself: it needs none. */
static uint32_t needed(const struct model_collective *collective, uint32_t index, uint32_t root,
		       uint32_t *latest)
{
	switch (collective->flow) {
	case FLOW_NONE:
	case FLOW_ALL:
		return collective->last;
	case FLOW_FROM_ROOT:
		return root != MODEL_NONE ? root : index;
	case FLOW_TO_ROOT:
		return index == root ? collective->last : index;
	case FLOW_PREFIX:
		if (collective->calls[index].arrival_ts >=
		    collective->calls[*latest].arrival_ts)
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

/* Whether no other rank can have come last, with the errors of their clocks. */
static bool is_sure(const struct counting *counting, const struct model_collective *collective,
		    uint32_t last)
{
	const struct model_rank_call *call = &collective->calls[last];

	if (collective->alignment != COLLECTIVE_BY_CREATION || !collective->comparable)
		return false;
	for (uint32_t i = 0; i < collective->count; i++)
		if (i != last &&
		    !model_order_known(counting->model, collective->calls[i].thread,
				       collective->calls[i].arrival_ts, call->thread,
				       call->arrival_ts))
			return false;
	return true;
}

static void durations_of(const struct model_collective *collective, struct split *split,
			 uint32_t *shortest)
{
	uint64_t least = UINT64_MAX;

	split->known = true;
	for (uint32_t i = 0; i < collective->count; i++) {
		const struct model_rank_call *call = &collective->calls[i];
		uint64_t ns = after(call->end_ts, call->arrival_ts);

		if (call->end_ts == UINT64_MAX) {
			split->known = false;
			return;
		}
		split->total_ns += ns;
		if (ns >= least)
			continue;
		least = ns;
		*shortest = i;
	}
	split->transfer_ns = least * collective->count;
}

/* Adds the waits of all calls, and returns the rank index of each waiting call's cause. */
static bool waits_add(struct counting *counting, const struct model_collective *collective,
		      uint32_t shortest, struct split *split)
{
	uint32_t root = root_call(collective), latest = 0;
	uint64_t least = split->known ? split->transfer_ns / collective->count : 0;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < collective->count; i++) {
		const struct model_rank_call *call = &collective->calls[i];
		uint32_t cause = i, rank = rank_of(counting, collective, call);
		uint64_t ns = 0;

		if (rank == MODEL_NONE)
			return false;
		counting->made->ranks.data[rank].calls++;
		if (collective->comparable) {
			cause = needed(collective, i, root, &latest);
			ns = waited(call, &collective->calls[cause]);
		} else if (collective->synchronizes && split->known) {
			cause = shortest;
			ns = after(call->end_ts, call->arrival_ts) - least;
		}
		if (cause == i || !ns)
			continue;
		counting->made->ranks.data[rank].waited_ns += ns;
		sum += ns;
		split->last = cause;
		split->longest_ns = ns > split->longest_ns ? ns : split->longest_ns;
	}
	split->made_wait_ns = sum;
	if (split->known && !collective->synchronizes)
		split->transfer_ns = after(split->total_ns, sum);
	return true;
}

/* Blames the call that the others waited for. Of a scan, that is the last one: the waits for those
 * before it are shorter. */
static bool blame(struct counting *counting, size_t index,
		  const struct model_collective *collective, const struct split *split)
{
	struct stragglers *made = counting->made;
	const struct model_rank_call *call = &collective->calls[split->last];
	uint32_t number = rank_of(counting, collective, call);
	struct straggler_rank *rank;
	struct straggler_wait wait = {.collective = (uint32_t)index,
				      .rank = number,
				      .ts = call->arrival_ts,
				      .made_wait_ns = split->made_wait_ns,
				      .longest_ns = split->longest_ns,
				      .total_ns = split->total_ns,
				      .transfer_ns = split->transfer_ns,
				      .sure = split->sure};

	if (number == MODEL_NONE)
		return false;
	rank = &made->ranks.data[number];
	rank->last++;
	rank->made_wait_ns += split->made_wait_ns;
	if (!split->sure)
		rank->unsure_ns += split->made_wait_ns;
	if (split->made_wait_ns > rank->longest_ns) {
		rank->longest_ns = split->made_wait_ns;
		rank->longest_collective = (uint32_t)index;
	}
	while (counting->made_wait.len <= number)
		if (!vec_push(&counting->made_wait, 0))
			return false;
	return vec_push(&made->waits, wait);
}
