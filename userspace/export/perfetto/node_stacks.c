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
	bool wait;     /* of a wait, which may have been unwound by frame pointers alone */
	uint32_t text; /* number of the text */
};

struct node_stacks {
	const struct model *model;
	struct stack_names *names;
	struct strtab *texts;
	VEC(struct made) made;
	struct map last; /* hash of a stack's numbers → last entry of `made` with it */
};

struct node_stacks *node_stacks_open(const struct model *model, struct stack_names *names)
{
	struct node_stacks *opened;

	if (!model->stacks.len && !model->waits.len)
		return NULL;
	opened = memory_zeroed(1, sizeof(*opened));
	opened->model = model;
	opened->texts = strtab_make();
	opened->names = names;
	return opened;
}

void node_stacks_close(struct node_stacks *stacks)
{
	if (!stacks)
		return;
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
static uint32_t text_make(struct node_stacks *stacks, const struct made *of, uint64_t ts)
{
	const uint32_t numbers[] = {of->python, of->kernel, of->user};
	char *text = NULL;
	size_t len = 0;
	FILE *out = memory_stream(&text, &len);
	uint32_t number = 0;

	for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (of->wait)
			stack_names_each(stacks->names, numbers[i], ts, print_frame, out);
		else
			stack_names_all(stacks->names, numbers[i], ts, print_frame, out);
	}
	memory_require(!fclose(out));
	if (len)
		number = strtab_put(stacks->texts, text, len - 1); /* without the last newline */
	free(text);
	return number;
}

static uint32_t made_get(struct node_stacks *stacks, struct made made, uint64_t ts)
{
	uint64_t hash = ((uint64_t)made.kernel << 32 | made.user) ^
			hash_number((uint64_t)made.python << 1 | made.wait);
	uint32_t index = map_get(&stacks->last, hash);
	const struct made *known = index == MAP_NONE ? NULL : &stacks->made.data[index];

	if (known && known->kernel == made.kernel && known->user == made.user &&
	    known->python == made.python && known->wait == made.wait)
		return known->text;
	made.text = text_make(stacks, &made, ts);
	map_put(&stacks->last, hash, (uint32_t)stacks->made.len);
	vec_add(&stacks->made, made);
	return made.text;
}

uint32_t node_stacks_number(struct node_stacks *stacks, uint64_t id)
{
	const struct model_stack *stack = stacks ? model_stack_of(stacks->model, id) : NULL;

	if (!stack)
		return 0;
	return made_get(stacks,
			(struct made){.kernel = stack->kernel_stack,
				      .user = stack->user_stack,
				      .python = stack->python_stack},
			stack->ts);
}

uint32_t node_stacks_of_wait(struct node_stacks *stacks, const struct model_wait *wait)
{
	if (!stacks || !wait || !(wait->kernel_stack | wait->user_stack))
		return 0;
	return made_get(
		stacks,
		(struct made){.kernel = wait->kernel_stack, .user = wait->user_stack, .wait = true},
		wait->from_ts);
}

const char *node_stacks_text(const struct node_stacks *stacks, uint32_t number, size_t *len)
{
	*len = strtab_length(stacks->texts, number);
	return strtab_get(stacks->texts, number);
}
