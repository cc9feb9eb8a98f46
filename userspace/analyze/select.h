/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WAFFLE_ANALYZE_SELECT_H
#define WAFFLE_ANALYZE_SELECT_H

#include <stddef.h>
#include <stdint.h>

/* The value that would stand at `rank` (from 0, less than count) if the values were sorted. Moves
 * them about. Linear in time but for chances of no account. */
uint64_t select_rank(uint64_t *values, size_t count, size_t rank);

/* Nearest rank of a percentile (1 … 100) among `count` values, from 0; count is not 0. */
size_t select_percentile_rank(size_t count, unsigned percent);

#endif
