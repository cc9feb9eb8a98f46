/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * rate() of a filter: one limit for all that passes, in the kernel and in the tracer. The kernel
 * decides when a hit happens. The tracer decides about records of rings some milliseconds later,
 * when the next windows may have begun. So several windows have a count of their own:
 *
 *	rate_windows[window % WAFFLE_RATE_WINDOWS] = window << 24 | passed in it
 */
#ifndef WAFFLE_RATE_H
#define WAFFLE_RATE_H

#include "record.h"

#ifndef __VMLINUX_H__
#include <stdbool.h>
#endif

#define WAFFLE_RATE_WINDOWS 4096 /* a power of two: four seconds of the shortest window */

/* The first `count` of each window pass. False also if the window is too old to have a count. */
static inline __attribute__((always_inline)) bool
waffle_rate_take(__u64 windows[WAFFLE_RATE_WINDOWS], __u64 unit_ns, __u32 count, __u64 now)
{
	__u64 window = now / unit_ns & (~0ull >> 24);
	__u64 *at = &windows[window & (WAFFLE_RATE_WINDOWS - 1)], state, next;

	for (int i = 0; i < 64; i++) {
		state = *(volatile __u64 *)at;
		next = state + 1;
		if (state >> 24 < window)
			next = window << 24 | 1;
		else if (state >> 24 > window || (state & 0xffffff) >= count)
			return false;
		if (__sync_val_compare_and_swap(at, state, next) == state)
			return true;
	}
	return false; /* 64 others were faster */
}

#endif
