// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/lookup/why_pool_stack.h"

#include <string.h>

#include "analyze/why/lookup/why_meaning.h"

/* Sources: src/threadpool.c of libuv; Lib/concurrent/futures/thread.py and _base.py and
 * Lib/multiprocessing/pool.py of CPython 3.8 to 3.14. */
const struct why_pool_row why_pool_rows[WHY_POOL_ROWS] = {
	{"libuv's pool", "worker", "src/threadpool.c", "uv_cond_wait", false, NULL, NULL},
	{"a ThreadPoolExecutor", "_worker", "concurrent/futures/thread.py", NULL, true,
	 "result exception wait as_completed ", "concurrent/futures/_base.py"},
	{"a ThreadPool", "worker", "multiprocessing/pool.py", NULL, false, "get wait next ",
	 "multiprocessing/pool.py"},
};

static bool is_of_row(const struct stack_frame *frame, const struct why_pool_row *row)
{
	return frame->function && !strcmp(frame->function, row->function) &&
	       stack_frame_is_in(frame, row->source) && stack_frame_is_python(frame) == !row->idle;
}

static bool waits_for_job(const struct stack_frame *frame, const struct why_pool_row *row)
{
	return row->waits && stack_frame_is_python(frame) &&
	       stack_frame_is_in(frame, row->waits_source) &&
	       meaning_is_listed(stack_frame_plain_name(frame), row->waits);
}

struct taking {
	struct why_pool_stack stack;
	unsigned waits; /* a bit for each row in whose functions it waits for a job */
};

static void take_frame(const struct stack_frame *frame, void *arg)
{
	struct taking *taking = arg;
	struct why_pool_stack *stack = &taking->stack;

	for (unsigned i = 0; i < WHY_POOL_ROWS && !stack->row; i++) {
		const struct why_pool_row *row = &why_pool_rows[i];

		if (is_of_row(frame, row)) {
			stack->row = row;
			stack->waits = taking->waits >> i & 1;
		}
		if (row->idle && frame->function && !strcmp(frame->function, row->idle))
			stack->idle |= 1u << i;
		if (waits_for_job(frame, row))
			taking->waits |= 1u << i;
	}
	stack->python |= !stack->row && stack_frame_is_python(frame);
	stack->named |= frame->function != NULL;
	stack->cut |= frame->cut;
}

struct why_pool_stack why_pool_stack(struct stack_names *names, uint32_t number, uint64_t ts)
{
	struct taking taking = {.waits = 0};

	if (number)
		stack_names_each(names, number, ts, take_frame, &taking);
	return taking.stack;
}

bool why_pool_has_job(const struct why_pool_stack *stack)
{
	if (!stack->row)
		return false;
	return stack->row->idle ? !(stack->idle >> (stack->row - why_pool_rows) & 1)
				: stack->python;
}

static const char digits[] = "0123456789";

/* Where the last number of a text begins, and its length. Without one, it is empty. */
static size_t last_number(const char *text, size_t *len)
{
	size_t end = strlen(text), begin;

	while (end && !strchr(digits, text[end - 1]))
		end--;
	for (begin = end; begin && strchr(digits, text[begin - 1]);)
		begin--;
	*len = end - begin;
	return begin;
}

bool why_pool_is_like(const struct model *model, uint32_t a, uint32_t b)
{
	const char *first = model_thread_name(model, a), *second = model_thread_name(model, b);
	size_t first_len, second_len, begin = last_number(first, &first_len);

	return begin == last_number(second, &second_len) && !memcmp(first, second, begin) &&
	       !strcmp(first + begin + first_len, second + begin + second_len);
}
