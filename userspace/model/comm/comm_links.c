// SPDX-License-Identifier: Apache-2.0
/* Adds the links from each rank's call of a collective or message to the call of the rank that came
 * last. */
#include "model/build.h"
#include "model/comm/comm_internal.h"
#include "util/memory.h"

static void link_ranks(struct model *model, const struct model_collective *collective)
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

		if (link.from != last)
			vec_add(&model->links, link);
	}
}

void comm_links_add(struct model *model, const struct model_comm *comm)
{
	for (size_t i = 0; i < model_collective_count(comm); i++)
		link_ranks(model, model_collective_at(comm, i));
	model->unaligned_collectives = model_collectives_unaligned(comm);
}
