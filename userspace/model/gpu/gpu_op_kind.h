/* SPDX-License-Identifier: Apache-2.0 */
/* What operations of a GPU are. */
#ifndef WAFFLE_MODEL_GPU_GPU_OP_KIND_H
#define WAFFLE_MODEL_GPU_GPU_OP_KIND_H

#include <stdbool.h>

/* The category of all sites of libwaffle-gpu. */
#define GPU_CATEGORY "gpu"

/* The order is that of gpu_op_kind_names. */
enum gpu_op_kind {
	GPU_OP_KERNEL,
	GPU_OP_COPY,
	GPU_OP_SET,
	GPU_OP_GRAPH, /* a whole graph, where its nodes were not recorded */
	GPU_OP_HOST,  /* a host function: a thread of the program runs it */
	GPU_OP_WAIT,  /* a synchronisation */
	GPU_OP_KIND_COUNT
};
extern const char *const gpu_op_kind_names[GPU_OP_KIND_COUNT];

/* Whether an operation keeps its device busy. */
static inline bool gpu_op_is_work(unsigned kind)
{
	return kind <= GPU_OP_GRAPH;
}

#endif
