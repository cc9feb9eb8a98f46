// SPDX-License-Identifier: Apache-2.0
#include "usdt/gpu/gpu_clock.h"

#include "usdt/record/clock_pairs.h"
#include "util/clock.h"

/* The first reading takes some 100 us. */
#define READINGS_FIRST 100
#define READINGS 10
/* Clocks that are closer than that are one clock. */
#define SAME_NS 1000000

static struct {
	bool is_monotonic;
	uint64_t error_ns;
	struct clock_latch pairs;
} state;

static uint64_t monotonic_now(void)
{
	return clock_monotonic_ns();
}

struct clock_reading {
	uint64_t own, monotonic, realtime;
	uint64_t width;
};

static int read_once(const struct cupti *cupti, struct clock_reading *reading)
{
	uint64_t before = clock_monotonic_ns(), after;
	int result = cupti->call.GetTimestamp(&reading->own);

	after = clock_monotonic_ns();
	reading->realtime = clock_ns(CLOCK_REALTIME);
	reading->width = after - before;
	reading->monotonic = before + reading->width / 2;
	return result;
}

/* The reading that took the least time. */
static int read_best(const struct cupti *cupti, unsigned count, struct clock_reading *best)
{
	*best = (struct clock_reading){.width = UINT64_MAX};
	for (unsigned i = 0; i < count; i++) {
		struct clock_reading reading;
		int result = read_once(cupti, &reading);

		if (result)
			return result;
		if (reading.width < best->width)
			*best = reading;
	}
	return 0;
}

static bool is_near(uint64_t one, uint64_t other)
{
	return (one > other ? one - other : other - one) < SAME_NS;
}

int gpu_clock_begin(const struct cupti *cupti)
{
	struct clock_reading best;
	int result = read_best(cupti, READINGS_FIRST, &best);

	state.pairs = (struct clock_latch){0};
	if (result)
		return result;
	if (is_near(best.own, best.realtime) &&
	    cupti->call.ActivityRegisterTimestampCallback(monotonic_now) == CUPTI_OK)
		result = read_best(cupti, READINGS_FIRST, &best);
	state.is_monotonic = is_near(best.own, best.monotonic);
	state.error_ns = best.width / 2;
	if (!result && !state.is_monotonic)
		clock_latch_add(&state.pairs, (struct clock_pair){best.own, best.monotonic});
	return result;
}

void gpu_clock_pair(const struct cupti *cupti)
{
	struct clock_reading best;

	if (read_best(cupti, READINGS, &best))
		return;
	/* Another tool may have registered its clock meanwhile. */
	if (state.is_monotonic && !is_near(best.own, best.monotonic))
		state.is_monotonic = false;
	state.error_ns = best.width / 2;
	if (!state.is_monotonic)
		clock_latch_add(&state.pairs, (struct clock_pair){best.own, best.monotonic});
}

uint64_t gpu_clock_ns(uint64_t own)
{
	return !own || state.is_monotonic ? own : clock_latch_ns(&state.pairs, own);
}

uint64_t gpu_clock_error_ns(void)
{
	return state.error_ns;
}
