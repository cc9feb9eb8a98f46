/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlocks and open waits, as text and as JSON. */
#ifndef WAFFLE_RENDER_TEXT_HANG_TEXT_H
#define WAFFLE_RENDER_TEXT_HANG_TEXT_H

#include <stdio.h>

#include "analyze/why/why_hang.h"
#include "util/json.h"

struct hang_view {
	const struct model *model;
	struct stack_names *names; /* NULL: functions and locks have no names */
	bool colour;
	bool all; /* all open waits, and whole stacks */
};

/* Prints each deadlock with the stacks of its threads. Returns whether there is one. */
bool hang_print_deadlocks(const struct why_hangs *hangs, const struct hang_view *view, FILE *out);
/* Prints the waits that are in no deadlock: those with an owner, uninterruptible ones, and the
 * longest of the others. */
void hang_print_waits(const struct why_hangs *hangs, const struct hang_view *view, FILE *out);

/* Writes the members "deadlocks" and "open_waits" of an open object, unless there are no open
 * waits. */
void hang_json(struct json *json, const struct why_hangs *hangs, const struct hang_view *view);

#endif
