/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When to try again after a failure: after a second, then after twice as long each time, at most a
 * minute. Half of the time is random, so that many programs do not come back at once.
 */
#ifndef WAFFLE_EXPORT_PROCESS_BACKOFF_INTERNAL_H
#define WAFFLE_EXPORT_PROCESS_BACKOFF_INTERNAL_H

#include <stdint.h>

#define BACKOFF_FIRST_NS 1000000000ull
#define BACKOFF_MAX_NS 60000000000ull
/* What a server asks for is respected up to this. */
#define BACKOFF_ASKED_MAX_NS 3600000000000ull

struct backoff {
	uint32_t failures; /* since the last success */
	uint64_t random;   /* state of the random numbers; any value */
};

/* A failure: the time to wait before the next try. `asked_ns`: what the server asks to wait for at
 * least; 0: nothing. */
static inline uint64_t backoff_next(struct backoff *backoff, uint64_t asked_ns)
{
	uint64_t wait = BACKOFF_FIRST_NS;

	for (uint32_t i = 0; i < backoff->failures && wait < BACKOFF_MAX_NS; i++)
		wait *= 2;
	if (wait > BACKOFF_MAX_NS)
		wait = BACKOFF_MAX_NS;
	backoff->failures++;
	/* SplitMix64 (Steele, Lea, Flood 2014). */
	backoff->random += 0x9e3779b97f4a7c15ull;
	uint64_t x = backoff->random;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	x ^= x >> 31;
	wait = wait / 2 + x % (wait / 2 + 1);
	if (asked_ns > BACKOFF_ASKED_MAX_NS)
		asked_ns = BACKOFF_ASKED_MAX_NS;
	return wait > asked_ns ? wait : asked_ns;
}

static inline void backoff_reset(struct backoff *backoff)
{
	backoff->failures = 0;
}

#endif
