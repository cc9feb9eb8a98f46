/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of the path, and the sums of the time that each cause took. */
#ifndef WAFFLE_ANALYZE_WHY_PARTS_WHY_SUMS_H
#define WAFFLE_ANALYZE_WHY_PARTS_WHY_SUMS_H

#include "analyze/why/why_verdict.h"
#include "analyze/why/why_walk_types.h"

struct why_step *why_walk_push(struct why_walk *walk, uint32_t thread,
			       enum waffle_thread_state state, uint64_t from, uint64_t to);
bool why_walk_is_on_path(const struct why_walk *walk, uint32_t thread);
/* The chain ends at the thread's innermost span. */
struct why_verdict why_verdict_end(const struct why_walk *walk, enum why_cause cause,
				   enum why_grade grade, uint32_t thread, uint32_t object);
/* Adds the time of the path's last step, at which the chain ends. */
void why_walk_add(struct why_walk *walk, const struct why_verdict *verdict);
/* The same for a wait that goes on, and counts as earlier ones. Its chain is not known. */
void why_walk_join(struct why_walk *walk, const struct why_verdict *verdict);

#endif
