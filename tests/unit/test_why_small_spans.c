// SPDX-License-Identifier: Apache-2.0
/* When requests take too little time to show why a program is slow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/why/why_small_spans_internal.h"
#include "why_capture.h"

#include "calls_capture.h"

#define MS 1000000ull
#define LENGTH_NS (1000 * MS)
#define NR_WRITE 1
#define SPANS_MAX 10
#define RUNS (-1)

struct program {
	uint32_t spans; /* requests of thread 10 */
	uint64_t ns;    /* each takes */
	uint64_t busy_ns;
	uint32_t busy; /* the thread that runs for busy_ns, or is blocked in this call */
	int syscall;   /* RUNS: in none */
	bool step;     /* there is a span that the user asked for */
};

static void end_request(struct capture *capture, uint64_t ts, uint64_t id)
{
	struct waffle_rec_span_end rec = {.rec = {ts, 10, WAFFLE_REC_SPAN_END, 0},
					  .span_id = id,
					  .tgid = CAPTURE_PID,
					  .site = SITE_REQUEST};

	capture_add(capture, &rec);
}

static void add_requests(struct capture *capture, const struct program *program)
{
	for (uint32_t i = 0; i < program->spans; i++) {
		uint64_t ts = CAPTURE_START + MS + i * (LENGTH_NS / SPANS_MAX);

		capture_hit(capture, ts, 10, SITE_REQUEST, i + 1, 0, 0, NULL);
		end_request(capture, ts + program->ns, i + 1);
	}
	if (program->step) {
		capture_span(capture, CAPTURE_START + 10, 10, 100);
		capture_end(capture, CAPTURE_START + 20, 10, 100);
	}
}

static bool only_small(const struct program *program)
{
	uint64_t ts = CAPTURE_START + 2 * MS, end_ts = ts + program->busy_ns;
	struct capture capture;
	bool small;

	capture_begin(&capture, true);
	add_request_site(&capture);
	named(&capture, 10, CAPTURE_PID, "server");
	named(&capture, 11, CAPTURE_PID, "other");
	gets(&capture, ts, 1, 0, program->busy, 0, 0, 0);
	if (program->syscall == RUNS)
		ts += program->busy_ns;
	waits(&capture, ts, 1, program->busy, 0, S, program->syscall, 0, 0, 0);
	gets(&capture, end_ts, 1, 0, program->busy, 0, end_ts, 0);
	add_requests(&capture, program);
	small = why_has_only_small_spans(capture_load(&capture, end_ts + MS));
	capture_free(&capture);
	return small;
}

static void test_requests_are_small_beside_a_busy_thread(void **state)
{
	static const struct {
		struct program program;
		bool small;
	} rows[] = {
		/* It runs after its answers, or another thread runs, or it writes to a full pipe.
		 */
		{{3, 25 * MS, 900 * MS, 10, RUNS, false}, true},
		{{3, 25 * MS, 900 * MS, 11, RUNS, false}, true},
		{{3, 25 * MS, 900 * MS, 10, NR_WRITE, false}, true},
		/* It waits for requests. */
		{{3, 25 * MS, 900 * MS, 10, NR_READ, false}, false},
		/* The requests take long, or are all that it does. */
		{{9, 50 * MS, 900 * MS, 10, RUNS, false}, false},
		/* They are few and quick, more than a tenth of the time, or one is slow. */
		{{3, 1 * MS, 900 * MS, 10, NR_READ, false}, true},
		{{5, 15 * MS, 900 * MS, 10, NR_READ, false}, true},
		{{7, 15 * MS, 900 * MS, 10, NR_READ, false}, false},
		{{1, 21 * MS, 900 * MS, 10, NR_READ, false}, false},
		/* Others are those of the user. */
		{{3, 25 * MS, 900 * MS, 10, RUNS, true}, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (only_small(&rows[i].program) != rows[i].small)
			fail_msg("row %zu", i);
}

/* Calls of CUDA are recorded wherever its library is. */
static void test_calls_of_a_library_are_small_beside_the_time_of_their_thread(void **state)
{
	static const struct {
		uint64_t ns; /* each of SPANS_MAX calls takes */
		bool small;
	} rows[] = {{1 * MS, true}, {20 * MS, false}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct capture capture;

		capture_begin(&capture, true);
		calls_add_sites(&capture);
		named(&capture, 10, CAPTURE_PID, "trainer");
		gets(&capture, CAPTURE_START + MS, 1, 0, 10, 0, 0, 0);
		for (uint32_t k = 0; k < SPANS_MAX; k++) {
			uint64_t ts = CAPTURE_START + 2 * MS + k * (LENGTH_NS / SPANS_MAX);

			call_span(&capture, ts, ts + rows[i].ns, 10, CALL_COPY, k + 1, 4, HTOD);
		}
		assert_int_equal(why_has_only_small_spans(
					 capture_load(&capture, CAPTURE_START + LENGTH_NS + MS)),
				 rows[i].small);
		capture_free(&capture);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests_are_small_beside_a_busy_thread),
		cmocka_unit_test(test_calls_of_a_library_are_small_beside_the_time_of_their_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
