/* SPDX-License-Identifier: Apache-2.0 */
/* Bins for durations. Durations of 0 to 3 ns have a bin each; above that there are four bins per
 * power of two. So a bin's width is at most a quarter of its lower bound. */
#ifndef WAFFLE_ANALYZE_HISTOGRAM_H
#define WAFFLE_ANALYZE_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_BINS 252

unsigned histogram_bin(uint64_t ns);
/* The shortest duration in a bin. */
uint64_t histogram_bin_from(unsigned bin);

#endif
