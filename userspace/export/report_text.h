/* SPDX-License-Identifier: Apache-2.0 */
/* A report for the terminal and as JSON; what `attach`, `run` and `report` print. */
#ifndef WAFFLE_EXPORT_REPORT_TEXT_H
#define WAFFLE_EXPORT_REPORT_TEXT_H

#include <stdbool.h>
#include <stdio.h>

#include "analyze/report.h"

/* For units_plural(). */
#define BAD_RECORD "record made no sense and was", "records made no sense and were"

/* Rows shown of each table; the rest is counted in a line below it. 0: all. */
struct report_view {
	uint32_t rows;
	bool colour;
};

void report_print_text(const struct report *report, const struct report_view *view, FILE *out);

/* Everything, whatever the view. Returns 0 or a negative errno of json_close(). */
int report_print_json(const struct report *report, FILE *out);

/* Colours are for terminals, and not where NO_COLOR is set (no-color.org) or TERM is dumb. */
bool report_colour_for(FILE *out);

/* What says so, if model_simulated(); else NULL. And as a line. */
const char *report_simulated(const struct model *model);
void report_put_simulated(FILE *out, const struct model *model);

/* A filter expression on one line: without comments, each break a blank. */
void report_put_expression(FILE *out, const char *expression);

#endif
