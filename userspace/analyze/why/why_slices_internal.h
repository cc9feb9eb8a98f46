/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of why_slices(). */
#ifndef WAFFLE_ANALYZE_WHY_WHY_SLICES_INTERNAL_H
#define WAFFLE_ANALYZE_WHY_WHY_SLICES_INTERNAL_H

#include "analyze/why/why_each_internal.h"

/* Explains all slices, with `walk` and with those of more threads. `walk` is ready for the first
 * slice. */
int why_slices_explain(struct why_walk *walk, const struct why_slice_fns *fns, void *arg);

#endif
