/* SPDX-License-Identifier: Apache-2.0 */
/* What threads did instead of launching work while a GPU had nothing to do. */
#ifndef WAFFLE_ANALYZE_GPU_GPU_STARVED_H
#define WAFFLE_ANALYZE_GPU_GPU_STARVED_H

#include "analyze/gpu/gpu_report.h"
#include "analyze/why/why.h"
#include "symbolize/stack_names.h"

/*
 * Explains the longest launch-starved times of all devices by the wait chains of their launching
 * threads, as `why --thread` does. *why is NULL if the scheduler was not recorded, or no time has a
 * known thread; the caller frees it with why_free(). Returns 0 or a negative errno with a message.
 */
int gpu_starved_explain(struct why **why, const struct gpu_report *report,
			struct stack_names *names, struct error *err);

/* The time by cause over all instances, the largest first. The caller frees `sums`. */
struct gpu_cause {
	enum why_cause cause;
	uint64_t ns;
	uint32_t part; /* the largest part with this cause, in why.parts */
};
typedef VEC(struct gpu_cause) gpu_causes;
void gpu_starved_causes(const struct why *why, gpu_causes *sums);

#endif
