/* SPDX-License-Identifier: Apache-2.0 */
/* Explains one instance: a span, or a thread's time. */
#ifndef WAFFLE_ANALYZE_WHY_WALK_WHY_INSTANCE_H
#define WAFFLE_ANALYZE_WHY_WALK_WHY_INSTANCE_H

#include "analyze/why/why_walk_types.h"

/* Makes a walk, for which why_walk_prepare() comes next, and a new struct why for its texts. The
 * caller ends them with why_walk_free() and why_free(). */
struct why *why_walk_begin(struct why_walk *walk, const struct model *model,
			   struct stack_names *names);
/* The same for any model. Returns -ENODATA with a message, and no struct why, if the capture has no
 * scheduler records. */
int why_start(struct why **why, struct why_walk *walk, const struct model *model,
	      struct stack_names *names, struct error *err);

struct why_instance why_span_instance(const struct model *model, uint32_t index);
struct why_instance why_window_instance(uint32_t thread, uint64_t from_ts, uint64_t to_ts);
/* Finds the sums of an instance, which stay in the walk until the next one. */
void why_instance_walk(struct why_walk *walk, struct why_instance *instance);
/* Notes whether records were dropped during the instance. why_instance_take() does that, too. */
void why_instance_judge(struct why_instance *instance, const struct why_walk *walk);
/* Appends the sums to why.parts, the largest first, with their chains. */
void why_instance_take(struct why *why, struct why_walk *walk, struct why_instance *instance);
/* Writes the sums to why.parts instead of those before, unsorted and without chains. */
void why_instance_parts(struct why *why, struct why_walk *walk, struct why_instance *instance);

#endif
