// SPDX-License-Identifier: Apache-2.0
/* A wait that goes on when the capture ends, and is like earlier ones of its thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "why_capture.h"

enum { PLACE = 1, OTHER_PLACE };

#define PIPE 1
#define OTHER_PIPE 2
#define HELD_PIPE 3 /* the first one, as the last wait describes it */
#define END_TS 10000

/* The last wait of a thread: where it waits, for what, and since when. */
struct last {
	uint32_t stack, object;
	uint64_t from_ts;
};

static void stack_add(struct capture *capture, uint64_t number)
{
	uint64_t address = STORE_NAMED | number;
	struct store_stack stack = {.addresses = &address, .count = 1, .pid = CAPTURE_PID};
	struct error err = ERROR_INIT;

	capture_must(store_writer_add_stack(capture->writer, &stack, &err), err);
}

static void waited_at(struct capture *capture, uint64_t from_ts, uint64_t ts, uint32_t object)
{
	capture_add(capture, &(struct waffle_rec_wait){.rec = {ts, 11, WAFFLE_REC_WAIT, 0},
						       .from_ts = from_ts,
						       .object = object,
						       .user_stack = PLACE});
}

/* Thread 11 goes on waiting. What it waits for is in a record of its own (records.md). */
static void waits_on(struct capture *capture, const struct last *last)
{
	struct waffle_rec_state state = {.rec = {END_TS, 11, WAFFLE_REC_STATE, 0},
					 .tgid = CAPTURE_PID,
					 .state = WAFFLE_THREAD_BLOCKED,
					 .task_state = S,
					 .syscall = NR_READ,
					 .at_end = 1};
	struct waffle_rec_open_wait open = {.rec = {END_TS, 11, WAFFLE_REC_OPEN_WAIT, 0},
					    .from_ts = last->from_ts,
					    .user_stack = last->stack};

	waits(capture, last->from_ts, 1, 11, 0, S, NR_READ, 3, 0, 0);
	capture_add(capture, &state);
	wait_details(capture, last->from_ts, END_TS, 11, last->object, 0, 0);
	capture_add(capture, &open);
}

/* Thread 11 reads from a pipe, which thread 900 fills after 2,000 and 2,200 ns. Then it waits on.
 */
static struct why *ask_waiting(struct capture *capture, const struct last *last)
{
	capture_begin(capture, true);
	stack_add(capture, PLACE);
	stack_add(capture, OTHER_PLACE);
	object(capture, "pipe:[7]", "");
	object(capture, "pipe:[8]", "");
	object(capture, "pipe:[7]", "write end of process 890, filler");
	named(capture, 11, CAPTURE_PID, "reader");
	named(capture, 900, 890, "filler");
	gets(capture, 1000, 1, 0, 11, 0, 0, 0);
	for (uint64_t i = 0; i < 2; i++) {
		uint64_t from_ts = 1100 + 2500 * i, to_ts = from_ts + 2000 + 200 * i;

		waits(capture, from_ts, 1, 11, 0, S, NR_READ, 3, 0, 0);
		gets(capture, to_ts, 1, 0, 11, 900, to_ts, 0);
		waited_at(capture, from_ts, to_ts, PIPE);
	}
	waits_on(capture, last);
	return ask(capture, END_TS,
		   &(struct why_query){.tid = 11, .from_ts = 1000, .to_ts = END_TS});
}

static void test_an_open_wait_counts_as_the_earlier_ones_at_its_place(void **state)
{
	static const uint32_t pipes[] = {PIPE, HELD_PIPE};

	(void)state;
	for (size_t i = 0; i < sizeof(pipes) / sizeof(pipes[0]); i++) {
		const struct last last = {PLACE, pipes[i], 8000};
		struct capture capture;
		struct why *why = ask_waiting(&capture, &last);

		check_part(why, 0, "pipe", 6200, 900, "likely", "pipe:[7]");
		assert_int_equal(part_of(why, 0)->open_ns, 2000);
		assert_int_equal(part_of(why, 0)->stretches, 3);
		check_step(why, 0, 0, 11, WAFFLE_THREAD_BLOCKED, 3600, 5800);
		check_why_text(why, "pipe:[7], of which 2.00 us go on when the capture ends\n");
		done(&capture, why);
	}
}

/* Elsewhere, for something else, or for longer than ever before. */
static void test_an_open_wait_that_is_not_like_earlier_ones_stays_unknown(void **state)
{
	static const struct last others[] = {
		{OTHER_PLACE, PIPE, 8000},
		{PLACE, OTHER_PIPE, 8000},
		{PLACE, PIPE, 7799},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct capture capture;
		struct why *why = ask_waiting(&capture, &others[i]);

		check_part(why, 0, "pipe", 4200, 900, "likely", "pipe:[7]");
		assert_int_equal(part_of(why, 0)->open_ns, 0);
		assert_string_equal(why_grade_names[part_of(why, 2)->grade], "unknown");
		done(&capture, why);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_open_wait_counts_as_the_earlier_ones_at_its_place),
		cmocka_unit_test(test_an_open_wait_that_is_not_like_earlier_ones_stays_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
