// SPDX-License-Identifier: Apache-2.0
/*
 * The neighbours with which the waits of a sum shared the disk. On a machine with many jobs each
 * wait has another one, so they are no part of what decides which waits are summed up: the sum
 * names the one for which the disk moved the most bytes.
 */
#include "analyze/why/parts/why_neighbours.h"

#include "analyze/why/why_walk_types.h"
#include "util/memory.h"

static uint32_t comm_of(const struct why_walk *walk, const struct why_neighbour *neighbour)
{
	return walk->model->threads.data[neighbour->thread].comm;
}

static void add_neighbour(struct why_walk *walk, struct why_sum *sum, struct why_neighbour more)
{
	struct why_neighbour *known;
	uint32_t at = sum->neighbours, names = 0;

	for (; at != MODEL_NONE; at = walk->neighbours.data[at].next, names++)
		if (comm_of(walk, &walk->neighbours.data[at].neighbour) == comm_of(walk, &more))
			break;
	if (at == MODEL_NONE && names == WHY_NEIGHBOURS_MAX)
		return;
	if (at == MODEL_NONE) {
		vec_add(&walk->neighbours, ((struct why_neighbour_node){more, sum->neighbours}));
		sum->neighbours = (uint32_t)walk->neighbours.len - 1;
		return;
	}
	known = &walk->neighbours.data[at].neighbour;
	known->bytes += more.bytes;
	known->ns += more.ns;
}

void why_neighbours_add(struct why_walk *walk, struct why_sum *sum, const struct why_disk_use *use)
{
	sum->disk_own_bytes += use->own_bytes;
	if (use->neighbour.ns)
		add_neighbour(walk, sum, use->neighbour);
}

void why_neighbours_join(struct why_walk *walk, struct why_sum *to, const struct why_sum *from)
{
	to->disk_own_bytes += from->disk_own_bytes;
	for (uint32_t at = from->neighbours; at != MODEL_NONE; at = walk->neighbours.data[at].next)
		add_neighbour(walk, to, walk->neighbours.data[at].neighbour);
}

struct why_neighbour why_neighbours_most(const struct why_walk *walk, const struct why_sum *sum)
{
	struct why_neighbour most = {.bytes = 0};

	for (uint32_t at = sum->neighbours; at != MODEL_NONE; at = walk->neighbours.data[at].next) {
		const struct why_neighbour *neighbour = &walk->neighbours.data[at].neighbour;

		if (neighbour->bytes > most.bytes && neighbour->bytes > sum->disk_own_bytes &&
		    why_neighbour_counts(neighbour, sum->part.ns))
			most = *neighbour;
	}
	return most;
}
