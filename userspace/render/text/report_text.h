/* SPDX-License-Identifier: Apache-2.0 */
/* A report as text and as JSON, for `attach`, `run` and `report`. */
#ifndef WAFFLE_RENDER_TEXT_REPORT_TEXT_H
#define WAFFLE_RENDER_TEXT_REPORT_TEXT_H

#include <stdio.h>

#include "analyze/report.h"
#include "render/text/report_view.h"

/* Prints only the table of spans and their causes. */
void report_print_spans(const struct report *report, const struct report_view *view, FILE *out);
void report_print_text(const struct report *report, const struct report_view *view, FILE *out);

/* Prints everything, independent of any view. Returns 0 or a negative errno of json_close(). */
int report_print_json(const struct report *report, FILE *out);

#endif
