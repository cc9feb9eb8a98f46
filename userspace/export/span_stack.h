/* SPDX-License-Identifier: Apache-2.0 */
/* The stacks that spans and events were taken with (--stacks), in exports. */
#ifndef WAFFLE_EXPORT_SPAN_STACK_H
#define WAFFLE_EXPORT_SPAN_STACK_H

#include "export/stack_text.h"
#include "model/model.h"
#include "util/json.h"

/* NULL in *names and 0: the capture has no such stacks. -ENOMEM. */
int span_stack_open(struct stack_names **names, const struct model *model);

/*
 * "user_stack", "kernel_stack", "python_stack" of the span or event `id`, where there are any:
 * arrays of {"function", "file", "line", "module", "offset", "inlined"}, innermost first, with what
 * is known of each; behind one that is known to be cut, "user_stack_cut": true. `prefix` stands
 * before their names.
 */
void span_stack_json(struct json *json, const struct model *model, struct stack_names *names,
		     const char *prefix, uint64_t id);

#endif
