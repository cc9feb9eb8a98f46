/* SPDX-License-Identifier: Apache-2.0 */
/* The requests of Go programs to other processes, and their answers. */
#ifndef WAFFLE_ANALYZE_WHY_CAUSE_WHY_GO_ANSWERS_H
#define WAFFLE_ANALYZE_WHY_CAUSE_WHY_GO_ANSWERS_H

#include "analyze/why/why_verdict.h"
#include "analyze/why/why_walk_types.h"

/* Finds the requests of all Go programs and their answers. `like` as in why_evidence_init(). */
void why_go_answers_init(struct why_walk *walk, const struct why_walk *like);
void why_go_answers_free(struct why_walk *walk);
/*
 * The answer of another process that explains why the runtime has nothing to run on the thread of a
 * stretch, from its begin on. NULL: none does. *to, within the stretch, is cut to the time until
 * which that is the same.
 */
const struct why_go_answer *why_go_answer_at(struct why_walk *walk,
					     const struct why_stretch *stretch, uint64_t *to);

#endif
