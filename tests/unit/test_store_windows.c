// SPDX-License-Identifier: Apache-2.0
/* A part of a capture: only what overlaps it is decoded, and it is as in the whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store_helpers.h"

static struct waffle_rec_fork fork_at(uint64_t ts)
{
	return (struct waffle_rec_fork){.rec = {.ts = ts, .tid = 4, .kind = WAFFLE_REC_FORK},
					.child_tgid = (uint32_t)ts};
}

/* Ten chunks of ten records, at 0, 10, 20, … 990. */
static void write_ten_chunks(const char *path, bool finish)
{
	struct store_writer *writer = open_writer(path);
	struct waffle_rec_task task = {.rec = {.ts = 5, .tid = 4, .kind = WAFFLE_REC_TASK}};

	for (uint64_t ts = 0; ts < 1000; ts += 10) {
		struct waffle_rec_fork rec = fork_at(ts);

		append(writer, &rec.rec);
		if (ts == 0 || ts == 500) {
			snprintf(task.comm, sizeof(task.comm), "at-%d", (int)ts);
			task.rec.ts = ts + 5;
			append(writer, &task.rec);
		}
		if (ts % 100 == 90)
			flush_writer(writer, ts);
	}
	if (finish) {
		close_writer(writer, 1000);
	} else {
		size_t size;
		unsigned char *bytes = read_file(path, &size);

		close_writer(writer, 1000);
		write_file(path, bytes, size);
		free(bytes);
	}
}

/* Reads a window: sums up what comes, leaves the names of the task records that came. */
static uint64_t read_window(struct store_reader *reader, uint64_t from, uint64_t to, char *names,
			    unsigned *count)
{
	const struct waffle_rec *rec;
	struct error err = ERROR_INIT;
	uint64_t decoded;
	int ret;

	*count = 0;
	names[0] = '\0';
	must(store_reader_seek(reader, (struct store_window){from, to}, &err), &err);
	while ((ret = store_reader_next(reader, &rec, &err)) > 0) {
		if (rec->kind == WAFFLE_REC_TASK) {
			strcat(names, ((const struct waffle_rec_task *)rec)->comm);
			continue;
		}
		assert_in_range(rec->ts, from, to);
		(*count)++;
	}
	assert_int_equal(ret, 0);
	assert_int_equal(store_reader_chunks(reader, &decoded), 10);
	return decoded;
}

static void check_windows(const char *path)
{
	struct store_reader *reader = open_reader(path);
	unsigned count;
	char names[64];

	assert_int_equal(read_window(reader, 0, UINT64_MAX, names, &count), 10);
	assert_int_equal(count, 100);
	assert_string_equal(names, "at-0at-500");
	assert_int_equal(read_window(reader, 300, 310, names, &count), 1);
	assert_int_equal(count, 2);
	assert_string_equal(names, "at-0");
	assert_int_equal(read_window(reader, 690, 700, names, &count), 2);
	assert_int_equal(count, 2);
	assert_string_equal(names, "at-500");
	assert_int_equal(read_window(reader, 691, 699, names, &count), 0);
	assert_int_equal(count, 0);
	assert_int_equal(read_window(reader, 1000, UINT64_MAX, names, &count), 0);
	assert_int_equal(read_window(reader, 0, 0, names, &count), 1);
	assert_int_equal(count, 1);
	store_reader_close(reader);
}

static void test_window_decodes_only_chunks_that_overlap_it_and_names_its_threads(void **state)
{
	struct store_test *test = *state;

	write_ten_chunks(test->path, true);
	check_windows(test->path);
}

/* Two task records are among the others, behind those of 0 and 500. */
static uint64_t number_at(uint64_t ts)
{
	return ts / 10 + 1 + (ts > 0) + (ts > 500);
}

static void test_numbers_of_records_are_those_of_the_file_in_every_window(void **state)
{
	struct store_test *test = *state;
	const struct waffle_rec *rec;
	struct store_reader *reader;
	struct error err = ERROR_INIT;

	write_ten_chunks(test->path, true);
	reader = open_reader(test->path);
	for (uint64_t from = 0; from < 1000; from += 35) {
		unsigned count = 0;

		must(store_reader_seek(reader, (struct store_window){from, from + 120}, &err),
		     &err);
		while (store_reader_next(reader, &rec, &err) > 0) {
			/* Names from before the window are copies. */
			if (rec->kind == WAFFLE_REC_TASK && rec->ts < from)
				assert_int_equal(store_reader_number(reader), 0);
			else if (rec->kind == WAFFLE_REC_TASK)
				assert_int_equal(store_reader_number(reader),
						 number_at(rec->ts - 5) + 1);
			else
				assert_int_equal(store_reader_number(reader), number_at(rec->ts));
			count++;
		}
		assert_true(count >= 3);
	}
	store_reader_close(reader);
}

static void test_window_works_without_the_index_of_a_finished_file(void **state)
{
	struct store_test *test = *state;

	write_ten_chunks(test->path, false);
	check_windows(test->path);
}

static void test_late_record_is_found_by_its_time(void **state)
{
	struct store_test *test = *state;
	struct store_writer *writer = open_writer(test->path);
	struct waffle_rec_fork rec = fork_at(5000), late = fork_at(100);
	struct store_reader *reader;
	uint64_t decoded;
	const struct waffle_rec *found;
	struct error err = ERROR_INIT;

	append(writer, &rec.rec);
	flush_writer(writer, 1);
	append(writer, &rec.rec);
	append(writer, &late.rec);
	close_writer(writer, 6000);
	reader = open_reader(test->path);
	must(store_reader_seek(reader, (struct store_window){0, 200}, &err), &err);
	assert_int_equal(store_reader_next(reader, &found, &err), 1);
	assert_memory_equal(found, &late, sizeof(late));
	assert_at_end(reader);
	assert_int_equal(store_reader_chunks(reader, &decoded), 2);
	assert_int_equal(decoded, 1);
	store_reader_close(reader);
}

#define with_folder(f) cmocka_unit_test_setup_teardown(f, store_setup, store_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_folder(test_window_decodes_only_chunks_that_overlap_it_and_names_its_threads),
		with_folder(test_numbers_of_records_are_those_of_the_file_in_every_window),
		with_folder(test_window_works_without_the_index_of_a_finished_file),
		with_folder(test_late_record_is_found_by_its_time),
	};

	return cmocka_run_group_tests_name("store windows", tests, NULL, NULL);
}
