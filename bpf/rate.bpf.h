/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* rate(): limits what passes a filter, over all sites and CPUs. */
#ifndef WAFFLE_RATE_BPF_H
#define WAFFLE_RATE_BPF_H

#include "shared.h"

extern __u64 rate_state; /* window << 24 | used in it */

/* The first config.rate_count hits of each window pass. A hit whose time is just before the window
 * that another CPU has begun counts in that one. */
static __always_inline bool rate_take(__u64 now)
{
	__u64 window, state, next;

	if (!config.rate_unit_ns)
		return true;
	window = now / config.rate_unit_ns & (~0ull >> 24);
	for (int i = 0; i < 64; i++) {
		state = *(volatile __u64 *)&rate_state;
		next = state + 1;
		if (state >> 24 < window)
			next = window << 24 | 1;
		else if ((state & 0xffffff) >= config.rate_count)
			return false;
		if (__sync_val_compare_and_swap(&rate_state, state, next) == state)
			return true;
	}
	return false; /* 64 others were faster */
}

#endif
