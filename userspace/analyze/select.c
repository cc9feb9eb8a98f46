// SPDX-License-Identifier: Apache-2.0
#include "analyze/select.h"

static uint64_t next_random(uint64_t *state)
{
	/* xorshift64 (Marsaglia 2003). With random pivots, no input is slow every time. */
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void swap(uint64_t *a, uint64_t *b)
{
	uint64_t held = *a;

	*a = *b;
	*b = held;
}

uint64_t select_rank(uint64_t *values, size_t count, size_t rank)
{
	uint64_t random = 0x9e3779b97f4a7c15ull ^ (uint64_t)(uintptr_t)values;
	size_t low = 0, high = count;

	while (high - low > 1) {
		uint64_t pivot = values[low + next_random(&random) % (high - low)];
		size_t less = low, more = high, at = low;

		/* Partitions into less than, equal to and greater than the pivot. */
		while (at < more) {
			if (values[at] < pivot)
				swap(&values[at++], &values[less++]);
			else if (values[at] > pivot)
				swap(&values[at], &values[--more]);
			else
				at++;
		}
		if (rank >= less && rank < more)
			return pivot;
		if (rank < less)
			high = less;
		else
			low = more;
	}
	return values[low];
}

size_t select_percentile_rank(size_t count, unsigned percent)
{
	size_t whole = count / 100 * percent, rest = count % 100 * percent;

	return whole + (rest + 99) / 100 - 1;
}
