/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock of rings: the processor's counter where it is invariant and the kernel itself relies on
 * it, otherwise CLOCK_MONOTONIC. Counts become nanoseconds later, by pairs of both that the
 * collector takes all the time. So a rate that the kernel adjusts (NTP) is followed.
 */
#ifndef WAFFLE_USDT_RING_TICKS_H
#define WAFFLE_USDT_RING_TICKS_H

#include <stdbool.h>
#include <stdint.h>

#include "util/clock.h"

enum ticks_kind {
	TICKS_NONE,    /* of a ring that its thread has to leave (rings.h) */
	TICKS_NS,      /* CLOCK_MONOTONIC in ns */
	TICKS_COUNTER, /* rdtsc or cntvct_el0 */
};

/*
 * prctl(PR_SET_TSC) makes the counter raise SIGSEGV in a thread and in those that it creates. The
 * vDSO reads the counter too, so there the clock is read by a system call.
 */
bool ticks_is_forbidden(void);
/* Asks whether it is forbidden in this thread, for all that follow: before anything is armed. */
void ticks_look(void);
/* What ticks_look() found. */
bool ticks_was_forbidden(void);
/* CLOCK_MONOTONIC, also where the counter is forbidden. */
uint64_t ticks_ns(void);

/* The best kind on this machine and in this process. Without /sys it is TICKS_NS. */
enum ticks_kind ticks_choose(void);

static inline uint64_t ticks_counter(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	uint64_t count;

	__asm__ __volatile__("mrs %0, cntvct_el0" : "=r"(count));
	return count;
#endif
}

static inline uint64_t ticks_now(uint32_t kind)
{
	return __builtin_expect(kind == TICKS_COUNTER, 1) ? ticks_counter() : ticks_ns();
}

struct ticks_pair {
	uint64_t ticks, ns;
};

/* Both clocks at one time. Of some attempts the tightest is taken, so that an interrupt between the
 * two does not matter. */
struct ticks_pair ticks_pair_take(uint32_t kind);

#define TICKS_PAIRS 64

/* Pairs, oldest first: the latest ones, and fewer and fewer of the time before them.
 * Zero-initialised it is empty. */
struct ticks_map {
	struct ticks_pair pairs[TICKS_PAIRS];
	unsigned count;
};

/* Adds a pair. One that is not later than the last one is ignored. */
void ticks_map_add(struct ticks_map *map, struct ticks_pair pair);
/*
 * Converts by the line between the two pairs around `ticks`, or by the nearest line. Needs a pair.
 * The result never goes back while ticks go forward.
 *
 * Between two pairs that are L apart, the error is that of the pairs, some tens of ns, and L / 4
 * for each change of the clock's rate: 0.5 us if NTP changes it by 100 ppm within 20 ms.
 */
uint64_t ticks_map_ns(const struct ticks_map *map, uint64_t ticks);

#endif
