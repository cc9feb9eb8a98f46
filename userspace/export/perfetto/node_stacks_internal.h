/* SPDX-License-Identifier: Apache-2.0 */
/* The stacks of spans, events and waits as text. Each text is made once. */
#ifndef WAFFLE_EXPORT_PERFETTO_NODE_STACKS_INTERNAL_H
#define WAFFLE_EXPORT_PERFETTO_NODE_STACKS_INTERNAL_H

#include "model/model.h"

struct node_stacks;
struct stack_names;

/* NULL if the capture has no stacks; all functions accept NULL. `names` must outlive it. */
struct node_stacks *node_stacks_open(const struct model *model, struct stack_names *names);
void node_stacks_close(struct node_stacks *stacks);

/* The number of the text of a span's or event's stack; 0: it has none. The text has one frame a
 * line, innermost first: Python frames, then kernel frames, then user frames. */
uint32_t node_stacks_number(struct node_stacks *stacks, uint64_t id);
/* The same for a wait; `wait` NULL: there are no details of it. */
uint32_t node_stacks_of_wait(struct node_stacks *stacks, const struct model_wait *wait);
/* The text with a number, NUL-terminated. *len is its length in bytes. */
const char *node_stacks_text(const struct node_stacks *stacks, uint32_t number, size_t *len);

#endif
