/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WAFFLE_RENDER_TEXT_WHY_VIEW_H
#define WAFFLE_RENDER_TEXT_WHY_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "symbolize/stack_names.h"

struct why;
struct why_hangs;
struct why_waiters;

/* How to print an explanation. */
struct why_view {
	struct stack_names *names; /* NULL: functions have no names */
	/* Number shown for each instance, the others are summed up; 0: all. */
	uint32_t causes;
	bool evidence; /* print record numbers and stacks, too */
	bool colour;
	/* The longest waits of the explained threads (why_query.waits), printed in a line each;
	 * NULL: none. */
	const struct why *waits;
	/* The threads that wait for the explained one, printed in a line each; NULL: none. */
	const struct why_waiters *waiters;
	/* Deadlocks and waits that go on at the end; NULL: none are printed. */
	const struct why_hangs *hangs;
	bool brief; /* print neither chains nor the number of records */
};

#endif
