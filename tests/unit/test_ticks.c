// SPDX-License-Identifier: Apache-2.0
/* Conversion of the processor's counter to CLOCK_MONOTONIC, from pairs of both. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "usdt/ring/ticks.h"
#include "util/clock.h"

static struct ticks_map map_of(const struct ticks_pair *pairs, unsigned count)
{
	struct ticks_map map = {0};

	for (unsigned i = 0; i < count; i++)
		ticks_map_add(&map, pairs[i]);
	return map;
}

static void test_times_lie_on_the_lines_between_the_pairs(void **state)
{
	/* 3 ticks a ns, then 2, then 4. */
	static const struct ticks_pair pairs[] = {
		{1000, 5000000}, {3001000, 6000000}, {5001000, 7000000}, {9001000, 8000000}};
	struct ticks_map map = map_of(pairs, 4);

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(ticks_map_ns(&map, pairs[i].ticks), pairs[i].ns);
	assert_int_equal(ticks_map_ns(&map, 1501000), 5500000);
	assert_int_equal(ticks_map_ns(&map, 4001000), 6500000);
	assert_int_equal(ticks_map_ns(&map, 6001000), 7250000);
	/* The first and the last line go on. */
	assert_int_equal(ticks_map_ns(&map, 700), 4999900);
	assert_int_equal(ticks_map_ns(&map, 9005000), 8001000);
}

static void test_large_counts_do_not_overflow(void **state)
{
	static const struct ticks_pair pairs[] = {
		{1ull << 62, 1ull << 60}, {(1ull << 62) + 30000000, (1ull << 60) + 10000000}};
	struct ticks_map map = map_of(pairs, 2);

	(void)state;
	assert_int_equal(ticks_map_ns(&map, (1ull << 62) + 3 * 86400000000000ull),
			 (1ull << 60) + 86400000000000ull);
	assert_int_equal(ticks_map_ns(&map, 0), 0); /* not negative */
}

static void test_time_never_goes_back_and_old_pairs_are_thinned(void **state)
{
	struct ticks_map map = {0};
	struct ticks_pair pair = {1000000, 1000000};
	uint64_t before = 0, ticks = 1000000, first = 0;

	(void)state;
	srandom(16);
	for (unsigned i = 0; i < 1000; i++) {
		/* A rate that is adjusted, and pairs that are some ns off. */
		pair.ticks += 3000000 + (uint64_t)random() % 3000;
		pair.ns += 1000000 + (uint64_t)random() % 1000;
		ticks_map_add(&map, pair);
		first = i ? first : pair.ticks;
		ticks_map_add(&map, (struct ticks_pair){pair.ticks, pair.ns + 5}); /* ignored */
		for (; map.count > 1 && ticks <= pair.ticks; ticks += 777) {
			uint64_t ns = ticks_map_ns(&map, ticks);

			assert_true(ns >= before);
			before = ns;
		}
	}
	assert_in_range(map.count, TICKS_PAIRS / 2, TICKS_PAIRS);
	assert_int_equal(map.pairs[0].ticks, first);
}

/* ---- a clock that is disciplined ---- */

/* A counter of 2.1 GHz, and CLOCK_MONOTONIC, which runs at changing rates. */
struct simulated {
	double ticks, ns; /* of now */
	double rate;      /* ns of the clock for a ns of the counter */
	double change;    /* ticks until the rate changes */
};

#define TICKS_A_NS 2.1

static double random_between(double from, double to)
{
	return from + (to - from) * ((double)random() / (double)RAND_MAX);
}

static void simulated_advance(struct simulated *clock, double ticks)
{
	while (ticks > 0) {
		double part = ticks < clock->change ? ticks : clock->change;

		clock->ticks += part;
		clock->ns += part / TICKS_A_NS * clock->rate;
		clock->change -= part;
		ticks -= part;
		if (clock->change > 0)
			continue;
		/* NTP corrects it about once a second, by up to 100 ppm at once. The counter's own
		 * rate is 40 ppm off. */
		clock->rate = 1 + 40e-6 + random_between(-50e-6, 50e-6);
		clock->change = random_between(0.2e9, 2e9) * TICKS_A_NS;
	}
}

static struct ticks_pair simulated_pair(const struct simulated *clock)
{
	return (struct ticks_pair){.ticks = (uint64_t)clock->ticks,
				   .ns = (uint64_t)(clock->ns + random_between(-50, 50))};
}

#define SIMULATED_ROUNDS 40000 /* ten minutes */
#define SIMULATED_RECORDS 16

static void test_error_is_below_a_microsecond_for_ten_minutes_of_a_disciplined_clock(void **state)
{
	struct simulated clock = {.ticks = 1e12, .ns = 5e11, .rate = 1, .change = 1e9};
	struct ticks_map map = {0};
	double worst = 0;

	(void)state;
	srandom(17);
	ticks_map_add(&map, simulated_pair(&clock));
	for (unsigned round = 0; round < SIMULATED_ROUNDS; round++) {
		struct simulated records[SIMULATED_RECORDS];
		/* A round of the collector: it converts what was written since the last one. */
		double length = random_between(10e6, 20e6) * TICKS_A_NS;

		for (unsigned i = 0; i < SIMULATED_RECORDS; i++) {
			simulated_advance(&clock, length / SIMULATED_RECORDS);
			records[i] = clock;
		}
		ticks_map_add(&map, simulated_pair(&clock));
		for (unsigned i = 0; i < SIMULATED_RECORDS; i++) {
			double ns = (double)ticks_map_ns(&map, (uint64_t)records[i].ticks);
			double error = ns > records[i].ns ? ns - records[i].ns : records[i].ns - ns;

			worst = error > worst ? error : worst;
		}
	}
	print_message("the greatest error was %.0f ns\n", worst);
	assert_true(worst < 1000);
	assert_true(clock.ns > 6e11 + 5e11 - 1e9);
}

/* ---- this machine ---- */

#define SAMPLES 20

struct sample {
	uint64_t before, ticks, after;
};

/* How far the conversion is outside of the clock's own times before and after. */
static uint64_t sample_error(const struct ticks_map *map, const struct sample *sample)
{
	uint64_t ns = ticks_map_ns(map, sample->ticks);

	if (ns < sample->before)
		return sample->before - ns;
	return ns > sample->after ? ns - sample->after : 0;
}

/* CLOCK_SECONDS says for how long; `make soak-clock` runs it for ten minutes. */
static void test_counter_of_this_machine_is_converted_to_within_a_microsecond(void **state)
{
	const char *seconds = getenv("CLOCK_SECONDS");
	uint64_t end = clock_monotonic_ns() + (uint64_t)((seconds ? atof(seconds) : 0.2) * 1e9);
	uint32_t kind = (uint32_t)ticks_choose();
	struct ticks_map map = {0};
	uint64_t worst = 0, count = 0;

	(void)state;
	ticks_map_add(&map, ticks_pair_take(kind));
	while (clock_monotonic_ns() < end) {
		struct sample samples[SAMPLES];

		for (unsigned i = 0; i < SAMPLES; i++) {
			nanosleep(&(struct timespec){.tv_nsec = 400000}, NULL);
			samples[i].before = clock_monotonic_ns();
			samples[i].ticks = ticks_now(kind);
			samples[i].after = clock_monotonic_ns();
		}
		ticks_map_add(&map, ticks_pair_take(kind));
		for (unsigned i = 0; i < SAMPLES; i++) {
			uint64_t error = sample_error(&map, &samples[i]);

			worst = error > worst ? error : worst;
			count++;
		}
	}
	print_message("the greatest error of %llu times was %llu ns\n", (unsigned long long)count,
		      (unsigned long long)worst);
	assert_true(worst < 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_times_lie_on_the_lines_between_the_pairs),
		cmocka_unit_test(test_large_counts_do_not_overflow),
		cmocka_unit_test(test_time_never_goes_back_and_old_pairs_are_thinned),
		cmocka_unit_test(
			test_error_is_below_a_microsecond_for_ten_minutes_of_a_disciplined_clock),
		cmocka_unit_test(test_counter_of_this_machine_is_converted_to_within_a_microsecond),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
