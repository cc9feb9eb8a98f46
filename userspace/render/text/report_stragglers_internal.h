/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a report on ranks that others waited for, and on their collectives. */
#ifndef WAFFLE_RENDER_TEXT_REPORT_STRAGGLERS_INTERNAL_H
#define WAFFLE_RENDER_TEXT_REPORT_STRAGGLERS_INTERNAL_H

#include <stdio.h>

#include "analyze/report.h"
#include "render/text/report_view.h"

/* Prints nothing if no collective has calls of two ranks. */
void report_print_stragglers(const struct report *report, const struct report_view *view,
			     FILE *out);

#endif
