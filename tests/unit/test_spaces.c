// SPDX-License-Identifier: Apache-2.0
/* What is mapped at an address of a process at a time (capture/enrich/spaces_internal.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/enrich/spaces_internal.h"
#include "target/process/address_space.h"

#define ADDRESS 0x1000

/* A stand-in for kernel/kernel.c: all programs began at the same time. */
struct kernel {
	uint64_t since;
};

uint64_t kernel_program_since(const struct kernel *kernel, pid_t pid)
{
	(void)pid;
	return kernel->since;
}

bool kernel_program_is_private(const struct kernel *kernel, pid_t pid)
{
	(void)kernel, (void)pid;
	return false;
}

static struct mmap_event event_at(uint64_t ts, const char *path)
{
	return (struct mmap_event){.kind = MMAP_MAPPED,
				   .pid = getpid(),
				   .ts = ts,
				   .mapping = {.start = ADDRESS,
					       .end = 2 * ADDRESS,
					       .ino = 1,
					       .executable = true,
					       .path = (char *)path}};
}

static void mapped(struct spaces *spaces, uint64_t ts, const char *path)
{
	const struct mmap_event event = event_at(ts, path);

	spaces_told(spaces, &event);
}

static void test_what_was_read_is_unknown_before_a_later_change(void **state)
{
	const struct mmap_event lost = {.kind = MMAP_LOST, .ts = 20};
	struct mapping file = event_at(0, "/read").mapping;
	struct spaces spaces = {0};
	struct error err = ERROR_INIT;
	struct space *space = spaces_get(&spaces, getpid());
	struct mmap_event event = event_at(10, "/a");
	struct mmap_queue *queue;

	(void)state;
	assert_true(address_space_map(&space->mappings, &file));
	space->read_ts = 15;
	assert_int_equal(mmap_queue_open(&queue, &err), 0);
	assert_string_equal(space_place(space, queue, ADDRESS).mapping->path, "/read");
	mmap_queue_push(queue, &event, true);
	mmap_queue_begin_round(queue, 100);
	assert_null(space_place(space, queue, ADDRESS).mapping);
	assert_non_null(mmap_queue_pop(queue, 10));
	spaces_told(&spaces, &event);
	assert_string_equal(space_place(space, queue, ADDRESS).mapping->path, "/a");
	assert_int_equal(space_place(space, queue, ADDRESS).since, 10);
	spaces_told(&spaces, &lost);
	assert_null(space_place(space, queue, ADDRESS).mapping);
	assert_int_equal(space_place(space, queue, ADDRESS).since, 20);
	mmap_queue_close(queue);
	spaces_free(&spaces);
}

static void test_other_changes_do_not_hide_what_was_read(void **state)
{
	struct mapping file = event_at(0, "/read").mapping;
	struct mmap_event event = event_at(10, "/a");
	struct spaces spaces = {0};
	struct error err = ERROR_INIT;
	struct space *space = spaces_get(&spaces, getpid());
	struct mmap_queue *queue;

	(void)state;
	assert_true(address_space_map(&space->mappings, &file));
	space->read_ts = 15;
	assert_int_equal(mmap_queue_open(&queue, &err), 0);
	event.pid++;
	mmap_queue_push(queue, &event, true); /* of another process */
	event = event_at(11, "/a");
	event.mapping.start += ADDRESS;
	event.mapping.end += ADDRESS;
	mmap_queue_push(queue, &event, true); /* at another address */
	event = event_at(16, "/a");
	mmap_queue_push(queue, &event, true); /* later than the reading, so it was not seen there */
	mmap_queue_begin_round(queue, 100);
	assert_string_equal(space_place(space, queue, ADDRESS).mapping->path, "/read");
	event = event_at(14, "/a");
	event.kind = MMAP_EXEC;
	event.mapping = (struct mapping){0};
	mmap_queue_push(queue, &event, true);
	mmap_queue_begin_round(queue, 101);
	assert_null(space_place(space, queue, ADDRESS).mapping);
	mmap_queue_close(queue);
	spaces_free(&spaces);
}

/* A hit of the old program is often drained when the process runs the new one. */
static void test_code_of_a_new_program_is_not_that_of_a_hit_before_its_exec(void **state)
{
	const uint64_t address = (uintptr_t)mapped;
	const struct kernel kernel = {.since = 10};
	struct spaces spaces = {0};
	struct space *space = spaces_get(&spaces, getpid());

	(void)state;
	space_read(space, &kernel, 5);
	assert_null(space_place(space, NULL, address).mapping);
	spaces_begin(&spaces, getpid(), 10);
	assert_null(space_place(space, NULL, address).mapping); /* nothing was read yet */
	space_read(space, &kernel, 11);
	assert_non_null(space_place(space, NULL, address).mapping);
	spaces_free(&spaces);
}

/* The kernel reports the mappings of a new program before its exec is recorded. */
static void test_new_program_keeps_what_was_reported_since_its_exec(void **state)
{
	const struct mmap_event exec = {.kind = MMAP_EXEC, .pid = getpid(), .ts = 20};
	struct spaces spaces = {0};
	struct space *space;

	(void)state;
	mapped(&spaces, 10, "/old");
	space = spaces_get(&spaces, getpid());
	assert_string_equal(space_place(space, NULL, ADDRESS).mapping->path, "/old");
	spaces_told(&spaces, &exec);
	assert_null(space_place(space, NULL, ADDRESS).mapping);
	assert_int_equal(space_place(space, NULL, ADDRESS).since, 20);
	mapped(&spaces, 30, "/new");
	spaces_begin(&spaces, getpid(), 40);
	assert_string_equal(space_place(space, NULL, ADDRESS).mapping->path, "/new");
	assert_int_equal(space_place(space, NULL, ADDRESS).since, 30);
	assert_null(space_place(space, NULL, 3 * ADDRESS).mapping);
	assert_int_equal(space_place(space, NULL, 3 * ADDRESS).since, 20);
	spaces_free(&spaces);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_code_of_a_new_program_is_not_that_of_a_hit_before_its_exec),
		cmocka_unit_test(test_what_was_read_is_unknown_before_a_later_change),
		cmocka_unit_test(test_other_changes_do_not_hide_what_was_read),
		cmocka_unit_test(test_new_program_keeps_what_was_reported_since_its_exec),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
