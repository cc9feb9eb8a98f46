/* SPDX-License-Identifier: Apache-2.0 */
/* Typical spans, to be shown beside slow ones. */
#ifndef WAFFLE_ANALYZE_WHY_WHY_MEDIAN_INTERNAL_H
#define WAFFLE_ANALYZE_WHY_WHY_MEDIAN_INTERNAL_H

#include "analyze/why/why_types.h"

struct why_median {
	uint32_t span; /* its index */
	uint64_t of;   /* the number of whole spans of its name */
};

struct why_medians {
	VEC(struct why_median) found; /* the caller frees it with vec_free() */
};

/* Finds the median by duration of the whole spans of each name that the instances have, in the
 * order of these names. Spans that are not selected count: slow ones may have been selected. A name
 * without such spans has none. */
void why_medians_find(struct why_medians *medians, const struct why *why);

#endif
