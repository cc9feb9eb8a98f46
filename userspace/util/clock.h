/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WAFFLE_UTIL_CLOCK_H
#define WAFFLE_UTIL_CLOCK_H

#include <stdint.h>
#include <time.h>

/* A clock of clock_gettime() in ns. */
static inline uint64_t clock_ns(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static inline uint64_t clock_monotonic_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* The time that is so much later; UINT64_MAX has no end and stays. */
static inline uint64_t clock_after(uint64_t ts, uint64_t ns)
{
	return ns > UINT64_MAX - ts ? UINT64_MAX : ts + ns;
}

#endif
