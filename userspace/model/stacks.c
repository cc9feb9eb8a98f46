// SPDX-License-Identifier: Apache-2.0
/* Stacks of spans and events, looked up by id. */
#include <stdlib.h>

#include "model/build.h"
#include "model/order.h"
#include "util/search.h"

int stacks_add(struct builder *builder, const struct waffle_rec_stack *stack)
{
	struct model *model = builder->model;

	if (!stack->id || !stack->rec.tid) {
		model->bad_records++;
		return 0;
	}
	return vec_push(&model->stacks, (struct model_stack){.id = stack->id,
							     .ts = stack->rec.ts,
							     .kernel_stack = stack->kernel_stack,
							     .user_stack = stack->user_stack,
							     .python_stack = stack->python_stack})
		       ? 0
		       : -ENOMEM;
}

int stacks_finish(struct model *model)
{
	uint32_t *rank;

	if (!order_array(model->stacks.data, model->stacks.len, sizeof(struct model_stack),
			 offsetof(struct model_stack, id), &rank))
		return -ENOMEM;
	free(rank);
	return 0;
}

const struct model_stack *model_stack_of(const struct model *model, uint64_t id)
{
	size_t at = lower_bound(model->stacks.len, i, model->stacks.data[i].id < id);

	if (at == model->stacks.len || model->stacks.data[at].id != id)
		return NULL;
	return &model->stacks.data[at];
}
