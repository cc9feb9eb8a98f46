/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A candidate for a step: a function that a thread without spans calls again and again. Nothing
 * shows that the program's author would call it a step, so it is only suggested.
 */
#ifndef WAFFLE_ANALYZE_WHY_WHY_REPEAT_H
#define WAFFLE_ANALYZE_WHY_WHY_REPEAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/model.h"
#include "symbolize/stack_names.h"

#define WHY_REPEAT_DEPTH 32

/* A stack, outermost frame first, and the time that it stands for. */
struct why_repeat_path {
	struct stack_frame frames[WHY_REPEAT_DEPTH];
	uint32_t depth;
	bool waits; /* the thread waits there, and does not run */
	uint64_t ns;
};

struct why_repeat_candidate {
	struct stack_frame frame;
	uint32_t stacks, of; /* stacks with this function, and all that were examined */
};

/* False: the stacks show no function that is called again and again. */
bool why_repeat_choose(const struct why_repeat_path *paths, size_t count,
		       struct why_repeat_candidate *candidate);
/* The same of the waits and samples of a thread, by its number in the model. */
bool why_repeat_find(const struct model *model, struct stack_names *names, uint32_t thread,
		     struct why_repeat_candidate *candidate);

/* The option that makes spans of its calls, such as "uprobe:/opt/server:handle as span step".
 * False: its name or its file cannot be written in a probe spec. */
bool why_repeat_probe(char *text, size_t size, const struct stack_frame *frame);

#endif
