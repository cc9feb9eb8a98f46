/* SPDX-License-Identifier: Apache-2.0 */
/* What GPUs did, as JSON. docs/gpu.md describes it. */
#ifndef WAFFLE_RENDER_JSON_GPU_JSON_H
#define WAFFLE_RENDER_JSON_GPU_JSON_H

#include <stdio.h>

#include "analyze/gpu/gpu_report.h"
#include "analyze/why/why.h"

/* `why` explains the launch-starved times; NULL: nothing does. Returns 0 or a negative errno. */
int gpu_print_json(const struct gpu_report *report, const struct why *why, FILE *out);

#endif
