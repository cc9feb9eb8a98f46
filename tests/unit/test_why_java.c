// SPDX-License-Identifier: Apache-2.0
/* Waits of programs in Java, of which only those at the end of the capture have all methods. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "symbolize/stack_java.h"
#include "why_capture.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* Functions of libjvm.so. */
enum { PARK = 0x7f0000001000, WAIT = 0x7f0000002000 };
#define OF_PARK "jdk.internal.misc.Unsafe.park", "java.util.concurrent.locks.LockSupport.parkNanos"

enum { PARKED = 1, IN_INTERPRETER, POOL, POOL_ALONE, OWN, QUEUE, NOTIFIED, STACKS = NOTIFIED };

/* By the number of the stack, from 1 on. */
static const struct {
	uint64_t native;
	const char *methods[7];
} stacks[STACKS] = {
	{PARK, {"jdk.internal.misc.Unsafe.park"}},
	{PARK, {"the JVM's interpreter"}},
	{PARK,
	 {OF_PARK, "com.zaxxer.hikari.util.ConcurrentBag.borrow",
	  "com.zaxxer.hikari.HikariDataSource.getConnection", "Invoice.audit", "Invoice.issue",
	  "java.lang.Thread.run"}},
	{PARK, {OF_PARK, "com.zaxxer.hikari.pool.HikariPool.getConnection", "Invoice.audit"}},
	{PARK, {OF_PARK, "com.acme.jobs.Queue.take", "com.acme.Jobs.main"}},
	{PARK,
	 {OF_PARK, "java.util.concurrent.ThreadPoolExecutor.getTask", "java.lang.Thread.run"}},
	{WAIT, {"java.lang.Object.wait", "com.acme.jobs.Queue.take"}},
};

static uint64_t method_add(struct capture *capture, const char *method)
{
	static uint64_t number;
	struct store_name name = {.pid = CAPTURE_PID, .value = STORE_NAMED | ++number};
	struct error err = ERROR_INIT;
	char text[128];

	snprintf(text, sizeof(text), STORE_JVM "%s", method);
	name.name = text;
	capture_must(store_writer_add_name(capture->writer, &name, &err), err);
	return name.value;
}

static void stacks_add(struct capture *capture)
{
	for (size_t i = 0; i < STACKS; i++) {
		uint64_t addresses[8] = {stacks[i].native};
		struct store_stack stack = {.pid = CAPTURE_PID, .addresses = addresses, .count = 1};
		struct error err = ERROR_INIT;

		for (size_t k = 0; k < LENGTH(stacks[i].methods) && stacks[i].methods[k]; k++)
			addresses[stack.count++] = method_add(capture, stacks[i].methods[k]);
		capture_must(store_writer_add_stack(capture->writer, &stack, &err), err);
	}
}

/* ---- the methods that say most ---- */

static void check_methods(uint32_t stack, const char *inner, const char *entry, const char *caller)
{
	struct stack_names *names;
	struct stack_java java;
	struct capture capture;

	capture_begin(&capture, true);
	stacks_add(&capture);
	capture_load(&capture, 2000);
	names = stack_names_open(capture.reader, false);
	assert_int_equal(stack_java_find(names, stack, 1500, &java), inner != NULL);
	assert_string_equal(java.inner ?: "", inner ?: "");
	assert_string_equal(java.entry ?: "", entry ?: "");
	assert_string_equal(java.caller ?: "", caller ?: "");
	stack_names_close(names);
	capture_free(&capture);
}

static void test_the_library_and_its_caller_are_told_apart_by_their_packages(void **state)
{
	(void)state;
	check_methods(PARKED, NULL, NULL, NULL);
	check_methods(QUEUE, NULL, NULL, NULL);
	check_methods(POOL, "com.zaxxer.hikari.util.ConcurrentBag.borrow",
		      "com.zaxxer.hikari.HikariDataSource.getConnection", "Invoice.audit");
	check_methods(POOL_ALONE, "com.zaxxer.hikari.pool.HikariPool.getConnection", NULL,
		      "Invoice.audit");
	check_methods(OWN, "com.acme.jobs.Queue.take", NULL, NULL);
}

/* ---- the wait at the end ---- */

/* A thread waits until a timeout, and then from 2100 on to the end of the capture. */
struct waiting {
	uint32_t before, at_end; /* stacks; 0: none */
	uint32_t flags;
	int syscall; /* at the end */
	const char *library;
};

static void at_end_add(struct capture *capture, const struct waiting *waiting)
{
	struct waffle_rec_state state = {.rec = {2200, 11, WAFFLE_REC_STATE, 0},
					 .tgid = CAPTURE_PID,
					 .state = WAFFLE_THREAD_BLOCKED,
					 .task_state = S,
					 .syscall = waiting->syscall,
					 .args = {0x5500, FUTEX_COND},
					 .at_end = 1};
	struct waffle_rec_open_wait open = {.rec = {2200, 11, WAFFLE_REC_OPEN_WAIT, 0},
					    .from_ts = 2100,
					    .lock = 0x5500,
					    .user_stack = waiting->at_end,
					    .flags = waiting->flags};

	capture_add(capture, &state);
	capture_add(capture, &open);
}

static struct why *ask_java(struct capture *capture, struct stack_names **names,
			    const struct waiting *waiting)
{
	struct waffle_rec_wait wait = {.rec = {2010, 11, WAFFLE_REC_WAIT, 0},
				       .from_ts = 1020,
				       .user_stack = waiting->before};
	struct why_query query = {.tid = 11, .from_ts = 1020, .to_ts = 2010};
	struct error err = ERROR_INIT;
	struct why *why;

	capture_begin(capture, true);
	stacks_add(capture);
	mapping(capture, 0x7f0000000000, 0x7f0000100000, waiting->library ?: "/jvm/libjvm.so");
	named(capture, 11, CAPTURE_PID, "issuer");
	gets(capture, 1010, 1, 0, 11, 0, 0, 0);
	waits(capture, 1020, 1, 11, 0, S, NR_FUTEX, 0x5500, FUTEX_COND, 0);
	gets(capture, 2010, 1, 0, 11, 0, 2000, HARD);
	capture_add(capture, &wait);
	waits(capture, 2100, 1, 11, 0, S, waiting->syscall, 0x5500, FUTEX_COND, 0);
	if (waiting->at_end)
		at_end_add(capture, waiting);
	capture_load(capture, 2200);
	query.names = *names = stack_names_open(capture->reader, false);
	capture_must(why_new(&why, capture->model, &query, &err), err);
	check_why(why);
	return why;
}

static void end(struct capture *capture, struct stack_names *names, struct why *why)
{
	why_free(why);
	stack_names_close(names);
	capture_free(capture);
}

/* Whether the first cause says where its thread is at the end. */
static bool says_where(const struct waiting *waiting)
{
	struct stack_names *names;
	struct capture capture;
	struct why *why = ask_java(&capture, &names, waiting);
	uint32_t at_end = part_of(why, 0)->at_end;

	check_part(why, 0, "timer", 980, 11, "likely", "futex 0x5500");
	assert_true(at_end == 0 || at_end == MODEL_NONE);
	end(&capture, names, why);
	return at_end != MODEL_NONE;
}

static void test_a_wait_at_the_end_in_the_same_call_of_the_jvm_suggests_where(void **state)
{
	static const struct {
		struct waiting waiting;
		bool says;
	} rows[] = {
		{{PARKED, POOL, 0, NR_FUTEX, NULL}, true},
		{{IN_INTERPRETER, POOL, 0, NR_FUTEX, NULL}, true},
		{{PARKED, 0, 0, NR_FUTEX, NULL}, false},
		{{0, POOL, 0, NR_FUTEX, NULL}, false},
		{{PARKED, NOTIFIED, 0, NR_FUTEX, NULL}, false},
		{{PARKED, POOL, 0, NR_POLL, NULL}, false},
		/* It has no timeout, but the other one had. */
		{{PARKED, POOL, WAFFLE_OPEN_WAIT_INSIDE, NR_FUTEX, NULL}, false},
		{{PARKED, POOL, 0, NR_FUTEX, "/lib/libother.so"}, false},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++)
		assert_int_equal(says_where(&rows[i].waiting), rows[i].says);
}

/* Thread 11 waits three times at one place, whose method is compiled meanwhile. No stack is that of
 * most of the time. */
static void test_of_different_stacks_the_longest_wait_suggests_where(void **state)
{
	static const struct {
		uint64_t from_ts, to_ts;
		uint32_t stack;
	} waited[] = {{1020, 1300, IN_INTERPRETER}, {1310, 1700, PARKED}, {1710, 2000, OWN}};
	const struct waiting open = {0, POOL, 0, NR_FUTEX, NULL};
	struct why_query query = {.tid = 11, .from_ts = 1020, .to_ts = 2000};
	struct error err = ERROR_INIT;
	struct stack_names *names;
	struct capture capture;
	struct why *why;

	(void)state;
	capture_begin(&capture, true);
	stacks_add(&capture);
	mapping(&capture, 0x7f0000000000, 0x7f0000100000, "/jvm/libjvm.so");
	named(&capture, 11, CAPTURE_PID, "issuer");
	gets(&capture, 1010, 1, 0, 11, 0, 0, 0);
	for (size_t i = 0; i < LENGTH(waited); i++) {
		struct waffle_rec_wait wait = {.rec = {waited[i].to_ts, 11, WAFFLE_REC_WAIT, 0},
					       .from_ts = waited[i].from_ts,
					       .user_stack = waited[i].stack};

		waits(&capture, wait.from_ts, 1, 11, 0, S, NR_FUTEX, 0x5500, FUTEX_COND, 0);
		gets(&capture, wait.rec.ts, 1, 0, 11, 0, wait.rec.ts, HARD);
		capture_add(&capture, &wait);
	}
	waits(&capture, 2100, 1, 11, 0, S, NR_FUTEX, 0x5500, FUTEX_COND, 0);
	at_end_add(&capture, &open);
	capture_load(&capture, 2200);
	query.names = names = stack_names_open(capture.reader, false);
	capture_must(why_new(&why, capture.model, &query, &err), err);
	assert_int_equal(part_of(why, 0)->wait, MODEL_NONE);
	assert_int_equal(part_of(why, 0)->at_end, 0);
	end(&capture, names, why);
}

static void check_text(uint32_t at_end, const char *expected)
{
	struct stack_names *names;
	struct capture capture;
	struct why *why =
		ask_java(&capture, &names, &(struct waiting){PARKED, at_end, 0, NR_FUTEX, NULL});

	check_why_view(why, &(struct why_view){.names = names, .causes = 10}, expected);
	end(&capture, names, why);
}

static void test_the_text_names_the_library_and_its_caller(void **state)
{
	(void)state;
	check_text(POOL, "issuer (11), futex 0x5500, at the end in "
			 "com.zaxxer.hikari.util.ConcurrentBag.borrow, by "
			 "com.zaxxer.hikari.HikariDataSource.getConnection, from Invoice.audit\n");
	check_text(POOL_ALONE, "issuer (11), futex 0x5500, at the end in "
			       "com.zaxxer.hikari.pool.HikariPool.getConnection, from "
			       "Invoice.audit\n");
	check_text(OWN, "issuer (11), futex 0x5500, at the end in com.acme.jobs.Queue.take\n");
	check_text(QUEUE, "issuer (11), futex 0x5500\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_library_and_its_caller_are_told_apart_by_their_packages),
		cmocka_unit_test(test_a_wait_at_the_end_in_the_same_call_of_the_jvm_suggests_where),
		cmocka_unit_test(test_of_different_stacks_the_longest_wait_suggests_where),
		cmocka_unit_test(test_the_text_names_the_library_and_its_caller),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
