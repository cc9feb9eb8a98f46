// SPDX-License-Identifier: Apache-2.0
/* What all walks of a model share. */
#include <stdlib.h>

#include "analyze/origin/origin_internal.h"
#include "util/memory.h"

struct origin_index *origin_index_new(const struct model *model)
{
	struct origin_index *index = memory_zeroed(1, sizeof(*index));

	index->model = model;
	index->gpu = model_gpu_new(model);
	index->comm = model_comm_new(model, index->gpu);
	origin_arrivals_init(index);
	return index;
}

void origin_index_free(struct origin_index *index)
{
	if (!index)
		return;
	origin_common_free(&index->common);
	origin_arrivals_free(&index->by_process);
	origin_arrivals_free(&index->by_thread);
	origin_arrivals_free(&index->by_call);
	model_comm_free(index->comm);
	model_gpu_free(index->gpu);
	free(index);
}

bool origin_is_after(const struct model *model, uint32_t thread, uint64_t ts, uint32_t other,
		     uint64_t other_ts)
{
	return ts > other_ts && model_order_known(model, thread, ts, other, other_ts);
}
