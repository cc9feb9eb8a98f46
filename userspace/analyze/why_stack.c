// SPDX-License-Identifier: Apache-2.0
/* What stacks tell of waits and wake-ups, each worked out once. */
#include "analyze/why_internal.h"

/* Frames of a user stack that are looked at: what a program waits with is near its end. */
#define USER_FRAMES_MAX 32

static void read_kernel(const struct why_data *data, const struct store_stack *stack, bool wake,
			struct why_told *told)
{
	for (uint32_t i = 0; i < stack->count; i++) {
		const char *name = why_symbol(data, stack->addresses[i]);
		const struct wait_function *row =
			wake ? wait_wake_function(name) : wait_kernel_function(name);

		if (name && wait_is_network_call(name))
			told->network = true;
		if (!row)
			continue;
		if (told->kind == WAIT_OTHER)
			told->kind = row->kind;
		if (!told->text)
			told->text = row->text;
	}
}

/* A lock or condition is told by the innermost function, what is more special by any. */
static void read_user(const struct why_data *data, uint32_t stack, uint64_t ts,
		      struct why_told *told)
{
	const char *functions[USER_FRAMES_MAX];
	uint32_t count =
		data->names->functions(data->names->arg, stack, ts, functions, USER_FRAMES_MAX);

	for (uint32_t i = 0; i < count && i < USER_FRAMES_MAX; i++) {
		const struct wait_function *row = wait_user_function(functions[i]);
		bool special = row && row->kind != WAIT_LOCK && row->kind != WAIT_CONDITION;

		if (row && (told->kind == WAIT_OTHER || special)) {
			told->kind = row->kind;
			told->text = row->text;
		}
		if (special)
			break;
	}
}

bool why_stack_told(struct why_data *data, enum why_stack_role role, uint32_t stack, uint64_t ts,
		    struct why_told *told)
{
	const struct store_stack *frames = store_reader_stack(data->model->reader, stack);
	uint64_t key = (uint64_t)role << 32 | stack;
	uint32_t index;

	*told = (struct why_told){0};
	if (!frames)
		return true;
	index = map_get(&data->stacks, key);
	if (index != MAP_NONE) {
		*told = data->told.data[index];
		return true;
	}
	if (role != WHY_STACK_USER)
		read_kernel(data, frames, role == WHY_STACK_WAKE, told);
	else if (data->names && data->names->functions)
		read_user(data, stack, ts, told);
	return map_set(&data->stacks, key, (uint32_t)data->told.len) &&
	       vec_push(&data->told, *told);
}
