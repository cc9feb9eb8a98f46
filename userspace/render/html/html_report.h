/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A report as a single HTML page that uses no network and no other file. html/ has its markup,
 * style and script. This module writes the data for the script as one JSON object. The size of a
 * page is bounded for any capture, and the page tells how much was left out.
 */
#ifndef WAFFLE_RENDER_HTML_HTML_REPORT_H
#define WAFFLE_RENDER_HTML_HTML_REPORT_H

#include <stdio.h>

#include "analyze/report.h"
#include "util/error.h"

/* May leave a write error of `out` to the caller (ferror()). */
void html_report_write(const struct report *report, FILE *out);

/* Writes to a path through util/output.h, so that a failure leaves the old file. */
int html_report_to_path(const struct report *report, const char *path, struct error *err);

#endif
