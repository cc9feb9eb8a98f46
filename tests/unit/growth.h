/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that eight times as much of something takes about eight times as long, not 64 times. */
#ifndef WAFFLE_TESTS_UNIT_GROWTH_H
#define WAFFLE_TESTS_UNIT_GROWTH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#define TIMES 8
#define GROWTH_MAX (4 * TIMES) /* times as long: a quadratic algorithm takes twice this time */
#define SHORT_NS 3000000ull    /* less than that is not measured well */

static inline uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The CPU time of the part that `work` marks as measured. */
static inline void check_growth(uint64_t (*work)(uint32_t count), uint32_t count)
{
	uint64_t once = work(count), more = work(count * TIMES);

	if (more > GROWTH_MAX * (once > SHORT_NS ? once : SHORT_NS))
		fail_msg("%u take %.1f ms, %u take %.1f ms", count, (double)once / 1e6,
			 count * TIMES, (double)more / 1e6);
}

#endif
