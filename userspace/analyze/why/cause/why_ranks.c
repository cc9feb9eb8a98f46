// SPDX-License-Identifier: Apache-2.0
/*
 * Waits for the other ranks in a collective that go on when the capture ends. Ranks have
 * connections to each other. If one of those that are recorded does not wait so, it has not come.
 */
#include "analyze/why/cause/why_blocked_internal.h"

#include <string.h>

#include "analyze/why/hang/why_hang.h"
#include "analyze/why/lookup/why_evidence.h"
#include "analyze/why/lookup/why_lock_names.h"
#include "analyze/why/lookup/why_lookup.h"
#include "analyze/why/lookup/why_peers.h"
#include "analyze/why/parts/why_sums.h"
#include "analyze/why/why_walk_types.h"
#include "util/memory.h"

#define NO_RANK (MODEL_NONE - 1)
#define WAITS_TEXT "waits for " WHY_RANKS_TEXT

static bool has_functions_of_ranks(const struct why_walk *walk, const struct model_open_wait *wait)
{
	const char *functions[STACK_NAMES_FUNCTIONS];
	uint32_t count = wait->user_stack
				 ? stack_names_functions(walk->names, wait->user_stack, wait->ts,
							 functions, STACK_NAMES_FUNCTIONS)
				 : 0;

	return why_is_of_ranks(functions, count);
}

/* Whether the stacks of a process's threads show that it is a rank, and none is in a collective. */
static bool is_missing(struct why_walk *walk, uint32_t pid)
{
	const struct model *model = walk->model;
	bool rank = false;

	for (size_t at = why_traced_of(walk, pid);
	     at < walk->traced.len && model->threads.data[walk->traced.data[at]].pid == pid; at++) {
		const struct model_open_wait *wait =
			model_open_wait_of(model, walk->traced.data[at]);

		walk->why->searched++;
		if (wait && why_hang_is_for_ranks(model, walk->names, wait))
			return false;
		rank |= wait && has_functions_of_ranks(walk, wait);
	}
	return rank;
}

/* Adds the process at the other end of a connection to `known`, and returns its main thread.
 * NO_RANK: it was known, or is no rank, or in a collective. MODEL_NONE: it is not recorded. */
static uint32_t rank_at(struct why_walk *walk, const struct store_object *object, struct map *known)
{
	uint32_t other = why_socket_other_end(walk, object), peer, main;

	if (other == MODEL_NONE)
		return MODEL_NONE;
	peer = store_reader_object(walk->model->reader, other)->pid;
	main = map_get(&walk->main_threads, peer);
	if (!model_is_traced(walk->model, main))
		return MODEL_NONE;
	if (peer == object->pid || map_get(known, peer) != MAP_NONE)
		return NO_RANK;
	map_put(known, peer, 1);
	return is_missing(walk, peer) ? main : NO_RANK;
}

/* The main thread of the only rank in no collective to which a process has a connection; NO_RANK:
 * there is none, or there are several. A process that is not recorded may be one, too. */
static uint32_t missing_rank_find(struct why_walk *walk, uint32_t pid)
{
	uint32_t found = NO_RANK;
	struct map known = {0};

	for (size_t at = why_sockets_of(walk, pid); at < walk->owned.len; at++) {
		uint32_t socket = walk->sockets.data[walk->owned.data[at]];
		const struct store_object *object =
			store_reader_object(walk->model->reader, socket);
		uint32_t rank;

		walk->why->searched++;
		if (object->pid != pid)
			break;
		rank = rank_at(walk, object, &known);
		if (rank == NO_RANK)
			continue;
		if (rank == MODEL_NONE || found != NO_RANK) {
			found = NO_RANK;
			break;
		}
		found = rank;
	}
	map_free(&known);
	return found;
}

static uint32_t missing_rank(struct why_walk *walk, uint32_t pid)
{
	uint32_t found = map_get(&walk->missing_ranks, pid);

	if (found == MAP_NONE) {
		found = missing_rank_find(walk, pid);
		map_put(&walk->missing_ranks, pid, found);
	}
	return found;
}

struct why_verdict why_blocked_for_ranks(struct why_walk *walk, struct why_blocked *blocked)
{
	const struct model *model = walk->model;
	const struct model_open_wait *wait = model_open_wait_of(model, blocked->thread);
	struct why_step *step = &walk->path[walk->depth - 1];
	uint32_t rank;

	if (!wait || wait->from_ts != blocked->interval->from_ts ||
	    !why_hang_is_for_ranks(model, walk->names, wait))
		return WHY_UNDECIDED;
	step->meaning = strtab_put(walk->why->texts, WAITS_TEXT, strlen(WAITS_TEXT));
	blocked->object = strtab_put(walk->why->texts, WHY_RANKS_TEXT, strlen(WHY_RANKS_TEXT));
	rank = missing_rank(walk, model->threads.data[blocked->thread].pid);
	if (rank == NO_RANK || why_walk_is_on_path(walk, rank))
		return why_blocked_end(walk, blocked, WHY_COLLECTIVE, WHY_GRADE_LIKELY, MODEL_NONE);
	step->by = rank;
	step->owned = true;
	return why_blocked_follow(walk, blocked, rank, WHY_GRADE_LIKELY);
}
