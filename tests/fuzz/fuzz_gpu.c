// SPDX-License-Identifier: Apache-2.0
/* libFuzzer target for the model of streams and collectives, from records (records.h). */
#include "analyze/stragglers.h"
#include "model/comm/comm.h"
#include "model/gpu/gpu.h"
#include "model/model.h"
#include "records.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_collective(const struct model *model, const struct model_collective *collective)
{
	require(collective->count && collective->last < collective->count);
	for (uint32_t n = 0; n < collective->count; n++) {
		const struct model_rank_call *call = &collective->calls[n];

		require(call->span < model->spans.len);
		require(call->end_span == MODEL_NONE || call->end_span < model->spans.len);
		require(call->arrival_ts <= collective->calls[collective->last].arrival_ts);
	}
}

static void check_comm(const struct model *model, const struct model_gpu *gpu)
{
	const struct model_collective *found;
	struct model_comm *comm;

	if (model_comm_new(&comm, model, gpu))
		return;
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
	model_comm_free(comm);
}

/* What ranks waited, other ranks made them wait. */
static void check_stragglers(const struct model *model)
{
	struct stragglers *stragglers;
	uint64_t waited = 0, made_wait = 0;

	if (stragglers_new(&stragglers, model, 10))
		return;
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

static void check_gpu(const struct model *model)
{
	struct model_gpu_awaited awaited = {0};
	struct model_gpu_op op, last;
	struct model_gpu *gpu;

	if (model_gpu_new(&gpu, model))
		return;
	for (uint32_t i = 0; i < model->spans.len; i++) {
		const struct model_gpu_op *ops;

		if (model_gpu_awaited(gpu, i, &awaited))
			break;
		ops = awaited.ops.data;
		for (size_t n = 0; n < awaited.ops.len; n++) {
			require(ops[n].ts < model->spans.data[i].start_ts);
			require(!n || ops[n].ts <= ops[n - 1].ts);
			op = ops[n];
			do
				last = op;
			while (model_gpu_previous(gpu, &last, &op) && op.ts <= last.ts);
			require(op.ts <= last.ts);
		}
		for (uint32_t at = i, n = 0; (at = model_gpu_group_next(gpu, at)) != MODEL_NONE;)
			require(at < model->spans.len && n++ < model->spans.len);
	}
	for (uint32_t i = 0; i < model->spans.len; i++) {
		size_t first, count = model_links_from(model, MODEL_NODE_SPAN, i, &first);

		require(first + count <= model->links.len);
	}
	vec_free(&awaited.ops);
	check_comm(model, gpu);
	check_stragglers(model);
	model_gpu_free(gpu);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct store_reader *reader = records_reader(data, size, true);
	struct error err = ERROR_INIT;
	struct model *model;

	if (!reader)
		return 0;
	if (!model_load(&model, reader, STORE_ALL, NULL, &err)) {
		check_gpu(model);
		model_free(model);
	}
	store_reader_close(reader);
	return 0;
}
