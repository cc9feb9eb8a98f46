/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A clock that a program declares by pairs of its own time and CLOCK_MONOTONIC (waffle_track.h).
 *
 * Readers take no lock and never wait, since one may be a signal handler that has interrupted the
 * writer: there are two copies of the pairs, and the writer changes the one that no new reader
 * uses. A reader whose copy has changed meanwhile reads again.
 */
#ifndef WAFFLE_USDT_RECORD_CLOCK_PAIRS_H
#define WAFFLE_USDT_RECORD_CLOCK_PAIRS_H

#include <stdint.h>

#define CLOCK_PAIRS 256

struct clock_pairs {
	uint32_t count;
	struct clock_pair {
		uint64_t own, ns;
	} pairs[CLOCK_PAIRS]; /* by `own` */
};

/* Adds a pair, or replaces the one with that own time. If there is no room, the oldest goes. */
void clock_pairs_add(struct clock_pairs *pairs, struct clock_pair pair);
/* As waffle_clock_pair() says. The result is at least 0 and at most INT64_MAX. */
uint64_t clock_pairs_ns(const struct clock_pairs *pairs, uint64_t own);

/* Zero-initialised it has no pairs. */
struct clock_latch {
	uint32_t version; /* its lowest bit says which copy is read */
	struct clock_pairs copies[2];
};

/* Only one thread at a time may add. */
void clock_latch_add(struct clock_latch *latch, struct clock_pair pair);
uint64_t clock_latch_ns(const struct clock_latch *latch, uint64_t own);

#endif
