/* SPDX-License-Identifier: Apache-2.0 */
/* Why spans were slow, as text. */
#ifndef WAFFLE_RENDER_TEXT_WHY_TEXT_H
#define WAFFLE_RENDER_TEXT_WHY_TEXT_H

#include <stdbool.h>
#include <stdio.h>

#include "analyze/why/why.h"
#include "symbolize/stack_names.h"

struct why_view {
	struct stack_names *names; /* NULL: functions have no names */
	/* Number shown for each instance, the others are summed up; 0: all. */
	uint32_t causes;
	bool evidence; /* print record numbers and stacks, too */
	bool colour;
};

void why_print_text(const struct why *why, const struct why_view *view, FILE *out);

#endif
