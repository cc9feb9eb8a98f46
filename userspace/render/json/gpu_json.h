/* SPDX-License-Identifier: Apache-2.0 */
/* What GPUs did, as JSON. docs/gpu.md describes it. */
#ifndef WAFFLE_RENDER_JSON_GPU_JSON_H
#define WAFFLE_RENDER_JSON_GPU_JSON_H

#include <stdio.h>

#include "analyze/gpu/gpu_report.h"
#include "analyze/why/why.h"
#include "util/json.h"

/* `why` explains the launch-starved times; NULL: nothing does. Returns 0 or a negative errno. */
int gpu_print_json(const struct gpu_report *report, const struct why *why, FILE *out);

/* Writes the same as members of the object that is open, for a page: at most `rows` rows of each
 * table, with the number of the others as KEY_left_out, short names, and no streams without
 * operations. */
void gpu_json_members(struct json *json, const struct gpu_report *report, const struct why *why,
		      size_t rows);

/* The keys of the object "idle". */
extern const char *const gpu_json_idle_keys[GPU_IDLE_COUNT];

#endif
