/* SPDX-License-Identifier: Apache-2.0 */
/* Properties that the collectives and messages of any model have. */
#ifndef WAFFLE_FUZZ_CHECK_COMM_H
#define WAFFLE_FUZZ_CHECK_COMM_H

#include "analyze/stragglers.h"
#include "model/comm/comm.h"
#include "require.h"

static inline void check_collective(const struct model *model,
				    const struct model_collective *collective)
{
	require(collective->count && collective->last < collective->count);
	for (uint32_t n = 0; n < collective->count; n++) {
		const struct model_rank_call *call = &collective->calls[n];

		require(call->span < model->spans.len);
		require(call->end_span == MODEL_NONE || call->end_span < model->spans.len);
		require(call->arrival_ts <= collective->calls[collective->last].arrival_ts);
	}
}

static inline void check_comm(const struct model *model, const struct model_gpu *gpu)
{
	struct model_comm *comm = model_comm_new(model, gpu);
	const struct model_collective *found;

	for (size_t i = 0; i < model_collective_count(comm); i++)
		check_collective(model, model_collective_at(comm, i));
	for (uint32_t i = 0; i < model->spans.len; i++) {
		found = model_collective_of(comm, i);
		require(!found || found->count);
		found = model_collective_received(comm, i);
		require(!found || found->flow == FLOW_PAIR);
	}
	for (size_t i = 0; i < model_disorder_count(comm); i++) {
		require(model_disorder_at(comm, i)->span < model->spans.len);
		require(model_disorder_at(comm, i)->other_span < model->spans.len);
	}
	for (size_t i = 0; i < model_claim_count(comm); i++)
		require(model_claim_at(comm, i)->pid != model_claim_at(comm, i)->other_pid);
	model_comm_free(comm);
}

/* The time that ranks waited equals the time that other ranks made them wait. */
static inline void check_stragglers(const struct model *model)
{
	struct stragglers *stragglers = stragglers_new(model, 10);
	uint64_t waited = 0, made_wait = 0;

	for (size_t i = 0; i < stragglers->ranks.len; i++) {
		const struct straggler_rank *rank = &stragglers->ranks.data[i];

		require(rank->unsure_ns <= rank->made_wait_ns && rank->last <= rank->calls);
		waited += rank->waited_ns;
		made_wait += rank->made_wait_ns;
	}
	require(waited == made_wait);
	for (size_t i = 0; i < stragglers->groups.len; i++)
		require(stragglers->groups.data[i].total_ns ==
			stragglers->groups.data[i].transfer_ns +
				stragglers->groups.data[i].waiting_ns);
	stragglers_free(stragglers);
}

#endif
