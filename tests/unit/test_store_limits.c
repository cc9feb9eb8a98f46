// SPDX-License-Identifier: Apache-2.0
/* Limits of the tables of a capture. The writer leaves out entries that readers have no room for,
 * and a reader skips those that an older writer did not leave out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "store/dictionary_internal.h"
#include "store_helpers.h"

#define STACKS 560000u
#define FRAMES 64

/* A stack that differs from all others. */
static void stack_make(struct store_stack *stack, uint64_t *addresses, uint32_t number)
{
	for (uint32_t i = 0; i < FRAMES; i++)
		addresses[i] = 0x400000 + i * 16ull;
	addresses[0] += number;
	*stack = (struct store_stack){.addresses = addresses, .count = FRAMES, .pid = 7};
}

static void test_more_stacks_than_a_reader_has_room_for_are_left_out_and_counted(void **state)
{
	struct store_test *test = *state;
	struct store_writer *writer = open_writer(test->path);
	struct store_counts counts[WAFFLE_SOURCE_COUNT] = {0};
	struct error err = ERROR_INIT;
	uint64_t addresses[FRAMES];
	struct store_reader *reader;
	struct store_stack stack;
	uint32_t written = 0;
	uint64_t left_out;

	for (uint32_t i = 0; i < STACKS; i++) {
		stack_make(&stack, addresses, i);
		if (!store_writer_has_room(writer))
			continue;
		must(store_writer_add_stack(writer, &stack, &err), &err);
		written++;
	}
	left_out = store_writer_left_out(writer);
	must(store_writer_close(writer, 1, counts, &err), &err);
	assert_int_equal(written + left_out, STACKS);
	assert_in_range(written, 200000, STACKS - 1);
	reader = open_reader(test->path);
	assert_int_equal(store_reader_skipped(reader), 0);
	assert_int_equal(store_reader_stack(reader, written)->addresses[0], 0x400000 + written - 1);
	assert_null(store_reader_stack(reader, written + 1));
	store_reader_close(reader);
}

static void test_processes_with_long_command_lines_can_be_read_again(void **state)
{
	struct store_test *test = *state;
	struct store_writer *writer = open_writer(test->path);
	struct store_counts counts[WAFFLE_SOURCE_COUNT] = {0};
	struct error err = ERROR_INIT;
	struct store_reader *reader;
	char cmdline[3001];
	uint32_t count;

	memset(cmdline, 'x', sizeof(cmdline) - 1);
	cmdline[sizeof(cmdline) - 1] = '\0';
	for (uint32_t i = 0; i < 95000; i++) {
		snprintf(cmdline, 10, "%09u", i);
		cmdline[9] = 'x';
		must(store_writer_add_process(
			     writer, &(struct store_process){.pid = i + 1, .cmdline = cmdline},
			     &err),
		     &err);
	}
	count = 95000 - (uint32_t)store_writer_left_out(writer);
	must(store_writer_close(writer, 1, counts, &err), &err);
	reader = open_reader(test->path);
	assert_in_range(count, 40000, 94999);
	assert_int_equal(store_reader_process_count(reader), count);
	assert_int_equal(atoi(store_reader_process(reader, count - 1)->cmdline), count - 1);
	store_reader_close(reader);
}

/* Each wait has the texts of its object, so that long ones make a small file a large export. */
static void test_objects_with_longer_texts_than_waffle_writes_are_refused(void **state)
{
	static const struct {
		uint32_t name, detail;
		bool read;
	} rows[] = {{4095, 255, true}, {4096, 255, false}, {4095, 256, false}};
	struct store_test *test = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct store_counts counts[WAFFLE_SOURCE_COUNT] = {0};
		struct store_writer *writer = open_writer(test->path);
		char name[4097] = "", detail[257] = "";
		const struct store_object object = {.ino = 1, .name = name, .detail = detail};
		struct store_reader *reader;
		struct error err = ERROR_INIT;

		memset(name, 'n', rows[i].name);
		memset(detail, 'd', rows[i].detail);
		must(store_writer_add_object(writer, &object, &err), &err);
		must(store_writer_close(writer, 1, counts, &err), &err);
		assert_int_equal(store_reader_open(&reader, test->path, &err) == 0, rows[i].read);
		if (rows[i].read)
			store_reader_close(reader);
	}
}

static void test_ways_of_many_processes_leave_room_for_stacks(void **state)
{
	struct store_test *test = *state;
	struct store_writer *writer = open_writer(test->path);
	struct store_counts counts[WAFFLE_SOURCE_COUNT] = {0};
	struct error err = ERROR_INIT;

	for (uint32_t i = 0; i < 1u << 22 && !store_writer_left_out(writer); i++) {
		struct store_transport way = {.pid = i + 1, .ring = true, .why = ""};

		must(store_writer_add_transport(writer, &way, &err), &err);
	}
	assert_true(store_writer_has_room(writer));
	must(store_writer_close(writer, 1, counts, &err), &err);
}

/* The bytes of a chunk of stacks, as a writer without a limit made them. */
static void stacks_put(byte_vec *bytes, uint32_t count)
{
	uint64_t addresses[FRAMES];
	struct store_stack stack;

	bytes->len = 0;
	for (uint32_t i = 0; i < count; i++) {
		stack_make(&stack, addresses, i);
		assert_true(stack_put(bytes, &stack));
	}
}

static void test_tables_of_an_older_writer_that_are_too_large_are_skipped(void **state)
{
	struct dictionary dictionary;
	byte_vec bytes = {0}, name = {0};
	struct cursor cursor;
	uint32_t most;

	(void)state;
	stacks_put(&bytes, 1000);
	assert_true(dictionary_init(&dictionary));
	for (uint32_t i = 0; i < STACKS; i += 1000) {
		cursor = (struct cursor){.at = bytes.data, .end = bytes.data + bytes.len};
		assert_int_equal(dictionary_get_stacks(&dictionary, &cursor, 1000), 0);
	}
	most = (uint32_t)dictionary.stacks.len;
	assert_in_range(most, 400000, STACKS - 1);
	assert_int_equal(most + dictionary.skipped, STACKS);
	/* Strings behind them are not there either, and who refers to one gets none. */
	assert_true(string_put(&name, "late", 4));
	cursor = (struct cursor){.at = name.data, .end = name.data + name.len};
	assert_int_equal(dictionary_get_strings(&dictionary, &cursor, 1), 0);
	assert_int_equal(dictionary.skipped, STACKS - most + 1);
	name.len = 0;
	assert_true(vec_push(&name, 7) && vec_push(&name, 1) && vec_push(&name, 0) &&
		    vec_push(&name, 1));
	cursor = (struct cursor){.at = name.data, .end = name.data + name.len};
	assert_int_equal(dictionary_get_processes(&dictionary, &cursor, 1), 0);
	assert_int_equal(dictionary.processes.len, 0);
	dictionary_free(&dictionary);
	vec_free(&bytes);
	vec_free(&name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_more_stacks_than_a_reader_has_room_for_are_left_out_and_counted,
			store_setup, store_teardown),
		cmocka_unit_test_setup_teardown(
			test_processes_with_long_command_lines_can_be_read_again, store_setup,
			store_teardown),
		cmocka_unit_test_setup_teardown(
			test_objects_with_longer_texts_than_waffle_writes_are_refused, store_setup,
			store_teardown),
		cmocka_unit_test_setup_teardown(test_ways_of_many_processes_leave_room_for_stacks,
						store_setup, store_teardown),
		cmocka_unit_test(test_tables_of_an_older_writer_that_are_too_large_are_skipped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
