// SPDX-License-Identifier: Apache-2.0
/* Names of threads: of those in another pid namespace, in a process of very many threads; and those
 * that the kernel has read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "capture/address_space/hit_image.h"
#include "capture/enrich/thread_names_internal.h"
#include "target/process/process_tids.h"
#include "target/process/python_threads.h"

enum { PID = 4194305, THREADS = 4000, FIRST = 10000, NAMED = 80, STEPS = NAMED / 8 };

static unsigned reads, reads_in_step, most_in_step, steps;

int __wrap_hit_image_open(struct image *image, const struct kernel *kernel, pid_t pid, uint64_t ts);
const struct python *__wrap_stacks_interpreter(const struct stacks *stacks, uint32_t tgid);
bool __wrap_python_threads_begin(struct python_threads *threads, const struct python *python,
				 const struct image *image);
bool __wrap_python_threads_step(struct python_threads *threads, python_thread_fn *each, void *arg);
void __wrap_python_threads_end(struct python_threads *threads);
bool __wrap_image_is_there(const struct image *image);
bool __wrap_process_has_tid(pid_t pid, uint32_t tid);
uint32_t __wrap_process_seen_tid(pid_t pid, uint32_t tid);

int __wrap_hit_image_open(struct image *image, const struct kernel *kernel, pid_t pid, uint64_t ts)
{
	(void)kernel, (void)pid, (void)ts;
	*image = (struct image){-1, -1};
	return 0;
}

const struct python *__wrap_stacks_interpreter(const struct stacks *stacks, uint32_t tgid)
{
	static const struct python python;

	(void)stacks, (void)tgid;
	return &python;
}

bool __wrap_python_threads_begin(struct python_threads *threads, const struct python *python,
				 const struct image *image)
{
	(void)threads, (void)python, (void)image;
	steps = 0;
	return true;
}

/* Its threads are the last ones, which are in front in the list of threads, and then the first
 * ones. */
bool __wrap_python_threads_step(struct python_threads *threads, python_thread_fn *each, void *arg)
{
	(void)threads;
	most_in_step = reads_in_step > most_in_step ? reads_in_step : most_in_step;
	reads_in_step = 0;
	for (unsigned i = 8 * steps; i < 8 * steps + 8; i++) {
		struct python_thread thread = {.seen_tid = 1 + (i % 2 ? THREADS - 1 - i : i)};

		snprintf(thread.name, sizeof(thread.name), "worker %u", thread.seen_tid);
		each(&thread, arg);
	}
	return ++steps < STEPS;
}

void __wrap_python_threads_end(struct python_threads *threads)
{
	(void)threads;
}

bool __wrap_image_is_there(const struct image *image)
{
	(void)image;
	return true;
}

bool __wrap_process_has_tid(pid_t pid, uint32_t tid)
{
	(void)pid, (void)tid;
	return false;
}

uint32_t __wrap_process_seen_tid(pid_t pid, uint32_t tid)
{
	assert_int_equal(pid, PID);
	reads++;
	reads_in_step++;
	return tid - FIRST + 1;
}

static int name_check(struct waffle_rec *rec, void *arg)
{
	const struct waffle_rec_thread_name *name = (const struct waffle_rec_thread_name *)rec;
	unsigned *count = arg;
	char expected[WAFFLE_THREAD_NAME];

	snprintf(expected, sizeof(expected), "worker %u", rec->tid - FIRST + 1);
	assert_string_equal(name->name, expected);
	++*count;
	return 0;
}

/* Records wait meanwhile, so that a step must not read the tids of all threads. */
static void test_each_tid_of_another_namespace_is_read_once(void **state)
{
	struct thread_names *names = thread_names_open(NULL, (const struct stacks *)"");
	unsigned count = 0;

	(void)state;
	assert_non_null(names);
	for (uint32_t i = 0; i < THREADS; i++) {
		struct waffle_rec_task task = {
			.rec = {.ts = i + 1, .tid = FIRST + i, .kind = WAFFLE_REC_TASK},
			.tgid = PID,
			.flags = WAFFLE_TASK_TRACED_FLAG,
			.start_ts = i + 1};

		thread_names_record(names, &task.rec);
	}
	for (unsigned look = 0; look < 2 * THREADS / 100 / STEPS; look++) {
		thread_names_look_all(names, UINT64_MAX);
		thread_names_each(names, name_check, &count);
	}
	assert_int_equal(count, NAMED);
	assert_in_range(most_in_step, 1, 200);
	/* Those of threads with a name are read again each time: whether they live. */
	assert_in_range(reads, THREADS, THREADS + 2 * THREADS / 100 / STEPS * NAMED);
	thread_names_close(names);
}

static int name_keep(struct waffle_rec *rec, void *arg)
{
	*(struct waffle_rec_thread_name *)arg = *(const struct waffle_rec_thread_name *)rec;
	return 0;
}

static struct waffle_rec_thread_name told(struct thread_names *names,
					  const struct waffle_rec_python_name *rec)
{
	struct waffle_rec_thread_name name = {0};

	thread_names_record(names, &rec->rec);
	assert_int_equal(thread_names_each(names, name_keep, &name), 0);
	return name;
}

#define ASCII (1u << 2 | 1u << 5 | 1u << 6) /* of a str: one byte a character, compact, ASCII */

static void test_a_name_that_the_kernel_read_twice_is_passed_on_at_once(void **state)
{
	struct thread_names *names = thread_names_open(NULL, (const struct stacks *)"");
	struct waffle_rec_task task = {.rec = {.ts = 7, .tid = FIRST, .kind = WAFFLE_REC_TASK},
				       .tgid = PID,
				       .flags = WAFFLE_TASK_TRACED_FLAG,
				       .start_ts = 5};
	struct waffle_rec_exit end = {.rec = {.tid = FIRST, .kind = WAFFLE_REC_EXIT}, .tgid = PID};
	const struct waffle_rec_python_name good = {
		.rec = {.ts = 9, .tid = FIRST, .kind = WAFFLE_REC_PYTHON_NAME},
		.tgid = PID,
		.text = {.state = ASCII, .bytes = 6},
		.name = "loader",
		.again = "loader and what was there before"};
	struct waffle_rec_python_name rec = good;
	struct waffle_rec_thread_name name;

	(void)state;
	assert_non_null(names);
	assert_int_equal(told(names, &rec).rec.kind, 0); /* of no thread */
	thread_names_record(names, &task.rec);
	rec.again[3] = 'x'; /* it changed meanwhile */
	assert_int_equal(told(names, &rec).rec.kind, 0);
	rec = good;
	rec.text.bytes = 0;
	assert_int_equal(told(names, &rec).rec.kind, 0);
	rec.text.bytes = sizeof(rec.name) + 1;
	assert_int_equal(told(names, &rec).rec.kind, 0);
	rec = good;
	rec.text.state = 0; /* no str */
	assert_int_equal(told(names, &rec).rec.kind, 0);
	rec = good;
	rec.tgid = PID + 1; /* the thread of another process */
	assert_int_equal(told(names, &rec).rec.kind, 0);
	name = told(names, &good);
	assert_int_equal(name.rec.kind, WAFFLE_REC_THREAD_NAME);
	assert_int_equal(name.rec.ts, 7);
	assert_int_equal(name.rec.tid, FIRST);
	assert_int_equal(name.tgid, PID);
	assert_int_equal(name.start_ts, 5);
	assert_string_equal(name.name, "loader");
	assert_int_equal(told(names, &good).rec.kind, 0); /* nothing new */
	thread_names_record(names, &end.rec);
	assert_int_equal(told(names, &good).rec.kind, 0);
	thread_names_close(names);
}

static void test_a_long_name_is_cut_between_characters(void **state)
{
	struct thread_names *names = thread_names_open(NULL, (const struct stacks *)"");
	struct waffle_rec_task task = {.rec = {.ts = 7, .tid = FIRST, .kind = WAFFLE_REC_TASK},
				       .tgid = PID,
				       .flags = WAFFLE_TASK_TRACED_FLAG};
	struct waffle_rec_python_name rec = {
		.rec = {.tid = FIRST, .kind = WAFFLE_REC_PYTHON_NAME},
		.tgid = PID,
		/* four bytes a character, compact */
		.text = {.state = 4u << 2 | 1u << 5, .bytes = sizeof(rec.name)}};

	(void)state;
	assert_non_null(names);
	thread_names_record(names, &task.rec);
	for (unsigned i = 0; i < sizeof(rec.name); i += 4)
		memcpy(rec.name + i, &(uint32_t){0x20ac}, 4); /* U+20AC takes three bytes */
	memcpy(rec.again, rec.name, sizeof(rec.name));
	assert_int_equal(strlen(told(names, &rec).name), 63);
	thread_names_close(names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_tid_of_another_namespace_is_read_once),
		cmocka_unit_test(test_a_name_that_the_kernel_read_twice_is_passed_on_at_once),
		cmocka_unit_test(test_a_long_name_is_cut_between_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
