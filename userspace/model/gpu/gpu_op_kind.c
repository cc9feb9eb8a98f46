// SPDX-License-Identifier: Apache-2.0
#include "model/gpu/gpu_op_kind.h"

const char *const gpu_op_kind_names[GPU_OP_KIND_COUNT] = {
	[GPU_OP_KERNEL] = "kernel", [GPU_OP_COPY] = "copy", [GPU_OP_SET] = "set",
	[GPU_OP_GRAPH] = "graph",   [GPU_OP_HOST] = "host", [GPU_OP_WAIT] = "wait",
};
