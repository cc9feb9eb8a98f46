// SPDX-License-Identifier: Apache-2.0
/* Rings of traced processes as sources of records: who wrote them, when, and what is nonsense. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <sys/resource.h>
#include <cmocka.h>

#include "capture/transport/ring_set.h"
#include "fake_rings.h"
#include "util/clock.h"
#include "waffle/abi.h"

#define PID 500
#define PROBE 0x1000
#define LATE_PROBE 0x2000
#define SITE 7
#define RING_MAP ring_map_bytes(FAKE_RING_BYTES)

static unsigned searches;

static uint32_t site_find(uint64_t ts, pid_t pid, uint64_t probe, void *arg)
{
	(void)ts;
	(void)pid;
	(void)arg;
	searches++;
	return probe == LATE_PROBE ? SITE + 1 : WAFFLE_SITE_UNKNOWN;
}

static struct ring_set *set_open(void)
{
	struct ring_set_options options = {.cpu_count = 2, .site = site_find};
	struct error err = ERROR_INIT;
	struct ring_set *set;

	searches = 0;
	assert_int_equal(ring_set_open(&set, &options, &err), 0);
	ring_set_site(set, PID, PROBE, SITE);
	return set;
}

static void set_close(struct ring_set *set)
{
	ring_set_close(set);
	assert_int_equal(fake_rings_mapped, 0);
	fake_rings_free();
}

static void thread_write(struct ring_shared *shared, uint64_t tid)
{
	const uint64_t words[] = {tid, 0, 0};

	fake_ring_write(shared, RING_THREAD, clock_monotonic_ns(), words, 3);
}

static void hit_write(struct ring_shared *shared, uint64_t ns, uint64_t probe, uint64_t id)
{
	const uint64_t words[] = {probe, id, 0, 0, 0, 42};

	fake_ring_write(shared, RING_HIT, ns, words, 6);
}

/* The next record of the only ring. */
static struct waffle_rec *next(struct ring_set *set)
{
	assert_int_not_equal(ring_set_ts(set, 0), UINT64_MAX);
	return ring_set_take(set, 0);
}

static void assert_counts(const struct ring_set *set, uint64_t taken, uint64_t lost)
{
	assert_int_equal(ring_set_counts(set).taken, taken);
	assert_int_equal(ring_set_counts(set).lost, lost);
}

static void test_records_have_the_threads_that_the_kernel_knows(void **state)
{
	struct ring_shared *shared = fake_ring_make(0);
	struct ring_set *set = set_open();
	uint64_t now;
	const uint64_t end[] = {11, PROBE};
	const struct waffle_rec_hit *hit;
	const struct waffle_rec *rec;

	(void)state;
	assert_int_equal(ring_set_add(set, PID, 0, RING_MAP, false), 0);
	assert_int_not_equal(shared->reader, 0);
	now = clock_monotonic_ns();
	thread_write(shared, 3);
	hit_write(shared, now, PROBE, 11);
	fake_ring_write(shared, RING_SPAN_END, now + 1, end, 2);
	thread_write(shared, 77);
	hit_write(shared, now + 2, LATE_PROBE, 12);
	thread_write(shared, 4); /* nobody knows it */
	hit_write(shared, now + 3, PROBE, 13);
	ring_set_begin_round(set);
	ring_set_thread(set, PID, 3, 603);
	hit = (const struct waffle_rec_hit *)next(set);
	assert_int_equal(hit->rec.kind, WAFFLE_REC_HIT);
	assert_int_equal(hit->rec.tid, 603);
	assert_int_equal(hit->rec.ts, now);
	assert_int_equal(hit->rec.cpu, 1);
	assert_int_equal(hit->tgid, PID);
	assert_int_equal(hit->site, SITE);
	assert_int_equal(hit->frame_bytes, 40);
	assert_int_equal(((const uint64_t *)(hit + 1))[0], 11);
	assert_int_equal(((const uint64_t *)(hit + 1))[4], 42);
	rec = next(set);
	assert_int_equal(rec->kind, WAFFLE_REC_SPAN_END);
	assert_int_equal(((const struct waffle_rec_span_end *)rec)->span_id, 11);
	assert_int_equal(((const struct waffle_rec_span_end *)rec)->site, SITE);
	hit = (const struct waffle_rec_hit *)next(set);
	assert_int_equal(hit->rec.tid, 1077);
	assert_int_equal(hit->site, SITE + 1);
	assert_null(next(set));
	assert_int_equal(ring_set_ts(set, 0), UINT64_MAX);
	assert_counts(set, 3, 1);
	assert_int_equal(ring_set_taken(set, PID), 3);
	set_close(set);
}

static void test_times_rise_and_are_between_the_begin_of_the_capture_and_now(void **state)
{
	struct ring_shared *shared = fake_ring_make(0);
	uint64_t before = clock_monotonic_ns();
	struct ring_set *set = set_open();
	uint64_t now, latest;

	(void)state;
	ring_set_thread(set, PID, 3, 603);
	ring_set_add(set, PID, 0, RING_MAP, false);
	now = clock_monotonic_ns();
	thread_write(shared, 3);
	hit_write(shared, 5, PROBE, 5); /* before the capture */
	hit_write(shared, now, PROBE, 1);
	hit_write(shared, 0, PROBE, 2);
	hit_write(shared, UINT64_MAX, PROBE, 3);
	hit_write(shared, now + 1, PROBE, 4);
	ring_set_begin_round(set);
	assert_in_range(next(set)->ts, before, now - 1);
	assert_int_equal(next(set)->ts, now);
	assert_int_equal(next(set)->ts, now);
	latest = next(set)->ts;
	assert_in_range(latest, now, clock_monotonic_ns());
	assert_int_equal(next(set)->ts, latest);
	set_close(set);
}

static void test_round_ends_where_the_ring_ended_when_it_began(void **state)
{
	struct ring_shared *shared = fake_ring_make(0);
	struct ring_set *set = set_open();

	(void)state;
	ring_set_thread(set, PID, 3, 603);
	ring_set_add(set, PID, 0, RING_MAP, false);
	thread_write(shared, 3);
	hit_write(shared, clock_monotonic_ns(), PROBE, 1);
	ring_set_begin_round(set);
	hit_write(shared, clock_monotonic_ns(), PROBE, 2);
	assert_non_null(next(set));
	assert_int_equal(ring_set_ts(set, 0), UINT64_MAX);
	ring_set_begin_round(set);
	assert_non_null(next(set));
	set_close(set);
}

static void test_ring_with_nonsense_is_given_up_and_not_read_again(void **state)
{
	struct ring_shared *shared = fake_ring_make(0);
	struct ring_set *set = set_open();

	(void)state;
	ring_set_add(set, PID, 0, RING_MAP, false);
	shared->head = 64; /* zeros */
	ring_set_begin_round(set);
	assert_int_equal(ring_set_ts(set, 0), UINT64_MAX);
	assert_int_equal(shared->reader, 0);
	assert_counts(set, 0, 1);
	assert_int_equal(ring_set_add(set, PID, 0, RING_MAP, false), 0);
	assert_int_equal(shared->reader, 0);
	ring_set_begin_round(set);
	assert_int_equal(ring_set_ts(set, 0), UINT64_MAX);
	assert_counts(set, 0, 1);
	set_close(set);
}

static void test_losses_are_counted_unless_they_are_nonsense(void **state)
{
	struct ring_shared *shared = fake_ring_make(0);
	struct ring_set *set = set_open();

	(void)state;
	shared->lost = 3; /* for the tracer before */
	ring_set_add(set, PID, 0, RING_MAP, true);
	ring_set_begin_round(set);
	assert_counts(set, 0, 0);
	shared->lost = 10;
	ring_set_begin_round(set);
	assert_counts(set, 0, 7);
	shared->lost = UINT64_MAX;
	ring_set_begin_round(set);
	assert_counts(set, 0, 8);
	set_close(set);
}

static void test_unknown_probes_are_searched_for_only_so_often(void **state)
{
	struct ring_shared *shared = fake_ring_make(0);
	struct ring_set *set = set_open();

	(void)state;
	ring_set_thread(set, PID, 3, 603);
	ring_set_add(set, PID, 0, RING_MAP, false);
	thread_write(shared, 3);
	for (unsigned round = 0; round < 100; round++) {
		for (unsigned i = 0; i < 100; i++)
			hit_write(shared, clock_monotonic_ns(), 0x9000 + 8 * i, 1);
		ring_set_begin_round(set);
		for (unsigned i = 0; i < 100; i++)
			assert_null(next(set));
	}
	assert_counts(set, 0, 10000);
	assert_in_range(searches, 1, 256 * 20); /* however slow this is */
	set_close(set);
}

static void test_unknown_thread_is_searched_for_once_a_second(void **state)
{
	struct ring_shared *shared = fake_ring_make(0);
	struct ring_set *set = set_open();

	(void)state;
	fake_searches = 0;
	ring_set_add(set, PID, 0, RING_MAP, false);
	for (unsigned i = 0; i < 10000; i++) {
		thread_write(shared, 4 + i % 2);
		hit_write(shared, clock_monotonic_ns(), PROBE, 1);
		ring_set_begin_round(set);
		assert_null(next(set));
	}
	assert_in_range(fake_searches, 3, 3 * 20); /* however slow this is */
	ring_set_thread(set, PID, 4, 604);
	thread_write(shared, 4);
	hit_write(shared, clock_monotonic_ns(), PROBE, 1);
	ring_set_begin_round(set);
	assert_int_equal(next(set)->tid, 604);
	set_close(set);
}

/* Another process may have its tid by then. */
static void test_thread_that_has_ended_has_no_records_any_more(void **state)
{
	struct ring_shared *shared = fake_ring_make(0);
	struct ring_set *set = set_open();

	(void)state;
	ring_set_thread(set, PID, 3, 603);
	ring_set_add(set, PID, 0, RING_MAP, false);
	thread_write(shared, 3);
	hit_write(shared, clock_monotonic_ns(), PROBE, 1);
	ring_set_begin_round(set);
	assert_int_equal(next(set)->tid, 603);
	ring_set_thread_ended(set, PID, 603);
	hit_write(shared, clock_monotonic_ns(), PROBE, 2);
	ring_set_begin_round(set);
	assert_int_equal(next(set)->tid, 603); /* a record that comes late */
	sleep(3);
	hit_write(shared, clock_monotonic_ns(), PROBE, 2);
	thread_write(shared, 3);
	hit_write(shared, clock_monotonic_ns(), PROBE, 3);
	ring_set_begin_round(set);
	assert_null(next(set));
	assert_null(next(set));
	ring_set_thread(set, PID, 3, 604);
	hit_write(shared, clock_monotonic_ns(), PROBE, 4);
	ring_set_begin_round(set);
	assert_int_equal(next(set)->tid, 604);
	assert_counts(set, 3, 2);
	set_close(set);
}

static void test_site_of_a_library_ends_when_another_one_is_mapped(void **state)
{
	struct ring_shared *shared = fake_ring_make(0);
	struct ring_set *set = set_open();
	uint64_t now;

	(void)state;
	ring_set_thread(set, PID, 3, 603);
	ring_set_add(set, PID, 0, RING_MAP, false);
	now = clock_monotonic_ns();
	thread_write(shared, 3);
	hit_write(shared, now, PROBE, 1);
	hit_write(shared, now + 10, PROBE, 2);
	ring_set_mapped(set, PID, PROBE & ~0xfffull, PROBE + 0x1000, now + 5);
	ring_set_site(set, PID, PROBE, SITE + 5);
	ring_set_begin_round(set);
	assert_int_equal(((const struct waffle_rec_hit *)next(set))->site, SITE);
	assert_int_equal(((const struct waffle_rec_hit *)next(set))->site, SITE + 5);
	set_close(set);
}

static void test_ring_of_a_process_that_has_ended_is_read_to_its_end(void **state)
{
	struct ring_shared *shared = fake_ring_make(0);
	struct ring_set *set = set_open();

	(void)state;
	ring_set_thread(set, PID, 3, 603);
	ring_set_add(set, PID, 0, RING_MAP, false);
	thread_write(shared, 3);
	hit_write(shared, clock_monotonic_ns(), PROBE, 1);
	ring_set_ended(set, PID);
	ring_set_begin_round(set);
	assert_non_null(next(set));
	ring_set_begin_round(set);
	assert_int_equal(ring_set_count(set), 0);
	assert_int_equal(fake_rings_mapped, 0);
	set_close(set);
}

static void test_records_of_a_program_count_after_the_next_one_has_begun(void **state)
{
	struct ring_shared *shared = fake_ring_make(0);
	struct ring_set *set = set_open();

	(void)state;
	ring_set_thread(set, PID, 3, 603);
	ring_set_add(set, PID, 0, RING_MAP, false);
	thread_write(shared, 3);
	hit_write(shared, clock_monotonic_ns(), PROBE, 1);
	ring_set_ended(set, PID);
	ring_set_begin_round(set);
	assert_non_null(next(set));
	ring_set_begin_round(set);
	ring_set_thread(set, PID + 1, 1, 604); /* the place of the first one is not free yet */
	assert_int_equal(ring_set_taken(set, PID), 1);
	ring_set_thread(set, PID, 3, 603);
	assert_int_equal(ring_set_taken(set, PID), 1);
	ring_set_forget(set, PID);
	ring_set_thread(set, PID + 2, 1, 605);
	assert_int_equal(ring_set_taken(set, PID), 0);
	set_close(set);
}

static void test_what_is_written_after_the_end_of_a_process_is_not_its_own(void **state)
{
	struct ring_shared *shared = fake_ring_make(0);
	struct ring_set *set = set_open();

	(void)state;
	ring_set_thread(set, PID, 3, 603);
	ring_set_add(set, PID, 0, RING_MAP, false);
	thread_write(shared, 3);
	hit_write(shared, clock_monotonic_ns(), PROBE, 1);
	ring_set_ended(set, PID);
	ring_set_begin_round(set);
	hit_write(shared, clock_monotonic_ns(), PROBE, 2); /* by a child that shares the memory */
	assert_non_null(next(set));
	ring_set_begin_round(set);
	assert_int_equal(ring_set_count(set), 0);
	assert_counts(set, 1, 0);
	set_close(set);
}

static void test_round_has_no_more_than_a_ring_can_hold(void **state)
{
	struct ring_shared *shared = fake_ring_make(0);
	struct ring_set *set = set_open();

	(void)state;
	ring_set_add(set, PID, 0, RING_MAP, false);
	thread_write(shared, 3);
	shared->head += 1ull << 62;
	ring_set_begin_round(set);
	shared->head -= 1ull << 62;
	assert_int_equal(ring_set_ts(set, 0), UINT64_MAX);
	assert_int_equal(shared->reader, 0);
	assert_counts(set, 0, 1);
	set_close(set);
}

static void test_ring_of_threads_without_records_is_given_up(void **state)
{
	struct ring_shared *shared = fake_ring_make(0);
	struct ring_set *set = set_open();

	(void)state;
	ring_set_add(set, PID, 0, RING_MAP, false);
	for (unsigned i = 0; i < 5000; i++) {
		thread_write(shared, 3);
		if (i % 100)
			continue;
		ring_set_begin_round(set);
		assert_int_equal(ring_set_ts(set, 0), UINT64_MAX);
	}
	ring_set_begin_round(set);
	assert_int_equal(ring_set_ts(set, 0), UINT64_MAX);
	assert_int_equal(shared->reader, 0);
	assert_counts(set, 0, 1);
	set_close(set);
}

static void test_what_follows_the_end_of_the_capture_is_left_out(void **state)
{
	struct ring_shared *shared = fake_ring_make(0);
	struct ring_set *set = set_open();
	uint64_t now;

	(void)state;
	ring_set_thread(set, PID, 3, 603);
	ring_set_add(set, PID, 0, RING_MAP, false);
	now = clock_monotonic_ns();
	thread_write(shared, 3);
	hit_write(shared, now, PROBE, 1);
	hit_write(shared, now + 1, PROBE, 2);
	ring_set_finish(set, now);
	ring_set_begin_round(set);
	assert_non_null(next(set));
	assert_int_equal(ring_set_ts(set, 0), UINT64_MAX);
	assert_counts(set, 1, 0);
	set_close(set);
}

static void test_ring_that_is_taken_over_is_read_from_then_on(void **state)
{
	struct ring_shared *shared = fake_ring_make(0);
	struct ring_set *set = set_open();

	(void)state;
	thread_write(shared, 77);
	shared->tid = 77;
	hit_write(shared, clock_monotonic_ns(), PROBE, 1);
	ring_set_add(set, PID, 0, RING_MAP, true);
	assert_int_equal(shared->tail, shared->head);
	hit_write(shared, clock_monotonic_ns(), PROBE, 2);
	ring_set_begin_round(set);
	assert_int_equal(next(set)->tid, 1077);
	assert_int_equal(ring_set_ts(set, 0), UINT64_MAX);
	set_close(set);
}

/* A process gets at most half of what there is, so that it leaves some to others. */
static void test_rings_are_limited_for_all_together_and_for_a_process(void **state)
{
	struct ring_set *set;
	struct rlimit before, few;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = 3 * 4;
	for (unsigned i = 0; i < FAKE_RINGS_MAX; i++)
		fake_ring_make(i);
	set = set_open();
	setrlimit(RLIMIT_NOFILE, &few);
	assert_int_equal(ring_set_add(set, PID, 0, RING_MAP, false), 0);
	assert_int_equal(ring_set_add(set, PID, 1, RING_MAP, false), 0);
	assert_int_equal(ring_set_add(set, PID, 2, RING_MAP, false), -ENOSPC);
	assert_int_equal(ring_set_add(set, PID + 1, 2, RING_MAP, false), 0);
	assert_int_equal(ring_set_add(set, PID + 2, 3, RING_MAP, false), -ENOSPC);
	assert_int_equal(fake_rings[3]->reader, 0);
	setrlimit(RLIMIT_NOFILE, &before);
	set_close(set);
}

static void test_memory_that_is_no_ring_is_refused(void **state)
{
	struct ring_shared *shared = fake_ring_make(0);
	struct ring_set *set = set_open();

	(void)state;
	assert_int_equal(ring_set_add(set, PID, 3, RING_MAP, false), -EACCES);
	shared->magic = 0;
	assert_int_equal(ring_set_add(set, PID, 0, RING_MAP, false), -EACCES);
	assert_int_equal(fake_rings_mapped, 0);
	set_close(set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_records_have_the_threads_that_the_kernel_knows),
		cmocka_unit_test(test_times_rise_and_are_between_the_begin_of_the_capture_and_now),
		cmocka_unit_test(test_round_ends_where_the_ring_ended_when_it_began),
		cmocka_unit_test(test_ring_with_nonsense_is_given_up_and_not_read_again),
		cmocka_unit_test(test_losses_are_counted_unless_they_are_nonsense),
		cmocka_unit_test(test_unknown_probes_are_searched_for_only_so_often),
		cmocka_unit_test(test_unknown_thread_is_searched_for_once_a_second),
		cmocka_unit_test(test_thread_that_has_ended_has_no_records_any_more),
		cmocka_unit_test(test_site_of_a_library_ends_when_another_one_is_mapped),
		cmocka_unit_test(test_ring_of_a_process_that_has_ended_is_read_to_its_end),
		cmocka_unit_test(test_records_of_a_program_count_after_the_next_one_has_begun),
		cmocka_unit_test(test_what_is_written_after_the_end_of_a_process_is_not_its_own),
		cmocka_unit_test(test_round_has_no_more_than_a_ring_can_hold),
		cmocka_unit_test(test_ring_of_threads_without_records_is_given_up),
		cmocka_unit_test(test_what_follows_the_end_of_the_capture_is_left_out),
		cmocka_unit_test(test_ring_that_is_taken_over_is_read_from_then_on),
		cmocka_unit_test(test_rings_are_limited_for_all_together_and_for_a_process),
		cmocka_unit_test(test_memory_that_is_no_ring_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
