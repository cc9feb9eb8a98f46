/* SPDX-License-Identifier: Apache-2.0 */
/* The way of a span from the thread that began it to the thread that ended it. */
#ifndef WAFFLE_ANALYZE_WHY_WHY_WAY_INTERNAL_H
#define WAFFLE_ANALYZE_WHY_WHY_WAY_INTERNAL_H

#include "analyze/why/why_parts_internal.h"

/* More legs than this are not followed: the rest of the way is unknown. */
#define WHY_LEGS 16

/* A part of the span's time, and the thread that had the span, or was busy while the span waited in
 * its queue. */
struct why_leg {
	uint32_t thread;      /* MODEL_NONE: no record shows where the span was */
	enum why_grade grade; /* at most `likely`: the way follows from rules */
	bool queued;          /* the thread was busy with other jobs */
	uint32_t others;      /* queued: their number */
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
