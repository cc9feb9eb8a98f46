// SPDX-License-Identifier: Apache-2.0
/* Which of several named processes is explained. The user has named 10, then 20, which answers
 * requests, and 40. Process 30 is a child of 10. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze/why/why_busiest.h"
#include "analyze/why/why_first_internal.h"
#include "analyze/why/why_pick.h"
#include "target/process/descriptors.h"
#include "why_capture.h"

#define MS 1000000ull
#define END (CAPTURE_START + 10 * MS)

static void process(struct capture *capture, uint32_t pid, uint32_t ppid)
{
	struct store_process add = {pid, ppid, CAPTURE_START, "program"};
	struct error err = ERROR_INIT;

	capture_must(store_writer_add_process(capture->writer, &add, &err), err);
}

struct program {
	uint32_t answers; /* the thread with the requests */
	uint32_t parent;  /* of process 20 */
	uint64_t ms;      /* for so long, thread 10 waits */
	int call;
	uint32_t waker; /* 0: its own timer */
	bool marked;    /* there are spans of the program, too */
	bool found;     /* the user gave a name, not the number of the process */
};

/* Four requests of 2 ms. */
static void add_requests(struct capture *capture, const struct program *program)
{
	for (uint32_t i = 0; i < 4; i++) {
		uint64_t ts = CAPTURE_START + (2 * i + 1) * MS;
		struct waffle_rec_span_end end = {
			.rec = {ts + 2 * MS - 1, program->answers, WAFFLE_REC_SPAN_END, 0},
			.span_id = i + 1,
			.tgid = program->answers,
			.site = SITE_REQUEST};

		capture_hit_of(capture, ts, program->answers, program->answers, SITE_REQUEST, i + 1,
			       0, 0, NULL);
		capture_add(capture, &end);
	}
	if (program->marked) {
		capture_span(capture, CAPTURE_START + 9 * MS, 20, 100);
		capture_end(capture, CAPTURE_START + 9 * MS + 1, 20, 100);
	}
}

static void begin(struct capture *capture, uint32_t parent)
{
	static const uint32_t pids[] = {10, 20, 30, 40};

	capture_begin(capture, true);
	process(capture, 10, 1);
	process(capture, 20, parent);
	process(capture, 30, 10);
	process(capture, 40, 1);
	for (size_t i = 0; i < sizeof(pids) / sizeof(pids[0]); i++)
		named(capture, pids[i], pids[i], "program");
}

static void found(struct capture *capture, uint32_t pid)
{
	const struct store_attribute add = {
		.pid = pid, .ts = CAPTURE_START, .key = STORE_FOUND, .value = "yes"};
	struct error err = ERROR_INIT;

	capture_must(store_writer_add_attribute(capture->writer, &add, &err), err);
}

/* Returns the thread that is explained; 0: the requests are. */
static uint32_t explained(const struct program *program)
{
	struct capture capture = {0};
	struct why_query query = {0};
	const struct why_wanted wanted = {0};
	struct error err = ERROR_INIT;
	uint64_t wake_ts = CAPTURE_START + 2 + program->ms * MS;

	begin(&capture, program->parent);
	add_request_site(&capture);
	if (program->found)
		found(&capture, 10);
	gets(&capture, CAPTURE_START, 2, 0, 20, 0, 0, 0);
	gets(&capture, CAPTURE_START, 3, 0, 40, 0, 0, 0);
	gets(&capture, CAPTURE_START + 1, 1, 0, 10, 0, 0, 0);
	waits(&capture, CAPTURE_START + 2, 1, 10, 0, S, program->call, 0, 0, 0);
	gets(&capture, wake_ts, 1, 0, 10, program->waker, wake_ts, program->waker ? 0 : HARD);
	if (program->ms < 9)
		waits(&capture, wake_ts + 1, 1, 10, 0, S, NR_NANOSLEEP, 0, 0, 0);
	add_requests(&capture, program);
	capture_load(&capture, END);
	capture_must(why_pick(&query, capture.model, &wanted, &err), err);
	assert_int_equal(query.first, query.tid != 0);
	capture_free(&capture);
	return query.tid;
}

static void test_first_process_comes_before_requests_of_others(void **state)
{
	static const struct {
		struct program program;
		uint32_t tid;
	} rows[] = {
		{{20, 1, 9, NR_READ, 40, false, false}, 10},
		/* It asks for the requests itself. */
		{{20, 1, 9, NR_READ, 20, false, false}, 10},
		/* Its number was not given. */
		{{20, 1, 9, NR_READ, 40, false, true}, 0},
		/* It answers them, or they are not all that there is. */
		{{10, 1, 9, NR_READ, 40, false, false}, 0},
		{{20, 1, 9, NR_READ, 40, true, false}, 0},
		/* It is not held up, or not for half of the time. */
		{{20, 1, 9, NR_NANOSLEEP, 0, false, false}, 0},
		{{20, 1, 4, NR_READ, 40, false, false}, 0},
		/* Its children answer them: it may watch them, but not wait for others. */
		{{20, 10, 9, NR_READ, 20, false, false}, 0},
		{{20, 10, 9, NR_WAIT4, 30, false, false}, 0},
		{{20, 10, 9, NR_READ, 30, false, false}, 0},
		{{20, 10, 9, NR_READ, 40, false, false}, 10},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(explained(&rows[i].program), rows[i].tid);
}

/* What an epoll of thread 10 watches, of which one socket is described. */
struct watched {
	const char *all, *connection;
};

static void watches(struct capture *capture, const struct watched *watched)
{
	const struct store_object objects[] = {
		{.pid = 10, .name = DESCRIPTOR_EPOLL, .detail = watched->all},
		{.pid = 10, .ino = 701, .name = "socket:[701]", .detail = watched->connection},
	};

	for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++) {
		struct error err = ERROR_INIT;

		capture_must(store_writer_add_object(capture->writer, &objects[i], &err), err);
	}
	wait_details(capture, CAPTURE_START, END, 10, 1, 0, 0);
}

/* Thread 30 reads until 40 writes. */
static void child_reads(struct capture *capture)
{
	uint64_t ts = CAPTURE_START + 8 * MS;

	gets(capture, CAPTURE_START + 2, 4, 0, 30, 0, 0, 0);
	waits(capture, CAPTURE_START + 3, 4, 30, 0, S, NR_READ, 0, 0, 0);
	gets(capture, ts - 2000, 2, 0, 40, 0, ts - 2000, HARD);
	gets(capture, ts - 1000, 4, 0, 30, 40, ts - 1000, 0);
	waits(capture, ts - 999, 4, 30, 0, S, NR_READ, 0, 0, 0);
	waits(capture, ts, 2, 40, 0, S, NR_NANOSLEEP, 0, 0, 0);
}

/* Thread 10 waits in a call from before the capture to its end, perhaps with an epoll, or for a
 * child, 20 or 30. Thread 40 does nothing, too, but has run for a moment. */
static uint32_t hanging(uint32_t first, int call, const struct watched *watched)
{
	struct capture capture = {0};
	struct why_query query = {0};
	struct waffle_rec_state state = {.rec = {CAPTURE_START, first, WAFFLE_REC_STATE, 0},
					 .tgid = first,
					 .state = WAFFLE_THREAD_BLOCKED,
					 .task_state = S,
					 .syscall = call};
	struct waffle_rec_open_wait open = {.rec = {END, first, WAFFLE_REC_OPEN_WAIT, 0}};

	begin(&capture, call == NR_WAIT4 ? 10 : 1);
	capture_add(&capture, &state);
	gets(&capture, CAPTURE_START + MS, 2, 0, 40, 0, 0, 0);
	waits(&capture, CAPTURE_START + MS + 1000, 2, 40, 0, S, NR_NANOSLEEP, 0, 0, 0);
	if (call == NR_WAIT4)
		child_reads(&capture);
	state.rec.ts = END;
	state.at_end = 1;
	capture_add(&capture, &state);
	if (watched)
		watches(&capture, watched);
	capture_add(&capture, &open);
	assert_int_equal(why_busiest_program(&query, capture_load(&capture, END)), 0);
	assert_int_equal(query.stuck, query.tid == first && !watched);
	capture_free(&capture);
	return query.tid;
}

static void test_first_process_that_hangs_comes_before_idle_ones(void **state)
{
	static const struct {
		struct watched watched;
		uint32_t tid;
	} rows[] = {
		/* A client waits for its server, and a server for whoever comes. */
		{{"socket:[701], socket:[702]", "tcp 127.0.0.1:40001 <-> 127.0.0.1:80"}, 10},
		{{"socket:[701], socket:[702]", "tcp 127.0.0.1:80 <-> 127.0.0.1:40001"}, 40},
		{{"socket:[701], socket:[702]", "tcp 127.0.0.1:80"}, 40},
		/* It may wait for the timer. */
		{{"socket:[701], anon_inode:[timerfd]", "tcp 127.0.0.1:40001 <-> 127.0.0.1:80"},
		 40},
	};

	(void)state;
	assert_int_equal(hanging(10, NR_POLL, NULL), 10);
	assert_int_equal(hanging(10, NR_EPOLL_WAIT, NULL), 40); /* it may be idle as well */
	assert_int_equal(hanging(20, NR_POLL, NULL), 40);       /* it is not the first one */
	assert_int_equal(hanging(10, NR_WAIT4, NULL), 30);      /* a child is held up */
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(hanging(10, NR_EPOLL_WAIT, &rows[i].watched), rows[i].tid);
}

/* Process 20 has woken thread 10 and is recorded since 2 ms, so `pid` is not one that was named. */
static void waker(struct capture *capture, uint32_t pid)
{
	const struct store_attribute add = {
		.pid = pid, .ts = CAPTURE_START + 2 * MS, .key = STORE_WAKER, .value = "yes"};
	struct error err = ERROR_INIT;

	capture_must(store_writer_add_attribute(capture->writer, &add, &err), err);
}

/* Process 20 runs all the time, and wakes thread 10 each millisecond. 40 is the parent of 10. */
static const struct model *woken_each_ms(struct capture *capture)
{
	begin(capture, 1);
	process(capture, 10, 40);
	waker(capture, 20);
	waker(capture, 40);
	gets(capture, CAPTURE_START + 2 * MS, 2, 0, 20, 0, 0, 0);
	gets(capture, CAPTURE_START + 2 * MS, 3, 0, 40, 0, 0, 0);
	for (uint64_t ms = 1; ms < 10; ms++) {
		waits(capture, CAPTURE_START + (ms - 1) * MS + 1000, 1, 10, 0, S, NR_READ, 0, 0, 0);
		gets(capture, CAPTURE_START + ms * MS, 1, 0, 10, 20, CAPTURE_START + ms * MS, 0);
	}
	return capture_load(capture, END);
}

static void test_a_process_that_was_not_named_is_not_explained_though_it_works(void **state)
{
	struct capture capture = {0};
	struct why_query query = {0};

	(void)state;
	assert_int_equal(why_busiest_program(&query, woken_each_ms(&capture)), 0);
	assert_int_equal(query.tid, 10);
	capture_free(&capture);
}

static uint64_t time_of(const struct why *why, enum why_cause cause, uint32_t tid)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < why->parts.len; i++) {
		const struct why_part *part = &why->parts.data[i];

		if (part->cause == cause && why->model->threads.data[part->thread].tid == tid)
			ns += part->ns;
	}
	return ns;
}

static void test_a_waker_is_followed_since_it_is_recorded_and_not_before(void **state)
{
	struct capture capture = {0};
	const struct model *model = woken_each_ms(&capture);
	struct why_query query = {.tid = 10, .to_ts = END};
	struct error err = ERROR_INIT;
	struct why *why;

	(void)state;
	capture_must(why_new(&why, model, &query, &err), err);
	assert_int_equal(time_of(why, WHY_UNKNOWN, 20), 0);
	assert_in_range(time_of(why, WHY_NOT_RECORDED, 20) + time_of(why, WHY_PIPE, 20), MS,
			2 * MS);
	assert_in_range(time_of(why, WHY_USER_WORK, 20), 6 * MS, 7 * MS);
	why_free(why);
	capture_free(&capture);
}

/* A connection from process 10 to a server of redis, which is process 20, has two ends. */
static void add_connection(struct capture *capture)
{
	static const struct store_object ends[] = {
		{.ino = 1,
		 .pid = 10,
		 .name = "socket:[1]",
		 .detail = "tcp 127.0.0.1:50001 <-> 127.0.0.1:6379"},
		{.ino = 2,
		 .pid = 20,
		 .name = "socket:[2]",
		 .detail = "tcp 127.0.0.1:6379 <-> 127.0.0.1:50001"},
	};
	struct error err = ERROR_INIT;

	for (size_t i = 0; i < 2; i++)
		capture_must(store_writer_add_object(capture->writer, &ends[i], &err), err);
}

/* The command of a client, from one time to the other. */
static void add_command(struct capture *capture, uint64_t id, uint64_t from_ts, uint64_t to_ts)
{
	const struct waffle_rec_span_end end = {.rec = {to_ts, 20, WAFFLE_REC_SPAN_END, 0},
						.span_id = id,
						.tgid = 20,
						.site = SITE_REQUEST};

	capture_hit_of(capture, from_ts, 20, 20, SITE_REQUEST, id, 0, 0, NULL);
	capture_add(capture, &end);
}

/* As many clients send the same command, and others one that is answered at once. */
static void add_commands(struct capture *capture, const char *name, unsigned clients,
			 unsigned others)
{
	add_request_site_named(capture, name);
	for (unsigned i = 1; i <= clients; i++)
		add_command(capture, i, CAPTURE_START + 300 + i, CAPTURE_START + 9 * MS);
	for (unsigned i = 1; i <= others; i++)
		add_command(capture, clients + i, CAPTURE_START + 1000 + i,
			    CAPTURE_START + 1001 + i);
}

/* Thread 11 of process 10 asks redis for nine tenths of the time, which sleeps meanwhile. Thread
 * 12 waits for 11 for less long at a time. Returns the one that is explained. */
static uint32_t explained_of(const char *command, unsigned clients, unsigned others)
{
	struct capture capture = {0};
	struct why_query query = {0};
	const struct why_wanted wanted = {0};
	struct error err = ERROR_INIT;
	uint64_t end_ts = CAPTURE_START + 9 * MS;

	begin(&capture, 1);
	named(&capture, 11, 10, "feed");
	named(&capture, 12, 10, "web");
	add_connection(&capture);
	gets(&capture, CAPTURE_START, 1, 0, 11, 0, 0, 0);
	gets(&capture, CAPTURE_START, 2, 0, 12, 0, 0, 0);
	gets(&capture, CAPTURE_START, 3, 0, 20, 0, 0, 0);
	waits(&capture, CAPTURE_START + 200, 1, 11, 0, S, NR_RECVFROM, 5, 0, 0);
	wait_details(&capture, CAPTURE_START + 200, end_ts, 11, 1, 0, 0);
	waits(&capture, CAPTURE_START + 400, 3, 20, 0, S, NR_NANOSLEEP, 0, 0, 0);
	waits(&capture, CAPTURE_START + 500, 2, 12, 0, S, NR_FUTEX, 0x7f00, FUTEX_COND, 0);
	gets(&capture, CAPTURE_START + 5 * MS, 2, 0, 12, 0, CAPTURE_START + 5 * MS, HARD);
	waits(&capture, CAPTURE_START + 5 * MS + 500, 2, 12, 0, S, NR_FUTEX, 0x7f00, FUTEX_COND, 0);
	gets(&capture, end_ts - 2000, 3, 0, 20, 0, end_ts - 2000, HARD);
	gets(&capture, end_ts, 1, 0, 11, 20, end_ts, 0);
	gets(&capture, end_ts + 1000, 2, 0, 12, 11, end_ts + 1000, 0);
	add_commands(&capture, command, clients, others);
	capture_load(&capture, END);
	capture_must(why_pick(&query, capture.model, &wanted, &err), err);
	capture_free(&capture);
	return query.tid;
}

#define NOBODY UINT32_MAX

/* Thread 10 does this for 8 of 10 ms, while thread 40 is the busiest one. */
struct beside {
	int call;
	uint32_t waker;  /* 0: its own timer; NOBODY: it waits to the end */
	unsigned sleeps; /* that long time is of so many */
};

/* Returns the thread that is explained. */
static uint32_t explained_beside(const struct beside *beside)
{
	struct capture capture = {0};
	struct why_query query = {0};
	uint64_t ts = CAPTURE_START + 3, ns = 8 * MS / beside->sleeps;

	begin(&capture, 1);
	gets(&capture, CAPTURE_START, 3, 0, 40, 0, 0, 0);
	gets(&capture, CAPTURE_START + 1, 2, 0, 20, 0, 0, 0);
	gets(&capture, CAPTURE_START + 2, 1, 0, 10, 0, 0, 0);
	for (unsigned i = 0; i < beside->sleeps; i++, ts += ns) {
		waits(&capture, ts, 1, 10, 0, S, beside->call, 0, 0, 0);
		if (beside->waker == NOBODY)
			break;
		gets(&capture, ts + ns - 2000, 1, 0, 10, beside->waker, ts + ns - 2000,
		     beside->waker ? 0 : HARD);
	}
	if (beside->waker != NOBODY)
		waits(&capture, ts, 1, 10, 0, S, NR_POLL, 0, 0, 0);
	waits(&capture, CAPTURE_START + 9 * MS, 2, 20, 0, S, NR_POLL, 0, 0, 0);
	assert_int_equal(why_busiest_program(&query, capture_load(&capture, END)), 0);
	assert_int_equal(query.first, query.tid == 10);
	capture_free(&capture);
	return query.tid;
}

static void test_who_asks_redis_for_work_is_not_held_up(void **state)
{
	(void)state;
	assert_int_equal(explained_of("RESP GET", 1, 0), 11);
	assert_int_equal(explained_of("RESP GET", 2, 0), 11);
	assert_int_equal(explained_of("RESP BLPOP", 1, 0), 12);
	/* Which of the commands is that of the thread does not matter. */
	assert_int_equal(explained_of("RESP BLPOP", 2, 0), 12);
	assert_int_equal(explained_of("RESP GET", 2, 5000), 11);
	assert_int_equal(explained_of("RESP BLPOP", 2, 5000), 12);
}

static void test_first_process_comes_before_a_busy_one_that_it_does_not_wait_for(void **state)
{
	(void)state;
	assert_int_equal(explained_beside(&(struct beside){NR_READ, 20, 1}), 10);
	assert_int_equal(explained_beside(&(struct beside){NR_READ, 40, 1}), 40);
	assert_int_equal(explained_beside(&(struct beside){NR_NANOSLEEP, 0, 1}), 10);
	/* It polls, or has nothing to do. */
	assert_int_equal(explained_beside(&(struct beside){NR_NANOSLEEP, 0, 20}), 40);
	assert_int_equal(explained_beside(&(struct beside){NR_EPOLL_WAIT, 0, 1}), 40);
	/* It may wait for the busy one. */
	assert_int_equal(explained_beside(&(struct beside){NR_RECVFROM, NOBODY, 1}), 40);
}

/* Thread 10 sleeps, or reads, twenty times, and thread 11 of its process, which runs even less, is
 * in `call` for 8 of 10 ms. */
struct resting {
	int rest;
	uint32_t rest_waker; /* 0: its own timer */
	int call;
	uint32_t waker;  /* 0: its own timer */
	bool found;      /* the user gave a name, not the number of the process */
	unsigned sleeps; /* the first ones of the twenty times are sleeps */
};

#define RESTS 20

/* Returns the thread that is explained. */
static uint32_t explained_at_rest(const struct resting *resting)
{
	struct capture capture = {0};
	struct why_query query = {0};
	uint64_t ts = CAPTURE_START + 3, end_ts = ts + 8 * MS - 1000;

	begin(&capture, 1);
	if (resting->found)
		found(&capture, 10);
	named(&capture, 11, 10, "page");
	gets(&capture, CAPTURE_START, 2, 0, 40, 0, 0, 0);
	gets(&capture, CAPTURE_START, 1, 0, 10, 0, 0, 0);
	gets(&capture, CAPTURE_START + 1, 3, 0, 11, 0, 0, 0);
	waits(&capture, CAPTURE_START + 1000, 2, 40, 0, S, NR_NANOSLEEP, 0, 0, 0);
	waits(&capture, CAPTURE_START + 2, 3, 11, 0, S, resting->call, 5, 0, 0);
	for (unsigned i = 0; i <= RESTS; i++) {
		bool sleeps = i < resting->sleeps;
		uint32_t rest_waker = sleeps ? 0 : resting->rest_waker;

		waits(&capture, ts, 1, 10, 0, S, sleeps ? NR_NANOSLEEP : resting->rest, 0, 0, 0);
		if (i == RESTS)
			break;
		ts += 8 * MS / RESTS;
		gets(&capture, ts - 2000, 1, 0, 10, rest_waker, ts - 2000, rest_waker ? 0 : HARD);
	}
	gets(&capture, end_ts - 1000, 2, 0, 40, 0, end_ts - 1000, HARD);
	gets(&capture, end_ts, 3, 0, 11, resting->waker, end_ts, resting->waker ? 0 : HARD);
	waits(&capture, end_ts, 2, 40, 0, S, NR_NANOSLEEP, 0, 0, 0);
	waits(&capture, end_ts + 1, 3, 11, 0, S, NR_NANOSLEEP, 0, 0, 0);
	assert_int_equal(why_busiest_program(&query, capture_load(&capture, END)), 0);
	assert_int_equal(query.held, query.tid == 11);
	capture_free(&capture);
	return query.tid;
}

static void test_a_thread_that_is_held_up_comes_before_one_that_only_rests(void **state)
{
	(void)state;
	assert_int_equal(
		explained_at_rest(&(struct resting){NR_NANOSLEEP, 0, NR_READ, 40, false, 0}), 11);
	assert_int_equal(
		explained_at_rest(&(struct resting){NR_NANOSLEEP, 0, NR_READ, 40, true, 0}), 11);
	/* It rests as well, has nothing to do, or waits for the one that sleeps. */
	assert_int_equal(
		explained_at_rest(&(struct resting){NR_NANOSLEEP, 0, NR_NANOSLEEP, 0, false, 0}),
		10);
	assert_int_equal(
		explained_at_rest(&(struct resting){NR_NANOSLEEP, 0, NR_EPOLL_WAIT, 0, false, 0}),
		10);
	assert_int_equal(
		explained_at_rest(&(struct resting){NR_NANOSLEEP, 0, NR_READ, 10, false, 0}), 10);
	/* The busiest one is held up itself, if not for much of the time only, and for less. */
	assert_int_equal(explained_at_rest(&(struct resting){NR_READ, 40, NR_READ, 40, false, 0}),
			 10);
	assert_int_equal(explained_at_rest(&(struct resting){NR_READ, 40, NR_READ, 40, true, 6}),
			 11);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_thread_that_is_held_up_comes_before_one_that_only_rests),
		cmocka_unit_test(test_first_process_comes_before_requests_of_others),
		cmocka_unit_test(test_who_asks_redis_for_work_is_not_held_up),
		cmocka_unit_test(test_first_process_that_hangs_comes_before_idle_ones),
		cmocka_unit_test(
			test_first_process_comes_before_a_busy_one_that_it_does_not_wait_for),
		cmocka_unit_test(
			test_a_process_that_was_not_named_is_not_explained_though_it_works),
		cmocka_unit_test(test_a_waker_is_followed_since_it_is_recorded_and_not_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
