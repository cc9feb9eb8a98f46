/* SPDX-License-Identifier: Apache-2.0 */
/* What GPUs did, as text for people. */
#ifndef WAFFLE_RENDER_TEXT_GPU_TEXT_H
#define WAFFLE_RENDER_TEXT_GPU_TEXT_H

#include <stdio.h>

#include "analyze/gpu/gpu_report.h"
#include "analyze/why/why.h"

struct gpu_view {
	uint32_t rows; /* of each table; 0: all */
	bool colour;
	const struct why *why; /* explains the launch-starved times; NULL: nothing does */
};

void gpu_print_text(const struct gpu_report *report, const struct gpu_view *view, FILE *out);

#endif
