/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for tests of model/gpu/gpu.h and model/comm/comm.h. Include it after model_capture.h. */
#ifndef WAFFLE_TEST_GPU_MODEL_H
#define WAFFLE_TEST_GPU_MODEL_H

#include "model/comm/comm.h"
#include "model/gpu/gpu.h"

/* Ends a capture and reads its model, with its GPU part. */
static inline struct model_gpu *gpu_load(struct capture *capture, uint64_t end_ts,
					 const struct model **model)
{
	struct model_gpu *gpu;

	*model = capture_load(capture, end_ts);
	gpu = model_gpu_new(*model);
	assert_non_null(gpu);
	return gpu;
}

static inline void gpu_free(struct model_gpu *gpu, struct capture *capture)
{
	model_gpu_free(gpu);
	capture_free(capture);
}

/* The same, with its collectives. */
static inline struct model_comm *comm_load(struct capture *capture, uint64_t end_ts,
					   const struct model **model)
{
	struct model_gpu *gpu = gpu_load(capture, end_ts, model);
	struct model_comm *comm;

	comm = model_comm_new(*model, gpu);
	model_gpu_free(gpu);
	return comm;
}

/* The number of collectives of a model. */
static inline size_t comm_count(const struct model *model, const struct model_gpu *gpu)
{
	struct model_comm *comm;
	size_t count;

	comm = model_comm_new(model, gpu);
	count = model_collective_count(comm);
	model_comm_free(comm);
	return count;
}

static inline void comm_free(struct model_comm *comm, struct capture *capture)
{
	model_comm_free(comm);
	capture_free(capture);
}

static inline uint64_t id_of(const struct model *model, uint8_t kind, uint32_t index)
{
	return kind == MODEL_NODE_SPAN ? model->spans.data[index].id : model->events.data[index].id;
}

static inline uint64_t op_id(const struct model *model, const struct model_gpu_op *op)
{
	return id_of(model, op->node, op->index);
}

/* Number of links from one id to another. A call's id is that of its span or event. */
static inline unsigned links_between(const struct model *model, uint64_t from, uint64_t to)
{
	unsigned found = 0;

	for (size_t i = 0; i < model->links.len; i++) {
		const struct model_link *link = &model->links.data[i];

		found += link->to_id == to && id_of(model, link->from_kind, link->from) == from;
		if (link->to != MODEL_NONE)
			assert_int_equal(id_of(model, link->to_kind, link->to), link->to_id);
	}
	return found;
}

#endif
