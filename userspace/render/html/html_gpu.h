/* SPDX-License-Identifier: Apache-2.0 */
/* What GPUs did, as a single HTML page like that of a report (render/html/html_report.h): the facts
 * of the text, with at most 200 rows in a table. */
#ifndef WAFFLE_RENDER_HTML_HTML_GPU_H
#define WAFFLE_RENDER_HTML_HTML_GPU_H

#include "analyze/gpu/gpu_report.h"
#include "analyze/why/why.h"
#include "util/error.h"

/* `why` explains the launch-starved times; NULL: nothing does. */
int html_gpu_to_path(const struct gpu_report *report, const struct why *why, const char *path,
		     struct error *err);

#endif
