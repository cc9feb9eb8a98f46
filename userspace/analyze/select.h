/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the value of a given rank without sorting, for percentiles. */
#ifndef WAFFLE_ANALYZE_SELECT_H
#define WAFFLE_ANALYZE_SELECT_H

#include <stddef.h>
#include <stdint.h>

/* The value that would be at `rank` (from 0, less than count) in sorted order. Reorders the values.
 * Takes linear time, except with negligible probability. */
uint64_t select_rank(uint64_t *values, size_t count, size_t rank);

/* Index (from 0) of the nearest rank of a percentile (1 … 100) among `count` values; count is not
 * 0. */
size_t select_percentile_rank(size_t count, unsigned percent);

#endif
