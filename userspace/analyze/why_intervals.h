/* SPDX-License-Identifier: Apache-2.0 */
/* States and innermost spans of threads over time, to be looked up by time. */
#ifndef WAFFLE_ANALYZE_WHY_INTERVALS_H
#define WAFFLE_ANALYZE_WHY_INTERVALS_H

#include "model/model.h"
#include "model/windows.h"

/* A model_interval, without its thread. */
struct why_interval {
	uint64_t from_ts, to_ts;
	uint32_t by, args;
	uint16_t cpu, task_state;
	int16_t syscall;
	uint8_t state;
	bool woken : 1, interrupt : 1, open : 1;
};

/* From `ts` on this span is the innermost one; MODEL_NONE: none. */
struct why_mark {
	uint64_t ts;
	uint32_t span;
};

struct why_thread {
	VEC(struct why_interval) intervals;
	VEC(struct why_mark) marks;
	size_t interval_found, mark_found; /* last: times that are asked for are often near */
};

struct why_intervals {
	struct why_thread *threads; /* one for each of the model's */
	size_t count;
	const struct windows *windows; /* merged; intervals outside are not kept. While loading */
};

/* `intervals` is all zero, or has those of other windows of the same model, whose room is used
 * again. Returns 0 or -ENOMEM. */
int why_intervals_load(struct why_intervals *intervals, const struct model *model,
		       const struct windows *windows);
void why_intervals_free(struct why_intervals *intervals);

/* The first interval of a thread that ends after ts; its number, or how many there are. */
size_t why_intervals_after(const struct why_intervals *intervals, uint32_t thread, uint64_t ts);
/* The innermost span at ts, and until when (at most) it stays so. */
uint32_t why_intervals_span(const struct why_intervals *intervals, uint32_t thread, uint64_t ts,
			    uint64_t *until);

#endif
