/* SPDX-License-Identifier: Apache-2.0 */
/* Private to analyze/gpu: the parts of a report. */
#ifndef WAFFLE_ANALYZE_GPU_GPU_REPORT_INTERNAL_H
#define WAFFLE_ANALYZE_GPU_GPU_REPORT_INTERNAL_H

#include "analyze/gpu/gpu_report.h"

/* ---- gpu_busy.c: busy time, concurrency, communication, idle time ---- */

void gpu_busy_report(struct gpu_report *report, uint32_t device, uint32_t stretches);

/* ---- gpu_states.c: states and queues of streams, launch delays ---- */

void gpu_states_report(struct gpu_report *report);

/* ---- gpu_sums.c: operations by name and span ---- */

void gpu_sums_report(struct gpu_report *report);

/* ---- gpu_memory.c ---- */

void gpu_memory_report(struct gpu_report *report);

/* ---- gpu_path.c ---- */

/* `pieces`: keep them. */
void gpu_paths_find(struct gpu_report *report, bool pieces);

/* ---- gpu_path_sums.c: the time of a path by kind, name and span ---- */

struct gpu_path_rows;
struct gpu_path_rows *gpu_path_rows_new(const struct gpu_timeline *timeline);
void gpu_path_rows_add(struct gpu_path_rows *rows, const struct gpu_piece *piece);
/* Frees the rows. */
void gpu_path_rows_finish(struct gpu_path_rows *rows, gpu_path_sums *sums);

#endif
