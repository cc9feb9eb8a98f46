/* SPDX-License-Identifier: Apache-2.0 */
/* The recorded stacks of spans and events (--stacks), in exports. */
#ifndef WAFFLE_RENDER_JSON_SPAN_STACK_H
#define WAFFLE_RENDER_JSON_SPAN_STACK_H

#include "model/model.h"
#include "symbolize/stack_names.h"
#include "util/json.h"

/* NULL if the capture has no such stacks. */
struct stack_names *span_stack_open(const struct model *model);

/*
 * Writes the stacks of the span or event `id`: "user_stack", "kernel_stack" and "python_stack", as
 * far as they exist. Each is an array of {"function", "file", "line", "module", "offset",
 * "inlined"}, innermost first, and unknown members are left out. A stack known to be truncated is
 * followed by "user_stack_cut": true. `prefix` precedes all these names.
 */
void span_stack_json(struct json *json, const struct model *model, struct stack_names *names,
		     const char *prefix, uint64_t id);

#endif
