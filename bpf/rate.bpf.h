/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* rate(): limits what passes a filter, over all sites and CPUs. */
#ifndef WAFFLE_RATE_BPF_H
#define WAFFLE_RATE_BPF_H

#include "rate.h"
#include "shared.h"

extern __u64 rate_windows[WAFFLE_RATE_WINDOWS]; /* the tracer takes from them, too */

static __always_inline bool rate_take(__u64 now)
{
	return !config.rate_unit_ns ||
	       waffle_rate_take(rate_windows, config.rate_unit_ns, config.rate_count, now);
}

#endif
