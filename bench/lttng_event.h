/* SPDX-License-Identifier: Apache-2.0 */
/* The event of lttng.c, in the way in which LTTng-UST wants it. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER waffle_bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "lttng_event.h"

#if !defined(WAFFLE_BENCH_LTTNG_EVENT_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define WAFFLE_BENCH_LTTNG_EVENT_H

#include <lttng/tracepoint.h>

/* clang-format off */
LTTNG_UST_TRACEPOINT_EVENT(
	waffle_bench, event, LTTNG_UST_TP_ARGS(long, turn, long, turns),
	LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(long, turn, turn)
			    lttng_ust_field_integer(long, turns, turns)))
/* clang-format on */

#endif

#include <lttng/tracepoint-event.h>
