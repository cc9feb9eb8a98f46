/* SPDX-License-Identifier: Apache-2.0 */
/* What made spans slow, for people. */
#ifndef WAFFLE_EXPORT_WHY_TEXT_H
#define WAFFLE_EXPORT_WHY_TEXT_H

#include <stdbool.h>
#include <stdio.h>

#include "analyze/why.h"
#include "export/stack_text.h"

struct why_view {
	struct stack_names *names; /* NULL: no names of functions */
	uint32_t causes;           /* shown of each instance; the rest is summed up. 0: all */
	bool evidence;             /* record numbers and stacks, too */
	bool colour;
};

void why_print_text(const struct why *why, const struct why_view *view, FILE *out);

#endif
