/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlocks and open waits as text (as JSON: render/json/hang_json_internal.h). */
#ifndef WAFFLE_RENDER_TEXT_HANG_TEXT_H
#define WAFFLE_RENDER_TEXT_HANG_TEXT_H

#include <stdio.h>

#include "analyze/why/hang/why_hang.h"
#include "model/model.h"
#include "symbolize/stack_names.h"

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

/* The name of the variable that an open wait's lock is; NULL: none, or unknown. */
const char *hang_lock_name(const struct hang_view *view, const struct model_open_wait *wait);

#endif
