/* SPDX-License-Identifier: Apache-2.0 */
/* Texts for people that the text and the page of what GPUs did have in common. */
#ifndef WAFFLE_RENDER_GPU_TEXTS_H
#define WAFFLE_RENDER_GPU_TEXTS_H

#include "analyze/gpu/gpu_report.h"

#define GPU_TEXT_NO_SCHED                                                                          \
	"what threads did while nothing was launched is unknown: the scheduler was not recorded"
#define GPU_TEXT_CLOCK "GPU times may be off by %s, and by CUPTI's own error, which is unknown"

extern const char *const gpu_idle_texts[GPU_IDLE_COUNT];
/* What stands before the name of a part of the critical path. */
extern const char *const gpu_piece_texts[GPU_PIECE_KIND_COUNT];

/* Writes what is missing or doubtful, such as "2 operations were dropped by CUPTI". Returns the
 * number of texts. */
#define GPU_PROBLEMS 8
#define GPU_PROBLEM_TEXT 128
size_t gpu_problems(const struct gpu_timeline *timeline,
		    char texts[GPU_PROBLEMS][GPU_PROBLEM_TEXT]);

/* The largest error of the recorders' clocks; 0: none is known. */
uint64_t gpu_clock_error_max(const struct gpu_timeline *timeline);

#endif
