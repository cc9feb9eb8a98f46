// SPDX-License-Identifier: Apache-2.0
/* Requests of a loop that are answered one after the other by threads of one server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "why_capture.h"

#define MS 1000000ull
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

#define LOOP 11
#define FIRST 41 /* threads of the server: one for each request */
#define SECOND 42

#define SERVER_PID 40

static void server_takes(struct capture *capture, uint64_t ts, uint32_t tid, uint64_t id)
{
	capture_hit_of(capture, ts, SERVER_PID, tid, SITE_REQUEST, id, 0, 0, NULL);
}

static void server_answers(struct capture *capture, uint64_t ts, uint32_t tid, uint64_t id)
{
	const struct waffle_rec_span_end rec = {.rec = {ts, tid, WAFFLE_REC_SPAN_END, 0},
						.span_id = id,
						.tgid = SERVER_PID,
						.site = SITE_REQUEST};

	capture_add(capture, &rec);
}

/* How each row differs from a request that is queued behind another one. */
struct turn {
	uint64_t taken_ts; /* when the server's second thread takes the request up */
	uint64_t other_ts; /* when the other request ends */
	bool window;       /* the thread is explained, not the request */
};

/* The loop waits for the first thread until 20 ms, and for the second until 40 ms, when it ends the
 * request that is explained. In between, a timer wakes it. */
static struct why *explain(struct capture *capture, const struct turn *turn)
{
	struct why_query window = {.tid = LOOP, .from_ts = MS + 10, .to_ts = 40 * MS};
	struct why_query request = {.name = "HTTP GET", .slowest = 1};

	capture_begin(capture, true);
	add_request_site(capture);
	kernel_stack(capture, 0xffff8000, "hrtimer_wakeup");
	named(capture, FIRST, SERVER_PID, "first");
	named(capture, SECOND, SERVER_PID, "second");
	gets(capture, MS - 200, 1, 0, LOOP, 0, 0, 0);
	gets(capture, MS - 190, 2, 0, FIRST, 0, 0, 0);
	gets(capture, MS - 180, 3, 0, SECOND, 0, 0, 0);
	capture_hit(capture, MS + 1, LOOP, SITE_REQUEST, 1, 0, 0, NULL);
	capture_hit(capture, MS + 2, LOOP, SITE_REQUEST, 2, 0, 0, NULL);
	server_takes(capture, MS + 3, FIRST, 3);
	if (turn->taken_ts < 20 * MS)
		server_takes(capture, turn->taken_ts, SECOND, 4);
	waits(capture, MS + 10, 1, LOOP, 0, S, NR_EPOLL_WAIT, 4, 0, 0);
	gets(capture, 10 * MS, 1, 0, LOOP, 0, 10 * MS, HARD);
	wake_details(capture, 10 * MS, 0, LOOP, 1, HARD);
	waits(capture, 10 * MS + 10, 1, LOOP, 0, S, NR_EPOLL_WAIT, 4, 0, 0);
	gets(capture, 20 * MS, 1, 0, LOOP, FIRST, 20 * MS, 0);
	server_answers(capture, 20 * MS + 1, FIRST, 3);
	if (turn->other_ts < 40 * MS)
		capture_end(capture, turn->other_ts, LOOP, 2);
	if (turn->taken_ts > 20 * MS)
		server_takes(capture, turn->taken_ts, SECOND, 4);
	waits(capture, 20 * MS + 30, 1, LOOP, 0, S, NR_EPOLL_WAIT, 4, 0, 0);
	gets(capture, 40 * MS, 1, 0, LOOP, SECOND, 40 * MS, 0);
	server_answers(capture, 40 * MS + 1, SECOND, 4);
	capture_end(capture, 40 * MS + 2, LOOP, 1);
	if (turn->other_ts > 40 * MS)
		capture_end(capture, turn->other_ts, LOOP, 2);
	return ask(capture, 50 * MS, turn->window ? &window : &request);
}

static void test_what_answers_the_request_before_explains_the_queue(void **state)
{
	const struct turn turn = {.taken_ts = 20 * MS + 20, .other_ts = 20 * MS + 10};
	struct capture capture;
	struct why *why;

	(void)state;
	why = explain(&capture, &turn);
	check_part(why, 0, "user-work", 20 * MS - 30, SECOND, "likely", "");
	check_part(why, 1, "user-work", 19 * MS - 20, FIRST, "likely", "");
	assert_string_equal(strtab_get(why->texts, why->steps.data[part_of(why, 1)->step].meaning),
			    "queued behind another request, which was answered first");
	done(&capture, why);
}

/* The first answer may have been for the same request. It ends the wait all the same. */
static void test_nothing_is_queued_behind_a_request_that_goes_on(void **state)
{
	const struct turn turn = {.taken_ts = 20 * MS + 20, .other_ts = 45 * MS};
	struct capture capture;
	struct why *why;

	(void)state;
	why = explain(&capture, &turn);
	check_part(why, 0, "user-work", 20 * MS - 30, SECOND, "likely", "");
	check_part(why, 1, "user-work", 19 * MS - 20, FIRST, "likely", "");
	assert_int_equal(why->steps.data[part_of(why, 1)->step].meaning, 0);
	done(&capture, why);
}

/* Nothing shows what the thread waits for at the end of a window. */
static void test_a_thread_in_a_window_is_in_no_queue(void **state)
{
	const struct turn turn = {
		.taken_ts = 20 * MS + 20, .other_ts = 20 * MS + 10, .window = true};
	struct capture capture;
	struct why *why;

	(void)state;
	why = explain(&capture, &turn);
	check_part(why, 0, "user-work", 20 * MS - 30, SECOND, "likely", "");
	check_part(why, 1, "user-work", 19 * MS - 20, SECOND, "likely", "");
	done(&capture, why);
}

/* The second thread has the request all the time. */
static void test_a_request_that_is_taken_up_at_once_is_in_no_queue(void **state)
{
	const struct turn turn = {.taken_ts = MS + 4, .other_ts = 20 * MS + 10};
	struct capture capture;
	struct why *why;

	(void)state;
	why = explain(&capture, &turn);
	check_part(why, 0, "user-work", 39 * MS - 50, SECOND, "likely", "");
	done(&capture, why);
}

/* The loop 20 asks a server at its timeout at 320 ms. Its main thread 30 hands the request to 31,
 * which answers, later than thread 40 wakes the loop. */
static void test_a_loop_may_have_asked_a_thread_that_handed_the_request_on(void **state)
{
	static const struct {
		uint32_t tid, pid;
		const char *name;
	} threads[] = {{20, 20, "loop"}, {30, 30, "server"}, {31, 30, "server"}, {40, 40, "user"}};
	struct capture capture;
	struct why *why;

	(void)state;
	capture_begin(&capture, true);
	gets(&capture, MS - 200, 1, 0, 11, 0, 0, 0);
	capture_span(&capture, MS, 11, 1);
	kernel_stack(&capture, 0xffff8000, "hrtimer_wakeup");
	for (uint16_t i = 0; i < 4; i++) {
		named(&capture, threads[i].tid, threads[i].pid, threads[i].name);
		gets(&capture, MS - 170 + i, 4 + i, 0, threads[i].tid, 0, 0, 0);
	}
	waits(&capture, MS + 5, 5, 30, 0, S, NR_FUTEX, 0x7f00, FUTEX_COND, 0);
	waits(&capture, MS + 6, 6, 31, 0, S, NR_READ, 8, 0, 0);
	waits(&capture, MS + 7, 7, 40, 0, S, NR_NANOSLEEP, 9, 0, 0);
	waits(&capture, 2 * MS, 1, 11, 0, S, NR_READ, 7, 0, 0);
	waits(&capture, 10 * MS, 4, 20, 0, S, NR_EPOLL_WAIT, 4, 1, 3);
	wake_details(&capture, 320 * MS, 0, 20, 1, HARD);
	gets(&capture, 320 * MS, 4, 0, 20, 0, 320 * MS, HARD);
	gets(&capture, 320 * MS + 20, 5, 0, 30, 20, 320 * MS + 20, 0);
	waits(&capture, 320 * MS + 100, 4, 20, 0, S, NR_EPOLL_WAIT, 4, 1, 3);
	waits(&capture, 321 * MS, 5, 30, 0, S, NR_NANOSLEEP, 9, 0, 0);
	gets(&capture, 600 * MS - 50, 7, 0, 40, 0, 600 * MS - 50, HARD);
	gets(&capture, 600 * MS, 4, 0, 20, 40, 600 * MS, 0);
	waits(&capture, 600 * MS + 100, 4, 20, 0, S, NR_EPOLL_WAIT, 4, 1, 3);
	gets(&capture, 601 * MS - 200, 5, 0, 30, 0, 601 * MS - 200, HARD);
	gets(&capture, 601 * MS - 100, 6, 0, 31, 30, 601 * MS - 100, 0);
	wake_details(&capture, 601 * MS - 60, 0, 20, 1, HARD);
	gets(&capture, 601 * MS - 60, 4, 0, 20, 0, 601 * MS - 60, HARD);
	waits(&capture, 601 * MS - 40, 4, 20, 0, S, NR_EPOLL_WAIT, 4, 1, 3);
	gets(&capture, 601 * MS, 4, 0, 20, 31, 601 * MS, 0);
	waits(&capture, 601 * MS + 10, 6, 31, 0, S, NR_READ, 8, 0, 0);
	gets(&capture, 601 * MS + 40, 6, 0, 31, 20, 601 * MS + 40, 0);
	gets(&capture, 601 * MS + 50, 1, 0, 11, 31, 601 * MS + 50, 0);
	capture_end(&capture, 601 * MS + 100, 11, 1);
	why = ask_span(&capture, 1000 * MS);
	check_part(why, 0, "timer", 311 * MS - 200, 20, "likely", "");
	done(&capture, why);
}

/* The server of redis, with one loop, is awake for half of the time. It executes each command at
 * once, so one that waits is for another client's, unless the server asks others. */
static void test_a_command_of_redis_waits_for_another_clients(void **state)
{
	static const struct {
		const char *request, *socket;
		bool known;
	} rows[] = {{"HTTP GET", "tcp 127.0.0.1:6379 <-> 127.0.0.1:40000", false},
		    {"RESP BRPOP", "tcp 127.0.0.1:6379 <-> 127.0.0.1:40000", true},
		    {"RESP BRPOP", "tcp 127.0.0.1:50000 <-> 127.0.0.1:80", false}};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct capture capture;
		struct why *why;

		capture_begin(&capture, true);
		object(&capture, "socket:[701]", rows[i].socket);
		add_request_site_named(&capture, rows[i].request);
		named(&capture, 30, 30, "producer");
		gets(&capture, MS - 200, 1, 0, LOOP, 0, 0, 0);
		gets(&capture, MS - 170, 4, 0, 30, 0, 0, 0);
		capture_hit(&capture, MS, LOOP, SITE_REQUEST, 1, 0, 0, NULL);
		waits(&capture, MS + 10, 1, LOOP, 0, S, NR_EPOLL_WAIT, 4, 0, 0);
		gets(&capture, 10 * MS, 1, 0, LOOP, 30, 10 * MS, 0);
		capture_hit(&capture, 10 * MS + 1, LOOP, SITE_REQUEST, 2, 0, 0, NULL);
		capture_end(&capture, 19 * MS, LOOP, 2);
		capture_end(&capture, 20 * MS, LOOP, 1);
		why = ask(&capture, 21 * MS,
			  &(struct why_query){.name = rows[i].request, .slowest = 1});
		if (rows[i].known)
			check_part(why, 1, "user-work", 9 * MS - 10, 30, "likely", "");
		else
			check_part(why, 1, "unknown", 9 * MS - 10, 0, "unknown",
				   "woken for another request; what this one waited for may have "
				   "come while it was awake");
		done(&capture, why);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_answers_the_request_before_explains_the_queue),
		cmocka_unit_test(test_nothing_is_queued_behind_a_request_that_goes_on),
		cmocka_unit_test(test_a_thread_in_a_window_is_in_no_queue),
		cmocka_unit_test(test_a_request_that_is_taken_up_at_once_is_in_no_queue),
		cmocka_unit_test(test_a_command_of_redis_waits_for_another_clients),
		cmocka_unit_test(test_a_loop_may_have_asked_a_thread_that_handed_the_request_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
