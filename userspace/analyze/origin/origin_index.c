// SPDX-License-Identifier: Apache-2.0
/* What all walks of a model share. */
#include <errno.h>
#include <stdlib.h>

#include "analyze/origin/origin_internal.h"

int origin_index_new(struct origin_index **index, const struct model *model, struct error *err)
{
	struct origin_index *made = calloc(1, sizeof(*made));

	*index = NULL;
	if (made)
		made->model = model;
	if (made && !model_gpu_new(&made->gpu, model))
		made->comm = model_comm_new(model, made->gpu);
	if (!made || !origin_arrivals_init(made)) {
		origin_index_free(made);
		return error_set(err, ENOMEM, "out of memory");
	}
	*index = made;
	return 0;
}

void origin_index_free(struct origin_index *index)
{
	if (!index)
		return;
	origin_common_free(&index->common);
	vec_free(&index->by_process.list);
	vec_free(&index->by_thread.list);
	vec_free(&index->by_call.list);
	model_comm_free(index->comm);
	model_gpu_free(index->gpu);
	free(index);
}

bool origin_is_after(const struct model *model, uint32_t thread, uint64_t ts, uint32_t other,
		     uint64_t other_ts)
{
	return ts > other_ts && model_order_known(model, thread, ts, other, other_ts);
}
