// SPDX-License-Identifier: Apache-2.0
/* The culprit that is named: among many equal ones, if there is none, and for a span of two
 * threads. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <yajl/yajl_tree.h>

#include "why_capture.h"

#include "analyze/why/why_outside.h"
#include "render/json/why_json.h"
#include "render/text/why_text.h"
#include "target/process/descriptors.h"

#define USER WAFFLE_TASK_USER_FLAG
#define IDLE "the CPU was idle: woken late"

/* Thread 11 of process 100 runs on CPU 1 and begins a span at 1000. */
static void begin(struct capture *capture)
{
	capture_begin(capture, true);
	named(capture, 11, CAPTURE_PID, "worker");
	gets(capture, 1000, 1, 0, 11, 0, 0, 0);
	capture_span(capture, 1000, 11, 1);
}

static yajl_val json_of(const struct why *why)
{
	const struct why_view view = {0};
	char *printed = NULL, message[128];
	size_t len = 0;
	FILE *out = open_memstream(&printed, &len);
	yajl_val tree;

	assert_int_equal(why_print_json(why, &view, out), 0);
	fclose(out);
	tree = yajl_tree_parse(printed, message, sizeof(message));
	free(printed);
	assert_non_null(tree);
	return tree;
}

static yajl_val first(yajl_val of, const char *key)
{
	yajl_val found = yajl_tree_get(of, (const char *[]){key, NULL}, yajl_t_array);

	assert_true(YAJL_IS_ARRAY(found) && YAJL_GET_ARRAY(found)->len);
	return YAJL_GET_ARRAY(found)->values[0];
}

static long long number_at(yajl_val of, const char *a, const char *b)
{
	yajl_val found = yajl_tree_get(of, (const char *[]){a, b, NULL}, yajl_t_number);

	assert_non_null(found);
	return YAJL_GET_INTEGER(found);
}

static long long number_in(yajl_val of, const char *key)
{
	yajl_val found = yajl_tree_get(of, (const char *[]){key, NULL}, yajl_t_number);

	assert_non_null(found);
	return YAJL_GET_INTEGER(found);
}

/* ---- not recorded ---- */

/* The thread of that name whose process should be recorded as well, if it ends a read of the span
 * of 1000 ns that lasts so long; 0: none. */
static uint32_t outside_of(const char *name, uint32_t flags, uint64_t ns)
{
	struct capture capture;
	struct why *why;
	struct why_outside found;
	uint32_t tid;

	begin(&capture);
	named_as(&capture, 900, 890, name, flags);
	object(&capture, "pipe:[7]", "");
	waits(&capture, 1100, 1, 11, 0, S, NR_READ, 3, 0, 0);
	gets(&capture, 1100 + ns, 1, 0, 11, 900, 1100 + ns, 0);
	wait_details(&capture, 1100, 1100 + ns, 11, 1, 0, 0);
	capture_end(&capture, 2000, 11, 1);
	why = ask_span(&capture, 3000);
	found = why_outside_find(why);
	tid = found.pid ? why->model->threads.data[found.thread].tid : 0;
	done(&capture, why);
	return tid;
}

static void test_a_process_at_which_much_ends_should_be_recorded_as_well(void **state)
{
	(void)state;
	assert_int_equal(outside_of("server", USER, 800), 900);
	assert_int_equal(outside_of("server", USER, 150), 0);
	assert_int_equal(outside_of("kswapd0", USER, 800), 900);
	assert_int_equal(outside_of("node/http", USER, 800), 900);
	assert_int_equal(outside_of("hwrng", WAFFLE_TASK_KERNEL_FLAG, 800), 0);
	/* A capture of an earlier version does not say which threads are the kernel's. */
	assert_int_equal(outside_of("server", 0, 800), 900);
	assert_int_equal(outside_of("kworker/0:1", 0, 800), 0);
	assert_int_equal(outside_of("kswapd0", 0, 800), 0);
}

/* Nobody has ended the wait of thread 11 for the lock of a file when the capture ends. */
static void test_the_holder_of_a_file_lock_should_be_recorded_as_well(void **state)
{
	static const struct {
		const char *detail;
		uint32_t pid;
	} rows[] = {{"ext4, locked by process 900, sh", 900},
		    {"ext4, locked by 2 processes: sh (900), sh (901)", 0},
		    {"ext4", 0}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct why_query query = {.tid = 11, .from_ts = 0, .to_ts = UINT64_MAX};
		struct capture capture;
		struct why_outside found;
		struct why *why;

		begin(&capture);
		object(&capture, "/srv/lock", rows[i].detail);
		waits(&capture, 1100, 1, 11, 0, S, NR_FLOCK, 3, 0, 0);
		wait_details(&capture, 1100, 3000, 11, 1, 0, 0);
		why = ask(&capture, 3000, &query);
		found = why_outside_find(why);
		assert_int_equal(found.pid, rows[i].pid);
		assert_int_equal(found.thread, MODEL_NONE);
		done(&capture, why);
	}
}

/* The process had closed the file when its name was looked up, and another one has it open later.
 * A file of another device is another one. */
static void test_a_file_that_was_closed_early_has_its_later_name(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	for (uint32_t dev = 8; dev < 10; dev++) {
		struct store_object name = {.ino = 77,
					    .dev = dev,
					    .name = "/srv/session",
					    .detail = DESCRIPTOR_EARLIER};
		struct error err = ERROR_INIT;

		begin(&capture);
		file_on(&capture, "inode 77 of /srv", 8);
		capture_must(store_writer_add_object(capture.writer, &name, &err), err);
		waits(&capture, 1100, 1, 11, 0, S, NR_FLOCK, 3, 0, 0);
		gets(&capture, 9000, 1, 0, 11, 900, 9000, 0);
		wait_details(&capture, 1100, 9000, 11, 1, 0, 0);
		capture_end(&capture, 9100, 11, 1);
		why = ask_span(&capture, 9200);
		assert_string_equal(strtab_get(why->texts, part_of(why, 0)->object),
				    dev == 8 ? "/srv/session (ext4)" : "inode 77 of /srv (ext4)");
		done(&capture, why);
	}
}

/* ---- nice ---- */

static void add_nice(struct capture *capture, uint32_t pid, const char *value)
{
	const struct store_attribute add = {
		.pid = pid, .ts = CAPTURE_START, .key = STORE_NICE, .value = value};
	struct error err = ERROR_INIT;

	capture_must(store_writer_add_attribute(capture->writer, &add, &err), err);
}

/* Process 10 waits for the CPU that another one has, 20 or 900. Of these, 20 is recorded. */
static void check_nice(const char *value, uint32_t other, const char *value_of_other,
		       const char *printed)
{
	struct capture capture;
	struct why *why;

	capture_begin(&capture, true);
	add_nice(&capture, CAPTURE_PID, value);
	add_nice(&capture, other, value_of_other);
	named(&capture, CAPTURE_PID, CAPTURE_PID, "backup");
	named(&capture, other, other, "cc1");
	gets(&capture, 1000, 1, 0, CAPTURE_PID, 0, 0, 0);
	capture_span(&capture, 1000, CAPTURE_PID, 1);
	gets(&capture, 2000, 1, CAPTURE_PID, other, 0, 0, 0);
	gets(&capture, 8000, 1, other, CAPTURE_PID, 0, 0, 0);
	capture_end(&capture, 9000, CAPTURE_PID, 1);
	why = ask_span(&capture, 9100);
	check_why_text(why, printed);
	done(&capture, why);
}

static void test_the_nice_value_of_who_waits_for_a_cpu_is_told(void **state)
{
	(void)state;
	check_nice("19", 900, "", " cc1 (900), while backup (10) has nice 19\n");
	check_nice("-5", 900, "", " cc1 (900)\n");
	check_nice("99", 900, "", " cc1 (900)\n");
	check_nice("", 900, "", " cc1 (900)\n");
	check_nice("19", 20, "", " cc1 (20), while backup (10) has nice 19\n");
	check_nice("19", 20, "5", " cc1 (20), while backup (10) has nice 19\n");
	check_nice("19", 20, "19", " cc1 (20)\n");
	check_nice("5", 20, "19", " cc1 (20)\n");
}

/* ---- ended by another thread ---- */

static void test_span_that_another_thread_ended_is_likely_at_best(void **state)
{
	struct capture capture;
	struct why *why;
	yajl_val json;

	(void)state;
	begin(&capture);
	named(&capture, 12, CAPTURE_PID, "ender");
	waits(&capture, 1100, 1, 11, 0, S, NR_NANOSLEEP, 0, 0, 0);
	gets(&capture, 1900, 1, 0, 11, 0, 1900, HARD);
	capture_end(&capture, 2000, 12, 1);
	why = ask_span(&capture, 3000);
	/* Its own thread sleeps, but it may have handed over the span before. */
	check_part(why, 0, "unknown", 900, 12, "unknown", "");
	check_part(why, 1, "running", 100, 11, "likely", "");
	check_why_text(why, "  ended by ender (12): its causes are likely at best\n");
	json = json_of(why);
	assert_int_equal(number_at(first(json, "instances"), "ended_by", "tid"), 12);
	yajl_tree_free(json);
	done(&capture, why);
}

static void test_span_that_was_handed_over_is_from_there_on_what_the_other_thread_did(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	capture_begin(&capture, true);
	named(&capture, 12, CAPTURE_PID, "ender");
	gets(&capture, 1005, 1, 0, 11, 0, 0, 0);
	gets(&capture, 1006, 2, 0, 12, 0, 0, 0);
	waits(&capture, 1007, 2, 12, 0, S, NR_FUTEX, 0x7f00, FUTEX_COND, 0);
	capture_span(&capture, 1010, 11, 1);
	gets(&capture, 1035, 2, 0, 12, 11, 1030, 0);
	waits(&capture, 1040, 1, 11, 0, S, NR_NANOSLEEP, 0, 0, 0);
	capture_end(&capture, 1110, 12, 1);
	gets(&capture, 1150, 1, 0, 11, 0, 1150, HARD);
	why = ask_span(&capture, 1200);
	check_part(why, 0, "user-work", 75, 12, "likely", "");
	check_step(why, 0, 0, 11, 0, 1030, 1110);
	check_step(why, 0, 1, 12, WAFFLE_THREAD_RUNNING, 1035, 1110);
	check_part(why, 1, "running", 20, 11, "likely", "");
	check_part(why, 2, "cpu-contention", 5, 0, "likely", "the CPU was idle: woken late");
	check_why_text(why, "80 ns of the span ← handed over to ender (12), which");
	/* The times are those of its own thread. */
	assert_int_equal(why->instances.data[0].running_ns, 30);
	assert_int_equal(why->instances.data[0].blocked_ns, 70);
	done(&capture, why);
}

static void test_span_that_its_own_thread_ended_says_nothing_of_it(void **state)
{
	struct capture capture;
	struct why *why;
	yajl_val json;

	(void)state;
	begin(&capture);
	capture_end(&capture, 2000, 11, 1);
	why = ask_span(&capture, 3000);
	check_part(why, 0, "running", 1000, 11, "certain", "");
	assert_int_equal(why->instances.data[0].ended_by, MODEL_NONE);
	json = json_of(why);
	assert_non_null(yajl_tree_get(first(json, "instances"), (const char *[]){"ended_by", NULL},
				      yajl_t_null));
	yajl_tree_free(json);
	done(&capture, why);
}

/* ---- nobody on the CPU ---- */

static void test_idle_cpu_is_not_another_thread(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	waits(&capture, 1100, 1, 11, 0, S, NR_NANOSLEEP, 0, 0, 0);
	gets(&capture, 1900, 1, 0, 11, 0, 1200, HARD);
	capture_end(&capture, 2000, 11, 1);
	why = ask_span(&capture, 3000);
	check_part(why, 0, "cpu-contention", 700, 0, "likely", IDLE);
	check_why_text(why, "cpu-contention    likely   " IDLE "\n");
	done(&capture, why);
}

static void test_cpu_of_which_nothing_is_known_is_not_idle(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	gets(&capture, 1100, 1, 11, 99, 0, 0, 0);
	gets(&capture, 1900, 1, 99, 11, 0, 0, 0);
	capture_end(&capture, 2000, 11, 1);
	why = ask_span(&capture, 3000);
	check_part(why, 0, "cpu-contention", 800, 99, "certain", "");
	done(&capture, why);
}

/* ---- many alike ---- */

/* Threads from `first` on are `comm` of process `pid`; each takes the CPU for 10 and one more. */
static uint64_t take_turns(struct capture *capture, uint64_t ts, uint32_t first, uint32_t count,
			   uint32_t pid, const char *comm)
{
	for (uint32_t i = 0; i < count; i++) {
		named(capture, first + i, pid, comm);
		gets(capture, ts, 1, 11, first + i, 0, 0, 0);
		gets(capture, ts + 10 + i, 1, first + i, 11, 0, 0, 0);
		ts += 20 + i;
	}
	return ts;
}

static void test_more_than_four_threads_that_are_alike_are_one_cause(void **state)
{
	struct capture capture;
	const struct why_part *part;
	uint64_t ts;
	struct why *why;
	yajl_val json, cause;

	(void)state;
	begin(&capture);
	ts = take_turns(&capture, 1010, 60, 40, 500, "hog");
	capture_end(&capture, ts, 11, 1);
	why = ask_span(&capture, 9000);
	/* The last one had the longest turn. */
	check_part(why, 0, "cpu-contention", 40 * 10 + 39 * 40 / 2, 99, "certain", "");
	check_part(why, 1, "running", 10 + 40 * 10, 11, "certain", "");
	assert_int_equal(why->instances.data[0].part_count, 2);
	part = part_of(why, 0);
	assert_int_equal(part->threads, 40);
	assert_int_equal(part->stretches, 40);
	assert_int_equal(part_of(why, 1)->threads, 1);
	check_step(why, 0, 0, 11, WAFFLE_THREAD_RUNNABLE, ts - 59, ts - 10);
	check_why_text(why, "certain  40 threads of hog (500)\n");
	json = json_of(why);
	cause = first(first(json, "instances"), "causes");
	assert_int_equal(YAJL_GET_INTEGER(yajl_tree_get(cause, (const char *[]){"threads", NULL},
							yajl_t_number)),
			 40);
	assert_int_equal(number_at(cause, "culprit", "tid"), 99);
	yajl_tree_free(json);
	done(&capture, why);
}

/* As of a build: each process is another one, and gone soon. */
static void test_more_than_four_processes_of_one_name_are_one_cause(void **state)
{
	struct capture capture;
	uint64_t ts = 1010;
	struct why *why;
	yajl_val json, cause;

	(void)state;
	begin(&capture);
	for (uint32_t i = 0; i < 40; i++)
		ts = take_turns(&capture, ts, 100 + 2 * i, i ? 1 : 2, 100 + 2 * i, "cc1");
	capture_end(&capture, ts, 11, 1);
	why = ask_span(&capture, 9000);
	check_part(why, 0, "running", 10 + 41 * 10, 11, "certain", "");
	check_part(why, 1, "cpu-contention", 41 * 10 + 1, 101, "certain", "");
	assert_int_equal(why->instances.data[0].part_count, 2);
	check_why_text(why, "certain  41 threads of 40 processes named cc1\n");
	json = json_of(why);
	cause = YAJL_GET_ARRAY(yajl_tree_get(first(json, "instances"),
					     (const char *[]){"causes", NULL}, yajl_t_array))
			->values[1];
	assert_int_equal(number_in(cause, "threads"), 41);
	assert_int_equal(number_in(cause, "processes"), 40);
	yajl_tree_free(json);
	done(&capture, why);
}

/* Of those that are recorded. */
static void test_four_threads_and_those_of_other_names_stay_apart(void **state)
{
	struct capture capture;
	uint64_t ts;
	struct why *why;
	yajl_val json, sum;

	(void)state;
	begin(&capture);
	ts = take_turns(&capture, 1010, 12, 2, 500, "hog");
	ts = take_turns(&capture, ts, 14, 2, 501, "hog");
	ts = take_turns(&capture, ts, 20, 4, 500, "fig");
	ts = take_turns(&capture, ts, 30, 4, 500, "pig");
	capture_end(&capture, ts, 11, 1);
	why = ask_span(&capture, 9000);
	assert_int_equal(why->instances.data[0].part_count, 1 + 12);
	check_part(why, 0, "running", 10 + 12 * 10, 11, "certain", "");
	for (uint32_t i = 1; i < 13; i++)
		assert_int_equal(part_of(why, i)->threads, 1);
	/* Each of them took less than the thread itself, and all of them took more. */
	check_why_text(why, "  by cause: 50.8 % cpu-contention (12 culprits, fig (23) 4.9 %), 49.2 "
			    "% running\n");
	json = json_of(why);
	sum = first(first(json, "instances"), "by_cause");
	assert_int_equal(number_in(sum, "duration_ns"), 12 * 10 + 14);
	assert_int_equal(number_in(sum, "culprits"), 12);
	yajl_tree_free(json);
	done(&capture, why);
}

/* Other threads of its own process take the CPU of thread 11 most of the time. */
static void test_a_process_that_takes_its_own_cpus_is_told(void **state)
{
	struct capture capture;
	uint64_t ts;
	struct why *why;

	(void)state;
	begin(&capture);
	ts = take_turns(&capture, 1010, 12, 4, CAPTURE_PID, "calc");
	ts = take_turns(&capture, ts, 20, 3, 500, "hog");
	capture_end(&capture, ts, 11, 1);
	why = ask_span(&capture, 9000);
	check_why_text(why, "cpu-contention (7 culprits, calc (15) 8.2 %; its own process 28.9 "
			    "%)\n");
	done(&capture, why);
}

/* Each of the threads takes the CPU from thread 11 for so long. */
static uint64_t rivals_take_turns(struct capture *capture, uint64_t ts, const uint32_t *tids,
				  const uint64_t *ns, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		named(capture, tids[i], tids[i], "xz");
		gets(capture, ts, 1, 11, tids[i], 0, 0, 0);
		gets(capture, ts + ns[i], 1, tids[i], 11, 0, 0, 0);
		ts += ns[i] + 10;
	}
	return ts;
}

/* Compressors that are not recorded take the CPU. One row says what they all take, unless one of
 * them takes at least two thirds of that. */
static void test_rivals_of_one_name_are_one_cause(void **state)
{
	static const uint32_t tids[] = {500, 501, 502};
	static const struct {
		uint64_t ns[3];
		uint32_t parts, threads;
	} rows[] = {{{100, 110, 120}, 2, 3}, {{100, 100, 399}, 2, 3}, {{100, 100, 400}, 4, 1}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct capture capture;
		struct why *why;
		uint64_t ts;

		begin(&capture);
		ts = rivals_take_turns(&capture, 1010, tids, rows[i].ns, 3);
		capture_end(&capture, ts, 11, 1);
		why = ask_span(&capture, 9000);
		assert_int_equal(why->instances.data[0].part_count, rows[i].parts);
		check_part(why, 0, "cpu-contention",
			   rows[i].threads > 1 ? ts - 1010 - 30 : rows[i].ns[2], 502, "certain",
			   "");
		assert_int_equal(part_of(why, 0)->threads, rows[i].threads);
		assert_int_equal(part_of(why, 0)->processes, rows[i].threads);
		if (rows[i].threads > 1)
			check_why_text(why, "certain  3 processes named xz\n");
		done(&capture, why);
	}
}

/* Beside a group, the parts of others stay what they are. */
static void test_sums_stay_exact_with_several_groups(void **state)
{
	struct capture capture;
	uint64_t ts;
	struct why *why;

	(void)state;
	begin(&capture);
	ts = take_turns(&capture, 1010, 60, 7, 500, "hog");
	ts = take_turns(&capture, ts, 70, 1, 501, "one");
	ts = take_turns(&capture, ts, 80, 5, 502, "pig");
	waits(&capture, ts, 1, 11, 0, S, NR_NANOSLEEP, 0, 0, 0);
	gets(&capture, ts + 300, 1, 0, 11, 0, ts + 300, HARD);
	capture_end(&capture, ts + 300, 11, 1);
	why = ask_span(&capture, 9000);
	check_part(why, 0, "sleep", 300, 11, "certain", "");
	check_part(why, 1, "running", 10 + 13 * 10, 11, "certain", "");
	check_part(why, 2, "cpu-contention", 7 * 10 + 21, 66, "certain", "");
	check_part(why, 3, "cpu-contention", 5 * 10 + 10, 84, "certain", "");
	check_part(why, 4, "cpu-contention", 10, 70, "certain", "");
	assert_int_equal(part_of(why, 2)->threads, 7);
	assert_int_equal(part_of(why, 3)->threads, 5);
	assert_int_equal(why->instances.data[0].part_count, 5);
	done(&capture, why);
}

/* ---- many objects ---- */

/* Thread 11 waits `count` times, each time for another connection, for 10 and one more. The threads
 * from `peer` on, `peers` of them, answer in turn. */
static uint64_t ask_in_turn(struct capture *capture, const char *kind, uint64_t ts,
			    uint32_t *number, uint32_t count, uint32_t peer, uint32_t peers)
{
	for (uint32_t i = 0; i < count; i++) {
		char name[32];

		snprintf(name, sizeof(name), "%s:[%" PRIu32 "]", kind, ++*number);
		object(capture, name, "");
		waits(capture, ts, 1, 11, 0, S, NR_READ, *number, 0, 0);
		gets(capture, ts + 10 + i, 1, 0, 11, peer + i % peers, ts + 10 + i, 0);
		wait_details(capture, ts, ts + 10 + i, 11, *number, 0, 0);
		ts += 20 + i;
	}
	return ts;
}

static void test_many_small_objects_of_a_culprit_are_one_cause(void **state)
{
	struct capture capture;
	uint32_t number = 0;
	uint64_t ts;
	struct why *why;
	yajl_val json, cause;

	(void)state;
	begin(&capture);
	named(&capture, 12, 10, "server");
	gets(&capture, 1005, 2, 0, 12, 0, 0, 0);
	ts = ask_in_turn(&capture, "socket", 1010, &number, 40, 12, 1);
	capture_end(&capture, ts, 11, 1);
	why = ask_span(&capture, 9000);
	check_part(why, 0, "socket", 40 * 10 + 39 * 40 / 2, 12, "certain",
		   "socket:[40] and 39 more");
	check_part(why, 1, "running", 10 + 40 * 10, 11, "certain", "");
	assert_int_equal(why->instances.data[0].part_count, 2);
	assert_int_equal(part_of(why, 0)->objects, 40);
	assert_int_equal(part_of(why, 0)->threads, 1);
	assert_int_equal(part_of(why, 0)->stretches, 40);
	check_why_text(why, "certain  server (12), socket:[40] and 39 more\n");
	json = json_of(why);
	cause = first(first(json, "instances"), "causes");
	assert_int_equal(number_in(cause, "objects"), 40);
	assert_int_equal(number_in(cause, "threads"), 1);
	yajl_tree_free(json);
	done(&capture, why);
}

/* A server with a thread for each connection. */
static void test_many_small_objects_of_threads_that_are_alike_are_one_cause(void **state)
{
	struct capture capture;
	uint32_t number = 0;
	uint64_t ts;
	struct why *why;

	(void)state;
	begin(&capture);
	for (uint32_t i = 0; i < 20; i++) {
		named(&capture, 20 + i, 20, "server");
		gets(&capture, 1001, (uint16_t)(2 + i), 0, 20 + i, 0, 0, 0);
	}
	ts = ask_in_turn(&capture, "socket", 1010, &number, 40, 20, 20);
	capture_end(&capture, ts, 11, 1);
	why = ask_span(&capture, 9000);
	check_part(why, 0, "socket", 40 * 10 + 39 * 40 / 2, 39, "likely",
		   "socket:[40] and 39 more");
	assert_int_equal(why->instances.data[0].part_count, 2);
	assert_int_equal(part_of(why, 0)->threads, 20);
	check_why_text(why, "likely   20 threads of server (20), socket:[40] and 39 more\n");
	done(&capture, why);
}

static void test_few_objects_and_a_large_one_stay_apart(void **state)
{
	struct capture capture;
	uint32_t number = 0;
	uint64_t ts;
	struct why *why;

	(void)state;
	begin(&capture);
	named(&capture, 12, 10, "server");
	gets(&capture, 1005, 2, 0, 12, 0, 0, 0);
	object(&capture, "pipe:[1]", "");
	waits(&capture, 1010, 1, 11, 0, S, NR_READ, 4, 0, 0);
	gets(&capture, 1510, 1, 0, 11, 12, 1510, 0);
	wait_details(&capture, 1010, 1510, 11, ++number, 0, 0);
	ts = ask_in_turn(&capture, "pipe", 1520, &number, 4, 12, 1);
	capture_end(&capture, ts, 11, 1);
	why = ask_span(&capture, 9000);
	check_part(why, 0, "pipe", 500, 12, "likely", "pipe:[1]");
	assert_int_equal(why->instances.data[0].part_count, 6);
	done(&capture, why);
}

/* Thread 11 waits for 100 at a socket of its own each time; thread 12 or 13 answers. */
static uint64_t ask_over(struct capture *capture, uint64_t ts, uint32_t number, const char *ends,
			 uint32_t peer)
{
	char name[32];

	snprintf(name, sizeof(name), "socket:[%" PRIu32 "]", number);
	object(capture, name, ends);
	waits(capture, ts, 1, 11, 0, S, NR_READ, number, 0, 0);
	gets(capture, ts + 100, 1, 0, 11, peer, ts + 100, 0);
	wait_details(capture, ts, ts + 100, 11, number, 0, 0);
	return ts + 110;
}

static void test_connections_to_one_server_are_one_cause(void **state)
{
	static const struct {
		const char *ends;
		uint32_t peer;
	} rows[] = {
		{"tcp 127.0.0.1:40001 <-> 127.0.0.1:80", 12},
		{"tcp 127.0.0.1:40002 <-> 127.0.0.1:80", 13},
		{"tcp 127.0.0.1:40003 <-> 127.0.0.1:80", 12},
		{"tcp 127.0.0.1:40001 <-> 127.0.0.1:81", 12},
		{"tcp 127.0.0.1:40004 <-> 127.0.0.1:80, data sent again once", 12},
		{"udp 127.0.0.1:40005 <-> 127.0.0.1:53", 12},
		{"udp 127.0.0.1:40006 <-> 127.0.0.1:53", 12},
	};
	uint64_t ts = 1010;
	struct capture capture;
	yajl_val json, cause;
	struct why *why;

	(void)state;
	begin(&capture);
	for (uint32_t tid = 12; tid < 14; tid++) {
		named(&capture, tid, 10, "server");
		gets(&capture, 1005, (uint16_t)(tid - 10), 0, tid, 0, 0, 0);
	}
	for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		ts = ask_over(&capture, ts, i + 1, rows[i].ends, rows[i].peer);
	capture_end(&capture, ts, 11, 1);
	why = ask_span(&capture, 9000);
	check_part(why, 0, "socket", 300, 12, "likely", "connections to 127.0.0.1:80 (tcp)");
	check_part(why, 1, "socket", 200, 12, "likely", "sockets to DNS server 127.0.0.1:53");
	check_part(why, 2, "socket", 100, 12, "likely",
		   "socket:[4] (tcp 127.0.0.1:40001 <-> 127.0.0.1:81)");
	assert_int_equal(why->instances.data[0].part_count, 5);
	assert_int_equal(part_of(why, 0)->connections, 3);
	assert_int_equal(part_of(why, 2)->connections, 0);
	check_why_text(why, "2 threads of server (10), 3 connections to 127.0.0.1:80 (tcp)\n");
	check_why_text(why, "server (12), 2 sockets to DNS server 127.0.0.1:53\n");
	json = json_of(why);
	cause = first(first(json, "instances"), "causes");
	assert_int_equal(number_in(cause, "connections"), 3);
	yajl_tree_free(json);
	done(&capture, why);
}

static void test_connections_with_something_sent_again_are_one_cause(void **state)
{
	static const char *const ends[] = {
		"tcp 127.0.0.1:40001 <-> 127.0.0.1:80, SYN sent again once",
		"tcp 127.0.0.1:40002 <-> 127.0.0.1:80, SYN sent again once",
		"tcp 127.0.0.1:40003 <-> 127.0.0.1:80, SYN sent again once",
		"tcp 127.0.0.1:40004 <-> 127.0.0.1:80, data sent again 16 times or more",
		"tcp 127.0.0.1:40005 <-> 127.0.0.1:80, data sent again 16 times or more",
		"tcp 127.0.0.1:40001 <-> 127.0.0.1:80, SYN sent again 2 times",
	};
	uint64_t ts = 1010;
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	named(&capture, 12, 10, "server");
	gets(&capture, 1005, 2, 0, 12, 0, 0, 0);
	for (uint32_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		ts = ask_over(&capture, ts, i + 1, ends[i], 12);
	capture_end(&capture, ts, 11, 1);
	why = ask_span(&capture, 9000);
	check_part(why, 0, "socket", 300, 12, "certain",
		   "connections to 127.0.0.1:80 (tcp, SYN sent again once)");
	check_part(why, 1, "socket", 200, 12, "certain",
		   "connections to 127.0.0.1:80 (tcp, data sent again 16 times or more)");
	check_part(why, 2, "socket", 100, 12, "certain",
		   "socket:[6] (tcp 127.0.0.1:40001 <-> 127.0.0.1:80, SYN sent again 2 times)");
	assert_int_equal(part_of(why, 0)->connections, 3);
	done(&capture, why);
}

/* An interrupt ends the wait of thread 11 for a server, which has the connections at `ends`. */
static struct why *connects_to(struct capture *capture, const char *const *ends, uint32_t count)
{
	begin(capture);
	object(capture, "socket:[1]", "tcp 127.0.0.1:40001 <-> 127.0.0.1:80, SYN sent again once");
	kernel_stack(capture, 0x1000, "tcp_rcv_state_process");
	for (uint32_t i = 0; i < count; i++) {
		char name[32];

		snprintf(name, sizeof(name), "socket:[%" PRIu32 "]", i + 2);
		object(capture, name, ends[i]);
		named(capture, 20 + i, 20 + i / 2, "server");
		gets(capture, 1003, 2, 0, 20 + i, 0, 0, 0);
		waits(capture, 1004, 2, 20 + i, 0, S, NR_READ, 5, 0, 0);
		wait_details(capture, 1004, 1006, 20 + i, i + 2, 0, 0);
		gets(capture, 1006, 2, 0, 20 + i, 0, 1006, SOFT);
		waits(capture, 1007, 2, 20 + i, 0, S, NR_NANOSLEEP, 0, 0, 0);
	}
	waits(capture, 1010, 1, 11, 0, S, NR_CONNECT, 4, 0, 0);
	wait_details(capture, 1010, 2010, 11, 1, 0, 0);
	wake_details(capture, 2010, 0, 11, 1, SOFT);
	gets(capture, 2010, 1, 0, 11, 0, 2010, SOFT);
	capture_end(capture, 2020, 11, 1);
	return ask_span(capture, 9000);
}

static void test_a_connection_whose_syn_was_sent_again_names_the_server(void **state)
{
	static const char *const one[] = {"tcp 127.0.0.1:80 <-> 127.0.0.1:50001",
					  "tcp 127.0.0.1:80 <-> 127.0.0.1:50002"};
	static const char *const others[] = {"tcp 127.0.0.1:80 <-> 127.0.0.1:50001",
					     "tcp 127.0.0.1:81 <-> 127.0.0.1:50002",
					     "tcp 127.0.0.1:80 <-> 127.0.0.1:50003"};
	static const char *const text =
		"socket:[1] (tcp 127.0.0.1:40001 <-> 127.0.0.1:80, SYN sent again once)";
	struct capture capture;
	struct why *why;

	(void)state;
	why = connects_to(&capture, one, 1);
	check_part(why, 0, "socket", 1000, 20, "likely", text);
	done(&capture, why);
	why = connects_to(&capture, one, 2);
	check_part(why, 0, "socket", 1000, 20, "likely", text);
	done(&capture, why);
	why = connects_to(&capture, others, 3);
	check_part(why, 0, "socket", 1000, 0, "likely", text);
	done(&capture, why);
}

/* Adds a socket of a process; 0: of none. */
static void socket_of(struct capture *capture, uint32_t pid, uint32_t inode, const char *detail)
{
	char name[32];
	const struct store_object socket = {
		.pid = pid, .ino = inode, .name = name, .detail = detail};
	struct error err = ERROR_INIT;

	snprintf(name, sizeof(name), "socket:[%" PRIu32 "]", inode);
	capture_must(store_writer_add_object(capture->writer, &socket, &err), err);
}

/* A process in a network namespace, with a socket. */
static void in_network(struct capture *capture, uint32_t pid, const char *network, uint32_t inode,
		       const char *detail)
{
	const struct store_attribute attribute = {
		.pid = pid, .ts = CAPTURE_START, .key = STORE_NETWORK, .value = network};
	struct error err = ERROR_INIT;

	named(capture, pid, pid, "server");
	if (*network)
		capture_must(store_writer_add_attribute(capture->writer, &attribute, &err), err);
	socket_of(capture, pid, inode, detail);
}

/* Servers of two network namespaces listen at the same port. */
static void test_a_server_of_another_network_namespace_is_not_the_one(void **state)
{
	static const struct {
		const char *local, *remote;        /* of the client */
		const char *networks[2], *listens; /* of the servers 20 and 30 */
		uint32_t culprit;
	} rows[] = {
		{"127.0.0.1", "127.0.0.1", {"4026531840", "4026532198"}, "tcp 0.0.0.0:80", 20},
		{"127.0.0.1", "127.0.0.1", {"4026532198", "4026531840"}, "tcp 127.0.0.1:80", 30},
		{"127.0.0.1", "127.0.0.1", {"4026531840", ""}, "tcp 127.0.0.1:80", 0},
		{"127.0.0.1", "127.0.0.1", {"4026531840", "4026531840"}, "tcp 127.0.0.1:80", 0},
		/* The server may be in any of them. */
		{"10.0.0.1", "10.0.0.2", {"4026532198", "4026532199"}, "tcp 10.0.0.2:80", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct capture capture;
		char client[128], object[160];
		struct why *why;

		begin(&capture);
		snprintf(client, sizeof(client), "tcp %s:40001 <-> %s:80, SYN sent again once",
			 rows[i].local, rows[i].remote);
		snprintf(object, sizeof(object), "socket:[1] (%s)", client);
		in_network(&capture, CAPTURE_PID, "4026531840", 1, client);
		in_network(&capture, 20, rows[i].networks[0], 2, rows[i].listens);
		in_network(&capture, 30, rows[i].networks[1], 3, rows[i].listens);
		kernel_stack(&capture, 0x1000, "tcp_rcv_state_process");
		waits(&capture, 1010, 1, 11, 0, S, NR_CONNECT, 4, 0, 0);
		wait_details(&capture, 1010, 2010, 11, 1, 0, 0);
		wake_details(&capture, 2010, 0, 11, 1, SOFT);
		gets(&capture, 2010, 1, 0, 11, 0, 2010, SOFT);
		capture_end(&capture, 2020, 11, 1);
		why = ask_span(&capture, 9000);
		check_part(why, 0, "socket", 1000, rows[i].culprit, "likely", object);
		done(&capture, why);
	}
}

/* An event loop, in no span or in one, waits with a timeout. One of its sockets is being connected,
 * and may be its only one. */
static void test_a_loop_with_other_sockets_than_an_unanswered_one_is_idle(void **state)
{
	static const struct {
		const char *detail;
		bool span, idle;
	} rows[] = {
		{"tcp 127.0.0.1:5 <-> 127.0.0.1:80, SYN not answered", false, false},
		{"tcp 127.0.0.1:5 <-> 127.0.0.1:80, SYN not answered, among other sockets", false,
		 true},
		{"tcp 127.0.0.1:5 <-> 127.0.0.1:80, SYN sent again 2 times, among other sockets",
		 false, true},
		{"tcp 127.0.0.1:5 <-> 127.0.0.1:80, SYN not answered, among other sockets", true,
		 false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct why_query query = {.tid = 11, .from_ts = CAPTURE_START, .to_ts = 8050};
		struct capture capture;
		const struct why_part *part;
		struct why *why;

		capture_begin(&capture, true);
		object(&capture, "socket:[1]", rows[i].detail);
		kernel_stack(&capture, 0x1000, "hrtimer_wakeup");
		if (rows[i].span)
			capture_span(&capture, CAPTURE_START, 11, 1);
		gets(&capture, 1001, 1, 0, 11, 0, 0, 0);
		waits(&capture, 1010, 1, 11, 0, S, NR_EPOLL_WAIT, 4, 0, 0);
		wait_details(&capture, 1010, 8010, 11, 1, 0, 0);
		wake_details(&capture, 8010, 0, 11, 1, HARD);
		gets(&capture, 8010, 1, 0, 11, 0, 8010, HARD);
		if (rows[i].span)
			capture_end(&capture, 8020, 11, 1);
		why = ask(&capture, 9000, &query);
		part = part_of(why, 0);
		assert_string_equal(why_causes[part->cause].name,
				    rows[i].idle ? "timer" : "socket");
		assert_int_equal(part->idle, rows[i].idle);
		assert_int_equal(part->object == 0, rows[i].idle);
		done(&capture, why);
	}
}

/* Thread 11 polls, until its timeout or the end of the capture, what the list has, with its
 * connection `client`. Process 20 listens, and computes. */
static struct why *polls_list(struct capture *capture, const char *list, const char *client,
			      const char *server, bool open)
{
	struct waffle_rec_open_wait rec = {.rec = {9000, 11, WAFFLE_REC_OPEN_WAIT, 0},
					   .from_ts = 1010};

	begin(capture);
	object(capture, list, "");
	in_network(capture, CAPTURE_PID, "", 1, client);
	in_network(capture, 20, "", 2, "tcp 127.0.0.1:80");
	if (server)
		socket_of(capture, 0, 3, server);
	kernel_stack(capture, 0x1000, "hrtimer_wakeup");
	gets(capture, 1005, 2, 0, 20, 0, 0, 0);
	waits(capture, 1010, 1, 11, 0, S, NR_POLL, 0x1000, 2, 8000);
	if (open) {
		wait_details(capture, 1010, 9000, 11, 1, 0, 0);
		capture_add(capture, &rec);
		return ask_span(capture, 9000);
	}
	wait_details(capture, 1010, 8010, 11, 1, 0, 0);
	wake_details(capture, 8010, 0, 11, 1, HARD);
	gets(capture, 8010, 1, 0, 11, 0, 8010, HARD);
	capture_end(capture, 8020, 11, 1);
	return ask_span(capture, 9000);
}

/* Eventfds are what the program wakes its own threads by. Anything else may be what it waits for.
 */
static void test_a_poll_of_a_connection_and_eventfds_is_for_the_connection(void **state)
{
	static const char end[] = "tcp 127.0.0.1:40001 <-> 127.0.0.1:80, SYN not answered";
	static const struct {
		const char *list;
		bool found;
	} rows[] = {
		{"2 descriptors: %s, anon_inode:[eventfd]", true},
		{"3 descriptors: anon_inode:[eventfd], %s, anon_inode:[eventfd]", true},
		{"2 descriptors: %s, pipe:[4]", false},
		{"2 descriptors: %s, tcp 127.0.0.1:40002 <-> 127.0.0.1:80", false},
		{"many descriptors: %s, anon_inode:[eventfd]", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct capture capture;
		char list[200];
		struct why *why;

		snprintf(list, sizeof(list), rows[i].list, end);
		why = polls_list(&capture, list, end, NULL, false);
		if (rows[i].found)
			check_part(why, 0, "socket", 7000, 20, "likely",
				   "socket:[1] (tcp 127.0.0.1:40001 <-> 127.0.0.1:80, SYN not "
				   "answered)");
		else
			check_part(why, 0, "timer", 7000, 11, "likely", list);
		done(&capture, why);
	}
}

static void test_a_connection_that_is_not_accepted_at_the_end_names_the_server(void **state)
{
	static const char end[] = "tcp 127.0.0.1:40001 <-> 127.0.0.1:80";
	static const struct {
		const char *server;
		uint32_t culprit;
		const char *object;
	} rows[] = {
		{"tcp 127.0.0.1:80 <-> 127.0.0.1:40001, not accepted yet", 20,
		 "socket:[1] (tcp 127.0.0.1:40001 <-> 127.0.0.1:80, not accepted yet)"},
		{"tcp 127.0.0.1:80 <-> 127.0.0.1:40002, not accepted yet", 0,
		 "socket:[1] (tcp 127.0.0.1:40001 <-> 127.0.0.1:80)"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct capture capture;
		struct why *why = polls_list(&capture,
					     "2 descriptors: tcp 127.0.0.1:40001 <-> 127.0.0.1:80, "
					     "anon_inode:[eventfd]",
					     end, rows[i].server, true);

		check_part(why, 0, "socket", 7990, rows[i].culprit,
			   rows[i].culprit ? "likely" : "unknown", rows[i].object);
		done(&capture, why);
	}
}

/* The event loop of a server watches other connections each time. */
static void test_timeouts_of_an_epoll_are_one_cause_whatever_it_watches(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	object(&capture, DESCRIPTOR_EPOLL, "socket:[1], socket:[2]");
	object(&capture, DESCRIPTOR_EPOLL, "socket:[1], socket:[3]");
	kernel_stack(&capture, 0x1000, "hrtimer_wakeup");
	for (uint64_t i = 0, ts = 1010; i < 2; i++, ts += 10000000) {
		uint64_t end = ts + 7000000;

		waits(&capture, ts, 1, 11, 0, S, NR_EPOLL_WAIT, 4, 0, 0);
		wait_details(&capture, ts, end, 11, (uint32_t)i + 1, 0, 0);
		wake_details(&capture, end, 0, 11, 1, HARD);
		gets(&capture, end, 1, 0, 11, 0, end, HARD);
	}
	capture_end(&capture, 20000000, 11, 1);
	why = ask_span(&capture, 20000000);
	check_part(why, 0, "timer", 14000000, 11, "likely", DESCRIPTOR_EPOLL);
	done(&capture, why);
}

/* Process 20 is stopped, and all descriptors of another one are open, or its own. */
static void begin_with_stopped(struct capture *capture, uint32_t full)
{
	struct waffle_rec_open_wait stopped = {.rec = {9000, 20, WAFFLE_REC_OPEN_WAIT, 0}};
	struct waffle_rec_io_limit limit = {.rec = {9000, full, WAFFLE_REC_IO_LIMIT, 0},
					    .limit = 64,
					    .kind = WAFFLE_IO_LIMIT_DESCRIPTORS};
	struct waffle_rec_state halt = {.rec = {CAPTURE_START, 20, WAFFLE_REC_STATE, 0},
					.tgid = 20,
					.state = WAFFLE_THREAD_BLOCKED,
					.task_state = WAFFLE_TASK_STOPPED,
					.syscall = NR_POLL};

	begin(capture);
	named_as(capture, CAPTURE_PID, CAPTURE_PID, "server", WAFFLE_TASK_TRACED_FLAG);
	named(capture, 20, 20, "upstream");
	capture_add(capture, &halt);
	capture_end(capture, 8000, 11, 1);
	halt.rec.ts = 9000;
	halt.at_end = 1;
	capture_add(capture, &halt);
	capture_add(capture, &stopped);
	capture_add(capture, &limit);
}

static void test_processes_that_are_stopped_or_have_all_descriptors_open_come_first(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin_with_stopped(&capture, CAPTURE_PID);
	why = ask_span(&capture, 9000);
	check_why_text(why, "server (10) has all 64 descriptors open that it may have");
	check_why_text(why, "upstream (20) has been stopped since before the capture began\n");
	done(&capture, why);
}

static void test_a_process_that_is_stopped_without_a_free_descriptor_is_one_line(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin_with_stopped(&capture, 20);
	why = ask_span(&capture, 9000);
	check_why_text(why,
		       "upstream (20) has been stopped since before the capture began, and has "
		       "all 64 descriptors open that it may have (RLIMIT_NOFILE): ");
	done(&capture, why);
}

static void check_impaired_json(const struct why *why, bool is_known)
{
	yajl_val tree = json_of(why), impaired = first(tree, "impaired");
	yajl_val cgroup =
		yajl_tree_get(impaired, (const char *[]){"pids_cgroup", NULL}, yajl_t_string);

	assert_int_equal(number_in(impaired, "pids"), 16);
	assert_int_equal(cgroup != NULL, is_known);
	if (is_known)
		assert_string_equal(YAJL_GET_STRING(cgroup), "/sys/fs/cgroup/jobs");
	yajl_tree_free(tree);
}

static void test_a_process_whose_cgroup_has_all_its_processes_says_so(void **state)
{
	struct waffle_rec_io_limit limit = {.rec = {9000, CAPTURE_PID, WAFFLE_REC_IO_LIMIT, 0},
					    .cgroup = 7,
					    .limit = 16,
					    .kind = WAFFLE_IO_LIMIT_PIDS};

	(void)state;
	for (int i = 0; i < 3; i++) {
		/* Of another hierarchy, of this one, and of an older version of waffle-bpf. */
		static const char *const details[] = {"cgroup cpu", "cgroup pids", "cgroup"};
		struct store_object cgroup = {
			.ino = 7, .name = "/sys/fs/cgroup/jobs", .detail = details[i]};
		struct error err = ERROR_INIT;
		struct capture capture;
		struct why *why;

		begin(&capture);
		named_as(&capture, CAPTURE_PID, CAPTURE_PID, "server", WAFFLE_TASK_TRACED_FLAG);
		capture_must(store_writer_add_object(capture.writer, &cgroup, &err), err);
		capture_end(&capture, 8000, 11, 1);
		capture_add(&capture, &limit);
		why = ask_span(&capture, 9000);
		check_why_text(why, i ? "server (10) is in cgroup /sys/fs/cgroup/jobs, which has "
					"all 16 processes and threads that it may have (pids.max): "
					"fork(), clone() and the like fail with EAGAIN\n"
				      : "server (10) is in a cgroup, which has all 16 processes");
		check_impaired_json(why, i);
		done(&capture, why);
	}
}

static void test_a_connection_that_two_threads_answer_is_one(void **state)
{
	struct capture capture;
	struct why *why;
	uint64_t ts;

	(void)state;
	begin(&capture);
	for (uint32_t tid = 12; tid < 14; tid++) {
		named(&capture, tid, 10, "server");
		gets(&capture, 1005, (uint16_t)(tid - 10), 0, tid, 0, 0, 0);
	}
	ts = ask_over(&capture, 1010, 1, "tcp 127.0.0.1:40001 <-> 127.0.0.1:80", 12);
	ts += 20000000; /* it works in between, so the next wait is another one */
	waits(&capture, ts, 1, 11, 0, S, NR_READ, 1, 0, 0);
	gets(&capture, ts + 100, 1, 0, 11, 13, ts + 100, 0);
	wait_details(&capture, ts, ts + 100, 11, 1, 0, 0);
	capture_end(&capture, ts + 110, 11, 1);
	why = ask_span(&capture, ts + 200);
	check_part(why, 1, "socket", 200, 12, "likely",
		   "socket:[1] (tcp 127.0.0.1:40001 <-> 127.0.0.1:80)");
	assert_int_equal(part_of(why, 1)->threads, 2);
	assert_int_equal(part_of(why, 1)->connections, 0);
	done(&capture, why);
}

/* Each of `peers` answers once over one connection. Two processes have one name, two threads a
 * number in theirs, and two other threads have the name of their process. */
static void test_workers_and_threads_of_a_pool_that_do_the_same_are_one_cause(void **state)
{
	static const struct {
		uint32_t tid, pid;
		const char *name;
	} peers[] = {{12, 12, "server"}, {13, 13, "server"}, {14, 14, "proxy"},
		     {15, 14, "pool-1"}, {16, 14, "pool-2"}, {17, 14, "proxy"}};
	struct capture capture;
	uint64_t ts = 1010;
	struct why *why;

	(void)state;
	begin(&capture);
	object(&capture, "socket:[1]", "");
	for (uint32_t i = 0; i < sizeof(peers) / sizeof(peers[0]); i++) {
		named(&capture, peers[i].tid, peers[i].pid, peers[i].name);
		gets(&capture, 1005, (uint16_t)(2 + i), 0, peers[i].tid, 0, 0, 0);
	}
	for (uint32_t i = 0; i < sizeof(peers) / sizeof(peers[0]); i++, ts += 20000000) {
		waits(&capture, ts, 1, 11, 0, S, NR_READ, 1, 0, 0);
		gets(&capture, ts + 1000 + i, 1, 0, 11, peers[i].tid, ts + 1000 + i, 0);
		wait_details(&capture, ts, ts + 1000 + i, 11, 1, 0, 0);
	}
	capture_end(&capture, ts, 11, 1);
	why = ask_span(&capture, ts + 200);
	check_part(why, 1, "socket", 2007, 16, "likely", "socket:[1]");
	check_part(why, 2, "socket", 2001, 13, "likely", "socket:[1]");
	check_part(why, 3, "socket", 1005, 17, "likely", "socket:[1]");
	check_part(why, 4, "socket", 1002, 14, "likely", "socket:[1]");
	assert_int_equal(why->instances.data[0].part_count, 5);
	check_why_text(why, "2 threads of pool-N (14), socket:[1]\n");
	check_why_text(why, "2 processes named server, socket:[1]\n");
	done(&capture, why);
}

/* ---- requests that overlap on a thread ---- */

/* The id of the request that thread 11 works for in the last 400 ns of request 2; 0: none is named.
 * Request 3 has begun 100 ns before, if `overlaps` while request 2 is open, and thread 11 may have
 * waited since. */
static uint64_t request_worked_for(const char *name, bool overlaps, bool waits_first)
{
	struct capture capture;
	const struct why_part *part;
	struct why *why;
	uint64_t found;

	capture_begin(&capture, true);
	add_request_site_named(&capture, name);
	named(&capture, 11, CAPTURE_PID, "loop");
	gets(&capture, 1000, 1, 0, 11, 0, 0, 0);
	capture_hit(&capture, 1100, 11, SITE_REQUEST, 2, 0, 0, NULL);
	if (overlaps)
		capture_hit(&capture, 1200, 11, SITE_REQUEST, 3, 0, 0, NULL);
	if (waits_first) {
		waits(&capture, 1210, 1, 11, 0, S, NR_EPOLL_WAIT, 4, 0, 0);
		gets(&capture, 1220, 1, 0, 11, 0, 1220, HARD);
	}
	capture_end(&capture, 1600, 11, 2);
	if (overlaps)
		capture_end(&capture, 1650, 11, 3);
	why = ask(&capture, 2000, &(struct why_query){.name = name});
	part = part_of(why, 0);
	assert_string_equal(why_causes[part->cause].name, "running");
	found = part->span == MODEL_NONE ? 0 : capture.model->spans.data[part->span].id;
	for (uint32_t i = 0; !found && i < part->step_count; i++)
		assert_int_equal(why->steps.data[part->step + i].span, MODEL_NONE);
	done(&capture, why);
	return found;
}

static void test_work_is_of_no_request_if_it_may_be_another_ones(void **state)
{
	(void)state;
	assert_int_equal(request_worked_for("HTTP GET", false, false), 2);
	assert_int_equal(request_worked_for("HTTP GET", false, true), 2);
	assert_int_equal(request_worked_for("HTTP GET", true, false), 0);
	assert_int_equal(request_worked_for("RESP GET", true, false), 3);
	assert_int_equal(request_worked_for("RESP BLPOP", true, true), 0);
}

static void check_by_process_json(const struct why *why, bool is_there)
{
	yajl_val tree = json_of(why), instance = first(tree, "instances");

	if (is_there)
		assert_int_equal(number_at(first(instance, "by_process"), "thread", "tid"), 12);
	else
		assert_null(
			yajl_tree_get(instance, (const char *[]){"by_process", NULL}, yajl_t_any));
	yajl_tree_free(tree);
}

/* Thread 11 waits for a thread of another process twice, and once that has the CPU of thread 11. If
 * it never does, the row with the two waits says it all. */
static void test_what_one_process_does_is_told_whatever_the_causes(void **state)
{
	static const char text[] = "  by process: 86.7 % server (12)\n";

	(void)state;
	for (int takes = 0; takes < 2; takes++) {
		struct capture capture;
		char *printed = NULL;
		struct why *why;
		size_t len;
		FILE *out;

		begin(&capture);
		named(&capture, 12, 12, "server");
		gets(&capture, 1000, 2, 0, 12, 0, 0, 0);
		for (uint64_t i = 0; i < 2; i++) {
			waits(&capture, 1100 + i * 1000, 1, 11, 0, S, NR_FUTEX, 0x7000 + i * 64, 9,
			      0);
			gets(&capture, 1900 + i * 1000, 1, 0, 11, 12, 1900 + i * 1000, 0);
		}
		waits(&capture, 2950, 2, 12, 0, S, NR_NANOSLEEP, 0, 0, 0);
		if (takes) {
			gets(&capture, 3000, 1, 11, 12, 0, 3000, HARD);
			gets(&capture, 4000, 1, 12, 11, 0, 0, 0);
		}
		capture_end(&capture, 4000, 11, 1);
		why = ask_span(&capture, 9000);
		check_part(why, 0, "user-work", 1600, 12, "likely", "2 futexes");
		out = open_memstream(&printed, &len);
		why_print_text(why, &(struct why_view){0}, out);
		fclose(out);
		assert_int_equal(strstr(printed, "  by process: ") != NULL, takes);
		assert_int_equal(strstr(printed, text) != NULL, takes);
		check_by_process_json(why, takes);
		free(printed);
		done(&capture, why);
	}
}

/* Thread 11 waits for an answer of a thread, and then of another one. Both run, or it is not known
 * what they do. */
static void test_a_sum_says_that_its_culprits_run(void **state)
{
	static const struct {
		uint32_t first;
		const char *text;
	} rows[] = {{12, "  by cause: 83.3 % socket (running) (2 culprits, "},
		    {60, "  by cause: 83.3 % socket (2 culprits, "}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct capture capture;
		uint64_t ts = 1020;
		struct why *why;

		begin(&capture);
		for (uint32_t k = 0; k < 2; k++) {
			named(&capture, rows[i].first + k, 10, k ? "first" : "second");
			if (!i)
				gets(&capture, 1005, (uint16_t)(2 + k), 0, 12 + k, 0, 0, 0);
			ts = ask_over(&capture, ts, k + 1, "unix", rows[i].first + k);
		}
		capture_end(&capture, ts, 11, 1);
		why = ask_span(&capture, 9000);
		check_why_text(why, rows[i].text);
		done(&capture, why);
	}
}

/* Thread 11 starts a program and waits for its end, so many times. Each lives for 80 of 100. */
static uint64_t starts_programs(struct capture *capture, uint32_t count)
{
	uint64_t ts = 1000;

	for (uint32_t tid = 20; tid < 20 + count; tid++) {
		struct waffle_rec_task task = {.rec = {ts, tid, WAFFLE_REC_TASK, 0},
					       .tgid = tid,
					       .flags = WAFFLE_TASK_TRACED_FLAG,
					       .start_ts = ts,
					       .comm = "cut"};
		struct waffle_rec_exit ended = {.rec = {ts + 80, tid, WAFFLE_REC_EXIT, 0},
						.tgid = tid};

		capture_add(capture, &task);
		gets(capture, ts, 2, 0, tid, 0, 0, 0);
		waits(capture, ts + 10, 1, 11, 0, S, NR_WAIT4, tid, 0, 0);
		capture_add(capture, &ended);
		gets(capture, ts + 80, 1, 0, 11, tid, ts + 80, 0);
		ts += 100;
	}
	return ts;
}

static void test_many_short_processes_are_told_together(void **state)
{
	static const char text[] = "  short processes: 70.0 %, most for those named cut; 20 began "
				   "meanwhile, and lived for 80 ns on average\n";

	(void)state;
	for (uint32_t count = 8; count <= 20; count += 12) {
		struct capture capture;
		char *printed = NULL;
		struct why *why;
		uint64_t ts;
		size_t len;
		FILE *out;

		begin(&capture);
		ts = starts_programs(&capture, count);
		capture_end(&capture, ts, 11, 1);
		why = ask_span(&capture, ts + 1000);
		out = open_memstream(&printed, &len);
		why_print_text(why, &(struct why_view){0}, out);
		fclose(out);
		assert_int_equal(strstr(printed, "  short processes: ") != NULL, count == 20);
		assert_int_equal(strstr(printed, text) != NULL, count == 20);
		free(printed);
		done(&capture, why);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_process_at_which_much_ends_should_be_recorded_as_well),
		cmocka_unit_test(test_the_holder_of_a_file_lock_should_be_recorded_as_well),
		cmocka_unit_test(test_a_file_that_was_closed_early_has_its_later_name),
		cmocka_unit_test(test_the_nice_value_of_who_waits_for_a_cpu_is_told),
		cmocka_unit_test(test_span_that_another_thread_ended_is_likely_at_best),
		cmocka_unit_test(
			test_span_that_was_handed_over_is_from_there_on_what_the_other_thread_did),
		cmocka_unit_test(test_span_that_its_own_thread_ended_says_nothing_of_it),
		cmocka_unit_test(test_idle_cpu_is_not_another_thread),
		cmocka_unit_test(test_cpu_of_which_nothing_is_known_is_not_idle),
		cmocka_unit_test(test_more_than_four_threads_that_are_alike_are_one_cause),
		cmocka_unit_test(test_more_than_four_processes_of_one_name_are_one_cause),
		cmocka_unit_test(test_four_threads_and_those_of_other_names_stay_apart),
		cmocka_unit_test(test_a_process_that_takes_its_own_cpus_is_told),
		cmocka_unit_test(test_rivals_of_one_name_are_one_cause),
		cmocka_unit_test(test_sums_stay_exact_with_several_groups),
		cmocka_unit_test(test_many_small_objects_of_a_culprit_are_one_cause),
		cmocka_unit_test(test_many_small_objects_of_threads_that_are_alike_are_one_cause),
		cmocka_unit_test(test_few_objects_and_a_large_one_stay_apart),
		cmocka_unit_test(test_connections_to_one_server_are_one_cause),
		cmocka_unit_test(test_connections_with_something_sent_again_are_one_cause),
		cmocka_unit_test(test_a_connection_whose_syn_was_sent_again_names_the_server),
		cmocka_unit_test(test_a_connection_that_two_threads_answer_is_one),
		cmocka_unit_test(test_a_server_of_another_network_namespace_is_not_the_one),
		cmocka_unit_test(test_a_loop_with_other_sockets_than_an_unanswered_one_is_idle),
		cmocka_unit_test(test_a_poll_of_a_connection_and_eventfds_is_for_the_connection),
		cmocka_unit_test(
			test_processes_that_are_stopped_or_have_all_descriptors_open_come_first),
		cmocka_unit_test(test_a_process_whose_cgroup_has_all_its_processes_says_so),
		cmocka_unit_test(
			test_a_process_that_is_stopped_without_a_free_descriptor_is_one_line),
		cmocka_unit_test(test_timeouts_of_an_epoll_are_one_cause_whatever_it_watches),
		cmocka_unit_test(
			test_a_connection_that_is_not_accepted_at_the_end_names_the_server),
		cmocka_unit_test(test_workers_and_threads_of_a_pool_that_do_the_same_are_one_cause),
		cmocka_unit_test(test_work_is_of_no_request_if_it_may_be_another_ones),
		cmocka_unit_test(test_what_one_process_does_is_told_whatever_the_causes),
		cmocka_unit_test(test_a_sum_says_that_its_culprits_run),
		cmocka_unit_test(test_many_short_processes_are_told_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
