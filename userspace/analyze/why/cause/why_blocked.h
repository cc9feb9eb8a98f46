/* SPDX-License-Identifier: Apache-2.0 */
/* Explains blocked time. */
#ifndef WAFFLE_ANALYZE_WHY_CAUSE_WHY_BLOCKED_H
#define WAFFLE_ANALYZE_WHY_CAUSE_WHY_BLOCKED_H

#include "analyze/why/why_verdict.h"
#include "analyze/why/why_walk_types.h"

/* Explains blocked time. */
struct why_verdict why_blocked_verdict(struct why_walk *walk, const struct why_stretch *stretch);

/* If a Go program hardly ran, and nearly all of its waits were idle until something else than a
 * client ended that, makes these unknown: a timer's goroutine hides others that are blocked, as in
 * a deadlock. */
void why_go_doubt(struct why_walk *walk, const struct why_instance *instance);

#endif
