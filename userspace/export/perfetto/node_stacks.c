// SPDX-License-Identifier: Apache-2.0
#include "export/perfetto/node_stacks_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "render/text/frame.h"
#include "symbolize/stack_names.h"
#include "util/hash.h"
#include "util/map.h"
#include "util/memory.h"
#include "util/strtab.h"

/* A stack, by its numbers in the capture's tables. */
struct made {
	uint32_t kernel, user, python;
	uint32_t text; /* number of the text */
};

struct node_stacks {
	const struct model *model;
	struct stack_names *names;
	struct strtab *texts;
	VEC(struct made) made;
	struct map last; /* hash of a stack's numbers → last entry of `made` with it */
};

struct node_stacks *node_stacks_open(const struct model *model)
{
	struct node_stacks *opened;

	if (!model->stacks.len)
		return NULL;
	opened = memory_zeroed(1, sizeof(*opened));
	opened->model = model;
	opened->texts = strtab_make();
	opened->names = stack_names_open(model->reader, true);
	return opened;
}

void node_stacks_close(struct node_stacks *stacks)
{
	if (!stacks)
		return;
	stack_names_close(stacks->names);
	strtab_free(stacks->texts);
	vec_free(&stacks->made);
	map_free(&stacks->last);
	free(stacks);
}

static void print_frame(const struct stack_frame *frame, void *arg)
{
	frame_put(arg, frame);
	fputc('\n', arg);
}

/* Returns the number of the text; 0: there are no frames. */
static uint32_t text_make(struct node_stacks *stacks, const struct model_stack *stack)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = memory_stream(&text, &len);
	uint32_t number = 0;

	stack_names_all(stacks->names, stack->python_stack, stack->ts, print_frame, out);
	stack_names_all(stacks->names, stack->kernel_stack, stack->ts, print_frame, out);
	stack_names_all(stacks->names, stack->user_stack, stack->ts, print_frame, out);
	memory_require(!fclose(out));
	if (len)
		number = strtab_put(stacks->texts, text, len - 1); /* without the last newline */
	free(text);
	return number;
}

uint32_t node_stacks_number(struct node_stacks *stacks, uint64_t id)
{
	const struct model_stack *stack = stacks ? model_stack_of(stacks->model, id) : NULL;
	const struct made *known;
	struct made made;
	uint64_t hash;
	uint32_t index;

	if (!stack)
		return 0;
	made = (struct made){.kernel = stack->kernel_stack,
			     .user = stack->user_stack,
			     .python = stack->python_stack};
	hash = ((uint64_t)made.kernel << 32 | made.user) ^ hash_number(made.python);
	index = map_get(&stacks->last, hash);
	known = index == MAP_NONE ? NULL : &stacks->made.data[index];
	if (known && known->kernel == made.kernel && known->user == made.user &&
	    known->python == made.python)
		return known->text;
	made.text = text_make(stacks, stack);
	map_put(&stacks->last, hash, (uint32_t)stacks->made.len);
	vec_add(&stacks->made, made);
	return made.text;
}

const char *node_stacks_text(const struct node_stacks *stacks, uint32_t number, size_t *len)
{
	*len = strtab_length(stacks->texts, number);
	return strtab_get(stacks->texts, number);
}
