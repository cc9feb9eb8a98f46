/* SPDX-License-Identifier: Apache-2.0 */
/* Explains the time of a Go program as a whole. */
#ifndef WAFFLE_ANALYZE_WHY_WALK_WHY_GO_WALK_INTERNAL_H
#define WAFFLE_ANALYZE_WHY_WALK_WHY_GO_WALK_INTERNAL_H

#include "analyze/why/why_walk_types.h"

/* Explains the time of a Go program as a whole, of which the instance has the main thread. */
void why_walk_program(struct why_walk *walk, struct why_instance *instance);

#endif
