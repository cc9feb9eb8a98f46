// SPDX-License-Identifier: Apache-2.0
/* What is mapped at an address of a process at a time (capture/spaces.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/spaces.h"

#define ADDRESS 0x1000

static void mapped(struct spaces *spaces, uint64_t ts, const char *path)
{
	const struct mmap_event event = {.kind = MMAP_MAPPED,
					 .pid = getpid(),
					 .ts = ts,
					 .mapping = {.start = ADDRESS,
						     .end = 2 * ADDRESS,
						     .ino = 1,
						     .executable = true,
						     .path = (char *)path}};

	spaces_told(spaces, &event);
}

static void test_what_was_read_later_does_not_hide_what_was_reported_before(void **state)
{
	struct spaces spaces = {0};
	struct space *space;

	(void)state;
	mapped(&spaces, 10, "/a");
	mapped(&spaces, 20, "/b");
	mapped(&spaces, 30, "/c");
	space = spaces_get(&spaces, getpid());
	space->read_ts = 35;
	assert_null(space_place(space, ADDRESS, 5)
			    .mapping); /* unknown: it changed before the reading */
	assert_string_equal(space_place(space, ADDRESS, 15).mapping->path, "/a");
	assert_string_equal(space_place(space, ADDRESS, 25).mapping->path, "/b");
	assert_string_equal(space_place(space, ADDRESS, 40).mapping->path, "/c");
	spaces_free(&spaces);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_was_read_later_does_not_hide_what_was_reported_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
