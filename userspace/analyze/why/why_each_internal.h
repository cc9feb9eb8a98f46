/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of why_each(): slices of a capture, whose spans are explained together. */
#ifndef WAFFLE_ANALYZE_WHY_WHY_EACH_INTERNAL_H
#define WAFFLE_ANALYZE_WHY_WHY_EACH_INTERNAL_H

#include "analyze/why/why.h"
#include "analyze/why/why_walk_types.h"

/* Spans [first, end) that are explained together, and the time whose intervals are loaded. */
struct why_batch {
	uint32_t first, end;
	uint64_t from_ts, to_ts;
};

/* Makes a walk that is ready for batches, the marks that their intervals are read from, and a
 * struct why as why_start() does, with its errors. The caller frees all three, also after an error.
 */
int why_batches_begin(struct why **why, struct why_walk *walk, struct model_marks **marks,
		      const struct model *model, struct stack_names *names,
		      const struct gpu_timeline *timeline, struct error *err);
/* Takes the spans that begin within a number of switches after the first one, and later spans that
 * end before one of these. */
struct why_batch why_batch_from(const struct model *model, uint32_t first);
/* Calls `each` for the spans of a batch. Batches of one walk must come in order of time. */
int why_batch_explain(struct why_walk *walk, const struct model_marks *marks,
		      const struct why_batch *batch, why_each_fn each, void *arg);

#endif
