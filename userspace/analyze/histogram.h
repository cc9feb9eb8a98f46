/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Durations counted in bins that grow with them: 0 … 3 ns one each, then four for each doubling. A
 * bin's ends differ by a quarter at most.
 */
#ifndef WAFFLE_ANALYZE_HISTOGRAM_H
#define WAFFLE_ANALYZE_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_BINS 252

unsigned histogram_bin(uint64_t ns);
/* The shortest duration of a bin. */
uint64_t histogram_bin_from(unsigned bin);

#endif
