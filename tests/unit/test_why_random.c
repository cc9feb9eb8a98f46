// SPDX-License-Identifier: Apache-2.0
/* Explains random captures that no real program could have recorded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "why_turns.h"

static uint32_t random_below(uint64_t *seed, uint32_t limit)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((*seed >> 33) % limit);
}

/* Switches, wake-ups, spans and losses as they come, possible or not. */
static void add_anything(struct capture *capture, uint64_t ts, uint64_t *seed)
{
	static const int calls[] = {NR_READ, NR_NANOSLEEP, NR_WAIT4, NR_FUTEX, NR_NONE};
	static const uint16_t states[] = {0, 1, 2, 4};
	struct turn any = {
		.ts = ts,
		.cpu = (uint16_t)random_below(seed, 2),
		.prev = random_below(seed, 5) ? A + random_below(seed, 4) : 0,
		.next = random_below(seed, 5) ? A + random_below(seed, 4) : NEIGHBOUR,
		.state = states[random_below(seed, 4)],
		.syscall = calls[random_below(seed, 5)],
		.args = {0x1000, random_below(seed, 2) ? 128 : 137, random_below(seed, 3)},
		.waker = A + random_below(seed, 5),
		.flags = random_below(seed, 4) ? 0 : WAFFLE_SWITCH_WAKER_HARDIRQ,
	};

	if (random_below(seed, 3))
		any.wake_ts = ts - random_below(seed, 400);
	if (any.prev != any.next)
		turn(capture, any);
	if (!random_below(seed, 60))
		capture_loss(capture, ts, ts + 1, WAFFLE_SOURCE_SCHED, 1);
}

static void test_parts_sum_up_and_chains_never_leave_the_wait_whatever_was_recorded(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < 40; round++) {
		uint64_t seed = round, ids = 0x100;
		struct capture capture;
		struct why *why;

		begin(&capture);
		for (uint64_t ts = 2000; ts < 90000; ts += 1 + random_below(&seed, 300)) {
			add_anything(&capture, ts, &seed);
			if (!random_below(&seed, 8))
				capture_span(&capture, ts, A + random_below(&seed, 4), ids++);
			if (!random_below(&seed, 8))
				capture_end(&capture, ts, A + random_below(&seed, 4),
					    0x100 + random_below(&seed, 64));
		}
		why = ask(&capture, END_TS, &(struct why_query){0});
		assert_true(why->instances.len > 0);
		done(&capture, why);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_parts_sum_up_and_chains_never_leave_the_wait_whatever_was_recorded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
