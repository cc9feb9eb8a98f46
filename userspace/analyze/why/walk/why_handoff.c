// SPDX-License-Identifier: Apache-2.0
/* Spans that begin on one thread and end on another: each part of their time is explained by the
 * thread that had the span then (why_way.c). */
#include "analyze/why/walk/why_handoff_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/why/parts/why_sums.h"
#include "analyze/why/walk/why_walk.h"
#include "analyze/why/walk/why_way_internal.h"
#include "analyze/why/why_verdict.h"
#include "analyze/why/why_walk_types.h"
#include "util/memory.h"
#include "util/units.h"

#define NOWHERE_TEXT "no record shows which thread had it"

static uint32_t text_of(struct why_walk *walk, const struct why_leg *leg)
{
	char text[64];
	int len;

	if (!leg->queued || !leg->others)
		return 0;
	len = snprintf(text, sizeof(text), "queued behind %" PRIu32 " other job%s", leg->others,
		       units_plural(leg->others, "", "s"));
	return strtab_put(walk->why->texts, text, (size_t)len);
}

static void walk_leg(struct why_walk *walk, struct why_instance *instance,
		     const struct why_leg *leg)
{
	struct why_link link = {.kind = WAIT_OTHER,
				.grade = leg->grade,
				.object = text_of(walk, leg),
				.from_ts = leg->from_ts,
				.until_ts = leg->to_ts};
	struct why_verdict verdict;
	struct why_step *step;

	if (leg->thread == instance->thread) {
		why_walk_time(walk, leg->thread, leg->from_ts, leg->to_ts, NULL);
		return;
	}
	why_walk_count_states(walk, instance->thread, leg->from_ts, leg->to_ts);
	walk->interval = NULL;
	step = why_walk_push(walk, instance->thread, 0, leg->from_ts, leg->to_ts);
	if (leg->thread == MODEL_NONE) {
		step->object = strtab_put(walk->why->texts, NOWHERE_TEXT, strlen(NOWHERE_TEXT));
		verdict = why_verdict_end(walk, WHY_UNKNOWN, WHY_GRADE_UNKNOWN, MODEL_NONE,
					  step->object);
		why_walk_add(walk, &verdict);
	} else {
		step->by = leg->thread;
		step->handed = true;
		why_walk_time(walk, leg->thread, leg->from_ts, leg->to_ts, &link);
	}
	walk->depth--;
}

void why_walk_handed_over(struct why_walk *walk, struct why_instance *instance)
{
	struct why_way way;

	why_way_find(walk, instance, &way);
	for (uint32_t i = way.count; i--;)
		walk_leg(walk, instance, &way.legs[i]);
}
