// SPDX-License-Identifier: Apache-2.0
/* Which thread is explained if the user chose nothing. Process 20 is a child of process 10, which
 * the user named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze/why/why_asker_internal.h"
#include "analyze/why/why_busiest.h"
#include "why_capture.h"

#define MS 1000000ull

static void process(struct capture *capture, uint32_t pid, uint32_t ppid)
{
	struct store_process add = {pid, ppid, CAPTURE_START, "program"};
	struct error err = ERROR_INIT;

	capture_must(store_writer_add_process(capture->writer, &add, &err), err);
}

/* The child runs on CPU 2 for the 10 ms of the capture. */
static void begin(struct capture *capture)
{
	capture_begin(capture, true);
	process(capture, 10, 1);
	process(capture, 20, 10);
	named(capture, 10, 10, "parent");
	named(capture, 20, 20, "child");
	gets(capture, CAPTURE_START, 2, 0, 20, 0, 0, 0);
}

static uint32_t busiest(struct capture *capture)
{
	struct why_query query = {0};
	const struct model *model = capture_load(capture, CAPTURE_START + 10 * MS);

	assert_int_equal(why_busiest_thread(&query, model), 0);
	assert_int_equal(query.from_ts, model->start_ts);
	assert_int_equal(query.to_ts, model->end_ts);
	assert_false(query.waited);
	capture_free(capture);
	return query.tid;
}

static void test_child_that_runs_longest_if_its_parent_waits(void **state)
{
	struct capture capture = {0};

	(void)state;
	begin(&capture);
	gets(&capture, CAPTURE_START + 1, 1, 0, 10, 0, 0, 0);
	waits(&capture, CAPTURE_START + 4 * MS, 1, 10, 0, S, NR_WAIT4, 0, 0, 0);
	assert_int_equal(busiest(&capture), 20);
}

static void test_thread_that_waited_all_the_time(void **state)
{
	struct why_query query = {0};
	struct capture capture = {0};

	(void)state;
	capture_begin(&capture, true);
	process(&capture, 10, 1);
	named(&capture, 10, 10, "parent");
	capture_state(&capture, CAPTURE_START, 10, WAFFLE_THREAD_BLOCKED, false);
	assert_int_equal(
		why_busiest_thread(&query, capture_load(&capture, CAPTURE_START + 10 * MS)), 0);
	assert_int_equal(query.tid, 10);
	assert_true(query.waited);
	capture_free(&capture);
}

/* A worker of io_uring runs all the time for thread 11 of its process, which waits. */
static void test_thread_that_waits_for_its_worker_of_io_uring(void **state)
{
	static const struct {
		const char *name;
		uint32_t tid;
	} rows[] = {
		{"iou-wrk-11", 11}, {"iou-sqp-11", 11},  {"iou-wrk-12", 13},
		{"iou-wrk-", 13},   {"iou-wrk-11x", 13}, {"iou-wrk-20", 13},
	};
	struct capture capture = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		begin(&capture);
		waits(&capture, CAPTURE_START + 1, 2, 20, 0, S, NR_READ, 0, 0, 0);
		named(&capture, 11, 10, "parent");
		named(&capture, 13, 10, rows[i].name);
		gets(&capture, CAPTURE_START + 1, 1, 0, 11, 0, 0, 0);
		waits(&capture, CAPTURE_START + 1 * MS, 1, 11, 0, S, NR_READ, 0, 0, 0);
		gets(&capture, CAPTURE_START + 2, 3, 0, 13, 0, 0, 0);
		assert_int_equal(busiest(&capture), rows[i].tid);
	}
}

static void test_parent_that_waits_for_a_cpu(void **state)
{
	struct capture capture = {0};

	(void)state;
	begin(&capture);
	gets(&capture, CAPTURE_START + 1, 1, 0, 10, 0, 0, 0);
	waits(&capture, CAPTURE_START + 1 * MS, 1, 10, 0, S, NR_READ, 0, 0, 0);
	gets(&capture, CAPTURE_START + 9 * MS, 1, 0, 10, 20, CAPTURE_START + 2 * MS, 0);
	assert_int_equal(busiest(&capture), 10);
}

static void test_parent_that_runs_less_than_its_child(void **state)
{
	struct capture capture = {0};

	(void)state;
	begin(&capture);
	gets(&capture, CAPTURE_START + 1, 1, 0, 10, 0, 0, 0);
	waits(&capture, CAPTURE_START + 6 * MS, 1, 10, 0, S, NR_READ, 0, 0, 0);
	assert_int_equal(busiest(&capture), 10);
}

/* Both are mostly blocked. The child must run for more than twice as long to be chosen. */
static void test_parent_that_runs_about_as_much_as_its_child(void **state)
{
	static const uint64_t child_ms[] = {3, 5};
	struct capture capture = {0};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		begin(&capture);
		gets(&capture, CAPTURE_START + 1, 1, 0, 10, 0, 0, 0);
		waits(&capture, CAPTURE_START + 2 * MS, 1, 10, 0, S, NR_READ, 0, 0, 0);
		waits(&capture, CAPTURE_START + child_ms[i] * MS, 2, 20, 0, S, NR_READ, 0, 0, 0);
		assert_int_equal(busiest(&capture), child_ms[i] > 4 ? 20 : 10);
	}
}

#define REQUESTS 4
#define SOCKET "socket:[7]"

/* The parent asks its child, which answers after 1 ms each time. `of`: the thread with the spans.
 */
static uint32_t asker(uint32_t of, const char *file, bool woken, bool marked)
{
	struct capture capture = {0};
	uint32_t found;

	begin(&capture);
	add_request_site(&capture);
	object(&capture, file, *file == 's' ? "tcp 10.0.0.1:80 <-> 10.0.0.1:5000" : "");
	gets(&capture, CAPTURE_START + 1, 1, 0, 10, 0, 0, 0);
	for (uint32_t i = 0; i < REQUESTS; i++) {
		uint64_t ts = CAPTURE_START + (2 * i + 1) * MS;
		struct waffle_rec_span_end end = {.rec = {ts + MS, of, WAFFLE_REC_SPAN_END, 0},
						  .span_id = i + 1,
						  .tgid = of,
						  .site = SITE_REQUEST};

		waits(&capture, ts, 1, 10, 0, S, NR_READ, 0, 0, 0);
		wait_details(&capture, ts, ts + MS, 10, 1, 0, 0);
		capture_hit_of(&capture, ts, of, of, SITE_REQUEST, i + 1, 0, 0, NULL);
		capture_add(&capture, &end);
		gets(&capture, ts + MS, 1, 0, 10, woken ? 20 : 0, ts + MS, woken ? SOFT : HARD);
	}
	if (marked) {
		capture_span(&capture, CAPTURE_START + 9 * MS, 20, 100);
		capture_end(&capture, CAPTURE_START + 9 * MS + 1, 20, 100);
	}
	capture_load(&capture, CAPTURE_START + 10 * MS);
	found = why_asker_find(capture.model);
	if (found != MODEL_NONE)
		found = capture.model->threads.data[found].tid;
	capture_free(&capture);
	return found;
}

static void test_program_that_asks_its_own_server(void **state)
{
	(void)state;
	assert_int_equal(asker(20, SOCKET, true, false), 10);
	assert_int_equal(asker(20, SOCKET, false, false), MODEL_NONE); /* somebody else asks */
	assert_int_equal(asker(10, SOCKET, true, false), MODEL_NONE);  /* it answers itself */
	assert_int_equal(asker(20, SOCKET, true, true), MODEL_NONE); /* the user has marked spans */
	assert_int_equal(asker(20, "pipe:[7]", true, false), MODEL_NONE); /* a reader of its log */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_program_that_asks_its_own_server),
		cmocka_unit_test(test_child_that_runs_longest_if_its_parent_waits),
		cmocka_unit_test(test_thread_that_waited_all_the_time),
		cmocka_unit_test(test_thread_that_waits_for_its_worker_of_io_uring),
		cmocka_unit_test(test_parent_that_waits_for_a_cpu),
		cmocka_unit_test(test_parent_that_runs_less_than_its_child),
		cmocka_unit_test(test_parent_that_runs_about_as_much_as_its_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
