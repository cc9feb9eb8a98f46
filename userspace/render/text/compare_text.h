/* SPDX-License-Identifier: Apache-2.0 */
/* What changed between two captures, as text and as JSON. */
#ifndef WAFFLE_RENDER_TEXT_COMPARE_TEXT_H
#define WAFFLE_RENDER_TEXT_COMPARE_TEXT_H

#include <stdio.h>

#include "analyze/why/why_compare.h"
#include "render/text/report_view.h"

/* `paths`: the two files. */
void compare_print_text(const struct why_comparison *comparison, const char *const paths[WHY_SIDES],
			const struct report_view *view, FILE *out);

/* Prints all names and causes. Returns 0 or a negative errno of json_close(). */
int compare_print_json(const struct why_comparison *comparison, const char *const paths[WHY_SIDES],
		       FILE *out);

#endif
