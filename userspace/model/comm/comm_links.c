// SPDX-License-Identifier: Apache-2.0
/* Adds the links from each rank's call of a collective or message to the call of the rank that came
 * last. Two calls that exchange messages, as of MPI_Sendrecv(), are linked once. */
#include "model/build.h"
#include "model/comm/comm_internal.h"
#include "util/map.h"
#include "util/memory.h"

static void link_ranks(struct model *model, const struct model_collective *collective,
		       struct map *linked)
{
	uint32_t last = collective->calls[collective->last].span;

	for (uint32_t i = 0; collective->comparable && i < collective->count; i++) {
		struct model_link link = {
			.from_kind = MODEL_NODE_SPAN,
			.to_kind = MODEL_NODE_SPAN,
			.from = collective->calls[i].span,
			.to = last,
			.to_id = model->spans.data[last].id,
		};
		uint64_t calls = (uint64_t)link.from << 32 | last;

		if (link.from == last || map_get(linked, calls) != MAP_NONE)
			continue;
		map_put(linked, calls, 1);
		vec_add(&model->links, link);
	}
}

void comm_links_add(struct model *model, const struct model_comm *comm)
{
	struct map linked = {0}; /* the numbers of two calls → 1 */

	for (size_t i = 0; i < model_collective_count(comm); i++)
		link_ranks(model, model_collective_at(comm, i), &linked);
	map_free(&linked);
	model->unaligned_collectives = model_collectives_unaligned(comm);
}
