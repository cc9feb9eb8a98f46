// SPDX-License-Identifier: Apache-2.0
/* Stacks of spans and events, looked up by id. */
#include <stdlib.h>

#include "model/build.h"
#include "model/order.h"
#include "util/memory.h"
#include "util/search.h"

void stacks_add(struct builder *builder, const struct waffle_rec_stack *stack)
{
	struct model *model = builder->model;

	if (!stack->id || !stack->rec.tid) {
		model->bad_records++;
		return;
	}
	vec_add(&model->stacks, (struct model_stack){.id = stack->id,
						     .ts = stack->rec.ts,
						     .kernel_stack = stack->kernel_stack,
						     .user_stack = stack->user_stack,
						     .python_stack = stack->python_stack});
}

void stacks_finish(struct model *model)
{
	free(order_vec(&model->stacks, id));
}

const struct model_stack *model_stack_of(const struct model *model, uint64_t id)
{
	size_t at = lower_bound(model->stacks.len, i, model->stacks.data[i].id < id);

	if (at == model->stacks.len || model->stacks.data[at].id != id)
		return NULL;
	return &model->stacks.data[at];
}
