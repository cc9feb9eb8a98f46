// SPDX-License-Identifier: Apache-2.0
/* libFuzzer target for the model of streams and collectives, from records (records.h). */
#include "check_comm.h"
#include "model/gpu/gpu.h"
#include "model/model.h"
#include "records.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_gpu(const struct model *model)
{
	struct model_gpu_awaited awaited = {0};
	struct model_gpu_op op, last;
	struct model_gpu *gpu = model_gpu_new(model);

	for (uint32_t i = 0; i < model->spans.len; i++) {
		const struct model_gpu_op *ops;

		model_gpu_awaited(gpu, i, &awaited);
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
