/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way of a span that begins on one thread and ends on another: which thread had it when. A leg
 * is a stretch of time in which one thread had the span, or in which no record shows which one.
 */
#ifndef WAFFLE_ANALYZE_WHY_WALK_WHY_WAY_INTERNAL_H
#define WAFFLE_ANALYZE_WHY_WALK_WHY_WAY_INTERNAL_H

#include "analyze/why/why_walk_types.h"

/* The way is followed over this number of legs. Up to three more describe the time before. */
#define WHY_LEGS 16

/* The thread is the one that had the span, or the one that was busy while the span waited in its
 * queue. */
struct why_leg {
	uint32_t thread;      /* MODEL_NONE: no record shows where the span was */
	enum why_grade grade; /* at most WHY_GRADE_LIKELY: the way follows from rules */
	bool queued;          /* the thread was busy with other jobs, for which the span waited */
	uint32_t others;      /* number of those jobs */
	uint64_t from_ts, to_ts;
};

/* Legs from the end of the span to its begin, without gaps. */
struct why_way {
	uint32_t count;
	struct why_leg legs[WHY_LEGS + 3];
};

void why_way_find(const struct why_walk *walk, const struct why_instance *instance,
		  struct why_way *way);

#endif
