/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A report as one HTML page that needs nothing else: no network, no other file. Its markup, style
 * and script are in html/; here is the data that the script draws, one JSON object. What is in a
 * page is bounded whatever the capture holds; what did not fit is counted in it.
 */
#ifndef WAFFLE_EXPORT_HTML_REPORT_H
#define WAFFLE_EXPORT_HTML_REPORT_H

#include <stdio.h>

#include "analyze/report.h"
#include "util/error.h"

/* A write error of `out` may be left to the caller (ferror). */
int html_report_write(const struct report *report, FILE *out, struct error *err);

/* To a path through util/output.h: on a failure the old file is left. */
int html_report_to_path(const struct report *report, const char *path, struct error *err);

#endif
