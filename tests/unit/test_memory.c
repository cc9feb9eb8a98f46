// SPDX-License-Identifier: Apache-2.0
/* What is known of the mappings of processes that are gone, by what the kernel told of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "capture/memory.h"
#include "capture/told.h"
#include "store_helpers.h"

#define GONE 0x7ffffff0 /* more than any pid */

struct memory_test {
	struct store_test *files;
	struct store_writer *writer;
	struct memory *memory;
	struct mapping code; /* this program's, of a file that is there */
	struct mappings mine;
};

static struct memory_test begin(void **state)
{
	struct memory_test test = {.files = *state};
	struct error err = ERROR_INIT;

	test.writer = open_writer(test.files->path);
	must(memory_open(&test.memory, NULL, test.writer, &err), &err);
	must(process_mappings(&test.mine, getpid(), &err), &err);
	test.code = test.mine.list.data[0];
	return test;
}

static void tell_of(struct memory_test *test, enum mmap_event_kind kind, uint64_t ts,
		    uint64_t start, uint64_t end, bool may_get_rights)
{
	struct mmap_event event = {.kind = kind, .pid = GONE, .ts = ts, .mapping = test->code};
	struct error err = ERROR_INIT;

	event.mapping.start = start;
	event.mapping.end = end;
	must(memory_told(test->memory, &event, may_get_rights, &err), &err);
}

static void tell(struct memory_test *test, enum mmap_event_kind kind, uint64_t ts, uint64_t start,
		 uint64_t end)
{
	tell_of(test, kind, ts, start, end, false);
}

static void exec(struct memory_test *test, uint64_t ts, bool has_rights)
{
	struct error err = ERROR_INIT;

	must(memory_exec(test->memory, GONE, ts, has_rights, &err), &err);
}

/* How many of a caller's frames from the second on are in code: of 0x1800, and of each page of the
 * first eight. */
static void assert_code(struct memory_test *test, const char *pages)
{
	for (uint64_t i = 0; pages[i]; i++) {
		const uint64_t addresses[] = {0x1800, i * 0x1000 + 8};

		assert_int_equal(memory_code(test->memory, GONE, addresses, 2),
				 pages[i] == 'x' ? 2 : 1);
	}
}

/* Rows of the capture: "ts:start-end+offset ". */
static void assert_written(struct memory_test *test, const char *expected)
{
	struct store_reader *reader;
	char text[1024] = "";

	close_writer(test->writer, 1);
	reader = open_reader(test->files->path);
	for (uint32_t i = 0; i < store_reader_mapping_count(reader); i++) {
		const struct store_mapping *row = store_reader_mapping(reader, i);

		assert_int_equal(row->pid, GONE);
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%d:%x-%x%s ",
			 (int)row->ts, (unsigned)row->start, (unsigned)row->end,
			 *row->path ? "" : "?");
		if (!*row->path)
			continue;
		assert_int_equal(row->ino, test->code.ino);
		assert_string_equal(row->path, test->code.path);
		assert_true(row->segment_count > 0);
	}
	assert_string_equal(text, expected);
	store_reader_close(reader);
	memory_close(test->memory);
	mappings_free(&test->mine);
}

static void test_mappings_take_the_place_of_those_before(void **state)
{
	struct memory_test test = begin(state);

	tell(&test, MMAP_EXEC, 1, 0, 0);
	tell(&test, MMAP_MAPPED, 2, 0x1000, 0x8000);
	assert_code(&test, " xxxxxxx ");
	test.code.executable = false;
	tell(&test, MMAP_MAPPED, 3, 0x3000, 0x5000); /* splits it */
	assert_code(&test, " xx  xxx ");
	tell(&test, MMAP_MAPPED, 4, 0x7000, 0x9000); /* cuts it */
	assert_code(&test, " xx  xx  ");
	test.code.executable = true;
	tell(&test, MMAP_MAPPED, 5, 0x2000, 0x9000); /* covers four */
	assert_code(&test, " xxxxxxxx ");
	tell(&test, MMAP_MAPPED, 6, 0x2000, 0x9000);
	assert_code(&test, " xxxxxxxx ");
	memory_forget(test.memory, GONE);
	assert_code(&test, "xxxxxxxxxx"); /* nothing is known */
	assert_written(&test, "2:1000-8000 3:3000-5000? 4:7000-9000? 5:2000-9000 ");
}

static void test_exec_leaves_what_the_new_program_has_mapped(void **state)
{
	struct memory_test test = begin(state);

	tell(&test, MMAP_EXEC, 1, 0, 0);
	tell(&test, MMAP_MAPPED, 2, 0x1000, 0x2000);
	exec(&test, 3, false);
	tell(&test, MMAP_MAPPED, 4, 0x5000, 0x6000);
	assert_code(&test, " x   x  ");
	tell(&test, MMAP_EXEC, 5, 0, 0);
	tell(&test, MMAP_MAPPED, 6, 0x1000, 0x3000);
	exec(&test, 7, false);
	assert_code(&test, " xx     ");
	exec(&test, 9, false); /* of which nothing was told */
	assert_code(&test, "xxxxxxxx");
	assert_written(&test, "2:1000-2000 4:5000-6000 6:1000-3000 ");
}

/* The kernel maps a program before its exec is done and tells whether it has rights. */
static void test_mappings_wait_until_it_is_known_that_the_exec_gave_no_rights(void **state)
{
	struct memory_test test = begin(state);

	tell_of(&test, MMAP_EXEC, 1, 0, 0, true);
	tell_of(&test, MMAP_MAPPED, 2, 0x1000, 0x2000, true);
	tell_of(&test, MMAP_MAPPED, 3, 0x2000, 0x3000, true);
	exec(&test, 4, true);
	assert_code(&test, "xxxxx"); /* nothing is known */
	tell_of(&test, MMAP_EXEC, 5, 0, 0, true);
	tell_of(&test, MMAP_MAPPED, 6, 0x3000, 0x4000, true);
	exec(&test, 7, false);
	tell_of(&test, MMAP_MAPPED, 8, 0x5000, 0x6000, true);
	assert_code(&test, "   x x ");
	/* What is lost with its exec's record is not guessed. */
	tell_of(&test, MMAP_EXEC, 9, 0, 0, true);
	for (uint64_t i = 0; i < 1000; i++)
		tell_of(&test, MMAP_MAPPED, 10, 0x1000 * i, 0x1000 * (i + 1), true);
	tell_of(&test, MMAP_LOST, 11, 0, 0, true);
	tell_of(&test, MMAP_MAPPED, 12, 0x1000, 0x2000, true);
	exec(&test, 13, true);
	assert_written(&test, "6:3000-4000 8:5000-6000 ");
}

static void test_what_may_be_lost_is_not_taken_for_missing(void **state)
{
	struct memory_test test = begin(state);

	tell(&test, MMAP_EXEC, 1, 0, 0);
	tell(&test, MMAP_MAPPED, 2, 0x1000, 0x2000);
	assert_code(&test, " x   ");
	tell(&test, MMAP_LOST, 3, 0, 0);
	assert_code(&test, "xxxxx");
	exec(&test, 4, false); /* whether before or after: nobody knows */
	tell(&test, MMAP_MAPPED, 5, 0x4000, 0x5000);
	assert_code(&test, "xxxxx");
	assert_written(&test, "2:1000-2000 5:4000-5000 ");
}

static void test_file_that_is_another_at_its_path_is_not_written(void **state)
{
	struct memory_test test = begin(state);
	char nowhere[] = "/nowhere/libnothing.so";

	tell(&test, MMAP_EXEC, 1, 0, 0);
	test.code.ino++;
	tell(&test, MMAP_MAPPED, 2, 0x1000, 0x2000);
	test.code.ino--;
	test.code.dev++;
	tell(&test, MMAP_MAPPED, 3, 0x2000, 0x3000);
	test.code.dev--;
	test.code.path = nowhere;
	test.code.ino += 2;
	tell(&test, MMAP_MAPPED, 4, 0x3000, 0x4000);
	assert_code(&test, " xxx ");
	assert_written(&test, "");
}

static void test_code_that_takes_the_place_of_a_file_is_told(void **state)
{
	struct memory_test test = begin(state);
	struct mapping file = test.code;
	char none[] = "";

	tell(&test, MMAP_MAPPED, 2, 0x1000, 0x4000);
	test.code.path = none;
	test.code.ino = test.code.dev = 0;
	tell(&test, MMAP_MAPPED, 3, 0x3000, 0x8000);
	tell(&test, MMAP_MAPPED, 4, 0x9000, 0xa000); /* where nothing was */
	tell(&test, MMAP_MAPPED, 5, 0x3000, 0x8000); /* made writable and code again */
	test.code.ino = file.ino + 1;                /* a file that is not there */
	tell(&test, MMAP_MAPPED, 6, 0x1000, 0x2000);
	test.code = file;
	assert_written(&test, "2:1000-4000 3:3000-8000? 6:1000-2000? ");
}

static void test_what_cpus_told_comes_in_the_order_of_time(void **state)
{
	static const uint64_t times[] = {30, 10, 10, 40, 20};
	static const pid_t order[] = {1, 2, 4, 0, 3};
	const struct told_event *next;
	struct error err = ERROR_INIT;
	struct told *told;

	(void)state;
	must(told_open(&told, &err), &err);
	for (int i = 0; i < 5; i++)
		told_add(told,
			 &(struct mmap_event){
				 .pid = i, .ts = times[i], .mapping.path = (char[]){"/lib/a"}},
			 i == 3);
	assert_int_equal(told_round(told, 35), 0);
	for (int i = 0; i < 4; i++) {
		next = told_next(told, 30);
		assert_non_null(next);
		assert_int_equal(next->event.pid, order[i]);
		assert_string_equal(next->event.mapping.path, "/lib/a");
	}
	assert_null(told_next(told, 30));
	told_add(told, &(struct mmap_event){.kind = MMAP_LOST, .ts = 36}, false);
	assert_int_equal(told_round(told, 50), 34);
	assert_int_equal(told_next(told, 49)->event.kind, MMAP_LOST);
	next = told_next(told, 49);
	assert_int_equal(next->event.pid, order[4]);
	assert_true(next->traced);
	told_close(told);
}

static void test_more_than_fits_is_told_as_lost(void **state)
{
	struct error err = ERROR_INIT;
	struct told *told;
	unsigned given = 0;

	(void)state;
	must(told_open(&told, &err), &err);
	for (uint64_t i = 1; i <= 100000; i++)
		told_add(told, &(struct mmap_event){.kind = MMAP_EXEC, .pid = 1, .ts = i}, true);
	told_round(told, UINT64_MAX);
	while (told_next(told, 100000)->event.kind == MMAP_EXEC)
		given++;
	assert_in_range(given, 1000, 99999);
	told_close(told);
}

#define with_folder(f) cmocka_unit_test_setup_teardown(f, store_setup, store_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_folder(test_mappings_take_the_place_of_those_before),
		with_folder(test_exec_leaves_what_the_new_program_has_mapped),
		with_folder(test_mappings_wait_until_it_is_known_that_the_exec_gave_no_rights),
		with_folder(test_what_may_be_lost_is_not_taken_for_missing),
		with_folder(test_file_that_is_another_at_its_path_is_not_written),
		with_folder(test_code_that_takes_the_place_of_a_file_is_told),
		cmocka_unit_test(test_what_cpus_told_comes_in_the_order_of_time),
		cmocka_unit_test(test_more_than_fits_is_told_as_lost),
	};

	return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
