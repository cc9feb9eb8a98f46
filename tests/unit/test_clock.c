// SPDX-License-Identifier: Apache-2.0
/* The alignment of clocks, against jobs whose true clocks are known. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "model/clock/clock_hosts_internal.h"
#include "model/clock/clock_lines_internal.h"

#define MS 1000000ll
#define SECOND 1000000000ll

/* ---- lines ---- */

static void test_bounds_of_one_time_make_an_interval(void **state)
{
	struct clock_lines lines = {0};
	int64_t low, high;

	(void)state;
	assert_true(clock_lines_cut(&lines, &(struct clock_bound){1000, 70, 1, true}));
	clock_lines_at(&lines, 1000, &low, &high);
	assert_int_equal(low, CLOCK_LOW_NONE);
	assert_in_range(high, 70, 71);
	assert_true(clock_lines_cut(&lines, &(struct clock_bound){1000, 20, 2, false}));
	assert_true(clock_lines_cut(&lines, &(struct clock_bound){1000, 10, 3, false}));
	clock_lines_at(&lines, 1000, &low, &high);
	assert_in_range(low, 19, 20);
	assert_in_range(high, 70, 71);
	/* A second later, the largest possible drift widens it. */
	clock_lines_at(&lines, 1000 + SECOND, &low, &high);
	assert_in_range(high, 70 + 1000000, 72 + 1000000);
	assert_true(low <= 20 - 1000000 && low >= 18 - 1000000);
}

static void test_two_times_bound_the_drift(void **state)
{
	struct clock_lines lines = {0};
	int64_t low, high;

	(void)state;
	for (int64_t ts = 0; ts <= 10 * SECOND; ts += 10 * SECOND) {
		int64_t truth = ts / 10000; /* 100 ppm */

		clock_lines_cut(&lines, &(struct clock_bound){ts, truth + 5, 1, true});
		clock_lines_cut(&lines, &(struct clock_bound){ts, truth - 5, 2, false});
	}
	clock_lines_at(&lines, 5 * SECOND, &low, &high);
	assert_in_range(low, 500000 - 7, 500000);
	assert_in_range(high, 500000, 500000 + 7);
	clock_lines_at(&lines, 20 * SECOND, &low, &high);
	assert_in_range(low, 2000000 - 17, 2000000);
	assert_in_range(high, 2000000, 2000000 + 17);
	assert_true(fabs(clock_lines_drift(&lines, 5 * SECOND, 500000) - 100e-6) < 2e-9);
}

static void test_contradicting_bounds_are_named(void **state)
{
	struct clock_lines lines = {0};

	(void)state;
	assert_true(clock_lines_cut(&lines, &(struct clock_bound){1000, 70, 11, true}));
	assert_true(clock_lines_cut(&lines, &(struct clock_bound){1000, 20, 12, false}));
	assert_true(clock_lines_cut(&lines, &(struct clock_bound){1000, 70, 13, false}));
	assert_false(clock_lines_cut(&lines, &(struct clock_bound){1000, 75, 14, false}));
	assert_int_equal(lines.conflict, 11);
}

static void test_times_without_room_are_ignored(void **state)
{
	struct clock_lines lines = {0};
	int64_t low, high;

	(void)state;
	clock_lines_cut(&lines, &(struct clock_bound){1000, 70, 1, true});
	assert_true(clock_lines_cut(&lines, &(struct clock_bound){INT64_MAX / 2, 0, 2, false}));
	assert_true(clock_lines_cut(&lines, &(struct clock_bound){1000, INT64_MAX / 4, 3, false}));
	clock_lines_at(&lines, 1000, &low, &high);
	assert_int_equal(low, CLOCK_LOW_NONE);
}

/* Times that no honest clocks have: far apart, the same, and almost the same. */
static int64_t hostile(uint64_t *seed, int64_t base)
{
	uint64_t random;

	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	random = *seed >> 20;
	switch (random % 5) {
	case 0:
		return base + (int64_t)(random / 5 % 3) - 1;
	case 1:
		return base + (int64_t)(random << 8) - (INT64_C(1) << 51);
	case 2:
		return base +
		       (random & 32 ? 1 : -1) * (CLOCK_SPAN_MAX - (int64_t)(random / 64 % 3));
	case 3:
		return base + (int64_t)(random / 5 % 1000);
	default:
		return base + (int64_t)(random >> (random / 5 % 40));
	}
}

static void check_lines(const struct clock_lines *lines, int64_t ts)
{
	int64_t low, high;

	for (uint32_t i = 0; i < lines->count; i++) {
		assert_true(isfinite(lines->corners[i].offset));
		assert_true(fabs(lines->corners[i].drift) <= CLOCK_DRIFT_MAX * 1.0001);
	}
	clock_lines_at(lines, ts, &low, &high);
	assert_true(low <= high);
	if (low != CLOCK_LOW_NONE && high != CLOCK_HIGH_NONE)
		assert_true(fabs(clock_lines_drift(lines, ts, low + (high - low) / 2)) <=
			    CLOCK_DRIFT_MAX);
}

static void test_hostile_bounds_make_no_impossible_line(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (unsigned i = 0; i < 300000; i++) {
		struct clock_lines lines = {0};
		int64_t ts[8], ns[8], base = (INT64_C(1) << 61) + i;

		for (unsigned k = 0; k < 1 + i % 8; k++) {
			unsigned same = k ? (unsigned)(seed >> 40) % k : 0;

			ts[k] = k && seed >> 60 < 5 ? ts[same] : hostile(&seed, base);
			ns[k] = k && seed >> 60 < 5 ? ns[same] + (int64_t)(seed >> 50) % 3 - 1
						    : hostile(&seed, -base);
			clock_lines_cut(&lines,
					&(struct clock_bound){ts[k], ns[k], k, seed >> 33 & 1});
		}
		check_lines(&lines, hostile(&seed, base));
	}
}

/* ---- jobs with known clocks ---- */

#define HOSTS_MAX 8

struct job {
	uint64_t seed;
	uint32_t hosts;
	int64_t offset[HOSTS_MAX]; /* a host's clock shows offset + rate * true time */
	double rate[HOSTS_MAX];
	int64_t from, to, transfer, jitter; /* ns of true time */
	unsigned collectives;
	int64_t shortest; /* from the last begin to the first end, over all collectives */
	struct clock_hosts *net;
};

static uint32_t below(struct job *job, uint32_t limit)
{
	job->seed = job->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((job->seed >> 33) % limit);
}

/* A host's clock at a true time. A double is precise enough for the nanoseconds. */
static int64_t clock_of(const struct job *job, uint32_t host, int64_t ts)
{
	return job->offset[host] + (int64_t)llround(job->rate[host] * (double)ts);
}

static int64_t true_of(const struct job *job, uint32_t host, int64_t clock)
{
	return (int64_t)llround((double)(clock - job->offset[host]) / job->rate[host]);
}

static void job_begin(struct job *job, uint64_t seed)
{
	*job = (struct job){.seed = seed * 977 + 5, .shortest = INT64_MAX};
	job->hosts = 2 + below(job, HOSTS_MAX - 1);
	job->from = (1 + below(job, 20)) * SECOND;
	job->to = job->from + (1 + below(job, 300)) * SECOND;
	job->transfer = 5000 + below(job, 100000);
	job->jitter = 1 + job->transfer / 10;
	job->collectives = 200 + below(job, 400);
	for (uint32_t i = 0; i < job->hosts; i++) {
		/* Booted up to a day apart, with a crystal and a correction each. */
		job->offset[i] = (int64_t)below(job, 86400) * SECOND + below(job, 1000000000);
		job->rate[i] = 1 + ((double)below(job, 1000) - 500) * 1e-6;
	}
	job->net = clock_hosts_new(job->hosts);
	assert_non_null(job->net);
}

/* One collective of the hosts in a mask: each arrives some time before the last one, and ends a
 * transfer after it. */
static void job_collective(struct job *job, int64_t ts, uint32_t mask, uint32_t tag)
{
	int64_t begin[HOSTS_MAX], end[HOSTS_MAX], last = INT64_MIN, first_end = INT64_MAX;

	for (uint32_t i = 0; i < job->hosts; i++) {
		begin[i] = ts - below(job, (uint32_t)(20 * MS));
		if (mask >> i & 1 && begin[i] > last)
			last = begin[i];
	}
	for (uint32_t i = 0; i < job->hosts; i++) {
		end[i] = last + job->transfer;
		if (!below(job, 2))
			end[i] += below(job, (uint32_t)job->jitter);
		if (mask >> i & 1 && end[i] < first_end)
			first_end = end[i];
	}
	if (first_end - last < job->shortest)
		job->shortest = first_end - last;
	for (uint32_t i = 0; i < job->hosts; i++)
		for (uint32_t j = 0; j < job->hosts; j++)
			if (mask >> i & 1 && mask >> j & 1)
				clock_hosts_add(job->net,
						&(struct clock_before){
							i, j, (uint64_t)clock_of(job, i, begin[i]),
							(uint64_t)clock_of(job, j, end[j]), tag});
}

static void job_windows(const struct job *job, struct clock_window *windows)
{
	for (uint32_t i = 0; i < job->hosts; i++)
		windows[i] = (struct clock_window){(uint64_t)clock_of(job, i, job->from),
						   (uint64_t)clock_of(job, i, job->to)};
}

/* The truth is inside the error at any time of the job. Returns the widest interval where it is
 * narrowest. */
static int64_t job_check(struct job *job)
{
	struct clock_estimate estimates[HOSTS_MAX];
	struct clock_window windows[HOSTS_MAX];
	struct clock_conflict conflict;
	int64_t widest = 0;

	job_windows(job, windows);
	assert_true(clock_hosts_solve(job->net, 0, windows, estimates, &conflict));
	for (uint32_t i = 0; i < job->hosts; i++) {
		const struct clock_estimate *own = &estimates[i];
		struct store_clock clock;

		assert_true(own->known);
		clock_estimate_store(own, 1, &clock);
		for (unsigned k = 0; k <= 100; k++) {
			int64_t when = job->from + (job->to - job->from) / 100 * k;
			uint64_t ts = (uint64_t)clock_of(job, i, when);
			int64_t truth = clock_of(job, 0, true_of(job, i, (int64_t)ts));
			uint64_t corrected = store_clock_apply(&clock, ts);
			int64_t error = truth - (int64_t)corrected;

			/* The test's own clocks are rounded, too. */
			assert_true((uint64_t)llabs(error) <=
				    store_clock_error_at(&clock, corrected) + 3);
		}
		if (own->high_ns - own->low_ns > widest)
			widest = own->high_ns - own->low_ns;
	}
	clock_hosts_free(job->net);
	return widest;
}

/* The clocks of the test run up to 500 ppm fast or slow, which their transfers do too. To this
 * comes the rounding of four times, and of the interval outwards. */
static int64_t twice_shortest(const struct job *job)
{
	return 2 * job->shortest + job->shortest / 500 + 8;
}

static void test_truth_is_inside_in_a_thousand_random_jobs(void **state)
{
	double widest = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 1000; seed++) {
		struct job job;
		int64_t width;

		job_begin(&job, seed);
		for (uint32_t k = 0; k < job.collectives; k++)
			job_collective(&job,
				       job.from + (job.to - job.from) / job.collectives * (k + 1),
				       UINT32_MAX, k);
		width = job_check(&job);
		assert_true(width <= twice_shortest(&job));
		widest = fmax(widest, (double)width / (double)job.shortest);
	}
	print_message("widest interval: %.4f of the shortest transfer\n", widest);
}

/* A message: the sender begins before the receiver ends. */
static void job_message(struct job *job, int64_t ts, uint32_t from, uint32_t to)
{
	struct clock_before before = {
		from, to, (uint64_t)clock_of(job, from, ts),
		(uint64_t)clock_of(job, to, ts + job->transfer + below(job, 1000)), 1};

	clock_hosts_add(job->net, &before);
}

static void test_sub_communicators_and_rings_of_messages_bound_all_hosts(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 200; seed++) {
		struct job job;

		job_begin(&job, seed);
		for (uint32_t k = 0; k < job.collectives; k++) {
			int64_t ts = job.from + (job.to - job.from) / job.collectives * (k + 1);
			uint32_t host = below(&job, job.hosts);

			if (seed % 2)
				job_collective(&job, ts, 1u << host | 1u << (host + 1) % job.hosts,
					       k);
			else
				job_message(&job, ts, host, (host + 1) % job.hosts);
		}
		job_check(&job);
	}
}

static void test_messages_in_one_direction_leave_a_clock_unknown(void **state)
{
	struct clock_window windows[2] = {{0, 10 * SECOND}, {0, 10 * SECOND}};
	struct clock_hosts *hosts = clock_hosts_new(2);
	struct clock_estimate estimates[2];
	struct clock_conflict conflict;

	(void)state;
	clock_hosts_add(hosts, &(struct clock_before){0, 1, 1000, 3000, 1});
	clock_hosts_add(hosts, &(struct clock_before){0, 1, 5000, 9000, 2});
	assert_true(clock_hosts_solve(hosts, 0, windows, estimates, &conflict));
	assert_true(estimates[0].known);
	assert_int_equal(estimates[0].knot_error_ns[3], 0);
	assert_false(estimates[1].known);
	clock_hosts_free(hosts);
}

static void test_contradiction_names_hosts_and_facts(void **state)
{
	struct clock_window windows[3] = {{0, SECOND}, {0, SECOND}, {0, SECOND}};
	struct clock_hosts *hosts = clock_hosts_new(3);
	struct clock_estimate estimates[3];
	struct clock_conflict conflict;

	(void)state;
	clock_hosts_add(hosts, &(struct clock_before){0, 1, 1000, 1500, 6});
	clock_hosts_add(hosts, &(struct clock_before){2, 1, 2000, 2500, 7});
	clock_hosts_add(hosts, &(struct clock_before){1, 2, 9000, 8000, 8});
	assert_false(clock_hosts_solve(hosts, 0, windows, estimates, &conflict));
	assert_int_equal(conflict.first, 1);
	assert_int_equal(conflict.second, 2);
	assert_int_equal(conflict.tag, 8);
	assert_int_equal(conflict.other_tag, 7);
	clock_hosts_free(hosts);
}

static void test_contradiction_around_three_hosts_is_found(void **state)
{
	struct clock_window windows[3] = {{0, SECOND}, {0, SECOND}, {0, SECOND}};
	struct clock_hosts *hosts = clock_hosts_new(3);
	struct clock_estimate estimates[3];
	struct clock_conflict conflict;

	(void)state;
	/* The clocks of each pair agree within 200 ns, except that 2 is 10 us ahead of 1. */
	for (uint32_t i = 0; i < 3; i++)
		for (uint32_t j = 0; j < 3; j++) {
			uint64_t at = i == 1 && j == 2 ? 11000 : i == 2 && j == 1 ? 11000 : 1000;
			uint64_t behind = i == 2 && j == 1 ? 10000 : 0;
			uint64_t ahead = i == 1 && j == 2 ? 10000 : 0;

			clock_hosts_add(hosts,
					&(struct clock_before){i, j, at, at + 200 + ahead - behind,
							       10 * i + j});
		}
	assert_false(clock_hosts_solve(hosts, 0, windows, estimates, &conflict));
	assert_true(conflict.second > 0);
	clock_hosts_free(hosts);
}

static void test_facts_that_say_nothing_are_ignored(void **state)
{
	struct clock_window window = {0, SECOND};
	struct clock_hosts *hosts = clock_hosts_new(1);
	struct clock_estimate estimate;
	struct clock_conflict conflict;

	(void)state;
	clock_hosts_add(hosts, &(struct clock_before){0, 0, 5, 4, 1});
	clock_hosts_add(hosts, &(struct clock_before){0, 7, 5, 4, 1});
	clock_hosts_add(hosts, &(struct clock_before){0, 0, UINT64_MAX, 4, 1});
	assert_true(clock_hosts_solve(hosts, 0, &window, &estimate, &conflict));
	clock_hosts_free(hosts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bounds_of_one_time_make_an_interval),
		cmocka_unit_test(test_two_times_bound_the_drift),
		cmocka_unit_test(test_contradicting_bounds_are_named),
		cmocka_unit_test(test_times_without_room_are_ignored),
		cmocka_unit_test(test_hostile_bounds_make_no_impossible_line),
		cmocka_unit_test(test_truth_is_inside_in_a_thousand_random_jobs),
		cmocka_unit_test(test_sub_communicators_and_rings_of_messages_bound_all_hosts),
		cmocka_unit_test(test_messages_in_one_direction_leave_a_clock_unknown),
		cmocka_unit_test(test_contradiction_names_hosts_and_facts),
		cmocka_unit_test(test_contradiction_around_three_hosts_is_found),
		cmocka_unit_test(test_facts_that_say_nothing_are_ignored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
