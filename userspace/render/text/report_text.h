/* SPDX-License-Identifier: Apache-2.0 */
/* A report as text and as JSON, for `attach`, `run` and `report`. */
#ifndef WAFFLE_RENDER_TEXT_REPORT_TEXT_H
#define WAFFLE_RENDER_TEXT_REPORT_TEXT_H

#include <stdbool.h>
#include <stdio.h>

#include "analyze/report.h"

/* Arguments for units_plural(). */
#define BAD_RECORD "record made no sense and was", "records made no sense and were"

/* How to print a report. `rows` is the limit for each table, and a line below tells how many are
 * left out. 0: all. */
struct report_view {
	uint32_t rows;
	bool colour;
};

void report_print_text(const struct report *report, const struct report_view *view, FILE *out);

/* Prints everything, independent of any view. Returns 0 or a negative errno of json_close(). */
int report_print_json(const struct report *report, FILE *out);

/* A notice that the capture is simulated, if model_simulated(); else NULL. report_put_simulated()
 * prints it as a line. */
const char *report_simulated(const struct model *model);
void report_put_simulated(FILE *out, const struct model *model);

/* Prints a filter expression on one line: without comments, and with a blank for each line
 * break. */
void report_put_expression(FILE *out, const char *expression);

#endif
