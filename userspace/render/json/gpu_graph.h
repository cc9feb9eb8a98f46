/* SPDX-License-Identifier: Apache-2.0 */
/* The dependency graph of a GPU's operations: for graphviz, and as JSON (docs/gpu.md). */
#ifndef WAFFLE_RENDER_JSON_GPU_GRAPH_H
#define WAFFLE_RENDER_JSON_GPU_GRAPH_H

#include <stdio.h>

#include "analyze/gpu/gpu_report.h"

/* Both write only operations that overlap the window of their device. */
void gpu_graph_print_dot(const struct gpu_report *report, FILE *out);
/* Returns 0 or a negative errno. */
int gpu_graph_print_json(const struct gpu_report *report, FILE *out);

#endif
