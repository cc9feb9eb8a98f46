// SPDX-License-Identifier: Apache-2.0
#include "usdt/record/clock_pairs.h"

#include <string.h>

/* Index of the first pair whose own time is not before `own`. */
static uint32_t pair_from(const struct clock_pairs *pairs, uint64_t own)
{
	uint32_t low = 0, high = pairs->count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (pairs->pairs[middle].own < own)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void clock_pairs_add(struct clock_pairs *pairs, struct clock_pair pair)
{
	uint32_t at = pair_from(pairs, pair.own);

	if (at < pairs->count && pairs->pairs[at].own == pair.own) {
		pairs->pairs[at] = pair;
		return;
	}
	if (pairs->count == CLOCK_PAIRS) {
		if (!at)
			return; /* older than all of them */
		memmove(pairs->pairs, pairs->pairs + 1, (CLOCK_PAIRS - 1) * sizeof(pair));
		pairs->count--;
		at--;
	}
	memmove(pairs->pairs + at + 1, pairs->pairs + at, (pairs->count - at) * sizeof(pair));
	pairs->pairs[at] = pair;
	pairs->count++;
}

static uint64_t bounded(__int128 ns)
{
	return ns < 0 ? 0 : ns > INT64_MAX ? INT64_MAX : (uint64_t)ns;
}

uint64_t clock_pairs_ns(const struct clock_pairs *pairs, uint64_t own)
{
	/* Another thread may change the pairs meanwhile (clock_latch_ns()), so the index is checked
	 * and not trusted. */
	uint32_t count = __atomic_load_n(&pairs->count, __ATOMIC_RELAXED), at;
	struct clock_pair a, b;

	if (!count || count > CLOCK_PAIRS)
		return bounded(own);
	if (count == 1)
		return bounded((__int128)own - pairs->pairs[0].own + pairs->pairs[0].ns);
	at = pair_from(pairs, own);
	at = at < 1 ? 1 : at >= count ? count - 1 : at;
	a = pairs->pairs[at - 1];
	b = pairs->pairs[at];
	if (a.own >= b.own)
		return bounded(own);
	return bounded((__int128)a.ns + ((__int128)own - a.own) * ((__int128)b.ns - a.ns) /
						((__int128)b.own - a.own));
}

void clock_latch_add(struct clock_latch *latch, struct clock_pair pair)
{
	/* Readers go to copy 1 while copy 0 changes, and then the other way round. */
	__atomic_add_fetch(&latch->version, 1, __ATOMIC_SEQ_CST);
	clock_pairs_add(&latch->copies[0], pair);
	__atomic_add_fetch(&latch->version, 1, __ATOMIC_SEQ_CST);
	clock_pairs_add(&latch->copies[1], pair);
}

uint64_t clock_latch_ns(const struct clock_latch *latch, uint64_t own)
{
	for (;;) {
		uint32_t version = __atomic_load_n(&latch->version, __ATOMIC_ACQUIRE);
		uint64_t ns = clock_pairs_ns(&latch->copies[version & 1], own);

		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(&latch->version, __ATOMIC_RELAXED) == version)
			return ns;
	}
}
