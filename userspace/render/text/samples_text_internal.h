/* SPDX-License-Identifier: Apache-2.0 */
/* What code ran in the time of a cause, as samples show. */
#ifndef WAFFLE_RENDER_TEXT_SAMPLES_TEXT_INTERNAL_H
#define WAFFLE_RENDER_TEXT_SAMPLES_TEXT_INTERNAL_H

#include <stdio.h>

#include "analyze/why/lookup/why_samples.h"

/*
 * Prints a line such as "running: 70 % gemm_kernel, user; 20 % kernel, write() (58 samples)" after
 * `indent` spaces. Prints nothing with less than SAMPLE_COUNT_MIN samples.
 */
void samples_print(FILE *out, const struct sample_places *places, const struct sample_count *counts,
		   size_t len, int indent);

#endif
