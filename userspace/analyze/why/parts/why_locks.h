/* SPDX-License-Identifier: Apache-2.0 */
/* The time that an instance lost in waits for locks. Its causes say what the holders did meanwhile,
 * so that one lock with many holders may be nowhere among them. */
#ifndef WAFFLE_ANALYZE_WHY_PARTS_WHY_LOCKS_H
#define WAFFLE_ANALYZE_WHY_PARTS_WHY_LOCKS_H

#include "analyze/why/why_verdict.h"
#include "analyze/why/why_walk_types.h"

/* Adds a time whose chain, which the verdict ends, is the path. */
void why_locks_add(struct why_walk *walk, const struct why_verdict *verdict, uint64_t ns);
/* Hands them over to the instance, which has been walked. */
void why_locks_take(struct why *why, struct why_walk *walk, struct why_instance *instance);
void why_locks_clear(struct why_walk *walk);

#endif
