// SPDX-License-Identifier: Apache-2.0
/* Sleeps that take much longer than the thread has asked for, because it has a long timer slack. */
#include "analyze/why/cause/why_blocked_internal.h"

#include <stdio.h>

#include "analyze/why/why_walk_types.h"
#include "util/memory.h"
#include "util/units.h"

/* How long each sleep should take is said in the chain. So all of them have the same object. */
bool why_late_sleep(struct why_walk *walk, struct why_blocked *blocked)
{
	const struct model_late_sleep *late =
		model_late_sleep_at(walk->model, blocked->thread, blocked->interval->from_ts);
	struct why_step *step = &walk->path[walk->depth - 1];
	char text[96], duration[UNITS_TEXT];
	int len;

	if (!late)
		return false;
	len = snprintf(text, sizeof(text), "sleeps longer than asked, by its timer slack of %s",
		       units_format_duration(duration, late->slack_ns));
	blocked->object = strtab_put(walk->why->texts, text, (size_t)len);
	if (step->meaning)
		return true;
	len = snprintf(text, sizeof(text), "asked for %s",
		       units_format_duration(duration, late->asked_ns));
	step->meaning = strtab_put(walk->why->texts, text, (size_t)len);
	return true;
}
