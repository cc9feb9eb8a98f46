// SPDX-License-Identifier: Apache-2.0
/* Texts to which calls pointed are read from the memory of a process. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/address_space/hit_text.h"
#include "target/process/opener.h"
#include "util/clock.h"

#define PAGE 4096ul

struct memory {
	struct hit_text *texts;
	char *pages; /* three; the page after them is not mapped */
};

static int open_memory(void **state)
{
	struct memory *memory = calloc(1, sizeof(*memory));

	memory->texts = hit_text_new(NULL);
	memory->pages =
		mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(memory->pages, MAP_FAILED);
	munmap(memory->pages + 3 * PAGE, PAGE);
	*state = memory;
	return 0;
}

static int close_memory(void **state)
{
	struct memory *memory = *state;

	hit_text_free(memory->texts);
	munmap(memory->pages, 3 * PAGE);
	free(memory);
	opener_stop();
	return 0;
}

static void assert_text(struct memory *memory, const char *at, uint64_t ts, const char *expected)
{
	char *text = hit_text_read(memory->texts, getpid(), ts, (uintptr_t)at);

	if (expected)
		assert_string_equal(text, expected);
	else
		assert_null(text);
	free(text);
}

static void test_texts_may_cross_pages_and_must_end(void **state)
{
	struct memory *memory = *state;
	char *end = memory->pages + 3 * PAGE;

	strcpy(memory->pages + PAGE - 3, "saxpy");
	assert_text(memory, memory->pages + PAGE - 3, 1, "saxpy");
	assert_text(memory, memory->pages + PAGE, 1, "py");
	assert_text(memory, memory->pages, 1, "");
	strcpy(end - 5, "gemm");
	assert_text(memory, end - 5, clock_monotonic_ns(), "gemm");
	end[-1] = 'x';
	assert_text(memory, end - 5, clock_monotonic_ns(), NULL);
	assert_text(memory, end, 1, NULL);
	assert_text(memory, NULL, 1, NULL);
}

static void test_texts_are_at_most_4095_bytes(void **state)
{
	struct memory *memory = *state;
	char *text;

	memset(memory->pages, 'x', 2 * PAGE);
	memory->pages[10 + 4096] = '\0';
	assert_text(memory, memory->pages + 10, 1, NULL);
	text = hit_text_read(memory->texts, getpid(), 1, (uintptr_t)memory->pages + 11);
	assert_int_equal(strlen(text), 4095);
	free(text);
}

static void test_what_was_read_is_not_shown_for_a_later_hit(void **state)
{
	struct memory *memory = *state;

	strcpy(memory->pages, "first");
	strcpy(memory->pages + 100, "beside");
	assert_text(memory, memory->pages, 1, "first");
	strcpy(memory->pages, "second");
	assert_text(memory, memory->pages + 100, 1, "beside"); /* of the same window */
	assert_text(memory, memory->pages, clock_monotonic_ns(), "second");
}

static void test_processes_are_kept_apart_and_forgotten(void **state)
{
	struct memory *memory = *state;
	pid_t child;

	strcpy(memory->pages, "child");
	child = fork();
	if (!child) {
		pause();
		_exit(0);
	}
	strcpy(memory->pages, "parent");
	assert_text(memory, memory->pages, 1, "parent");
	for (unsigned i = 0; i < 2; i++) {
		char *text = hit_text_read(memory->texts, child, 1, (uintptr_t)memory->pages);

		assert_string_equal(text, "child");
		free(text);
		hit_text_forget(memory->texts, getpid()); /* another one */
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	hit_text_forget(memory->texts, child);
	assert_null(hit_text_read(memory->texts, child, 1, (uintptr_t)memory->pages));
	assert_text(memory, memory->pages, 1, "parent");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_texts_may_cross_pages_and_must_end,
						open_memory, close_memory),
		cmocka_unit_test_setup_teardown(test_texts_are_at_most_4095_bytes, open_memory,
						close_memory),
		cmocka_unit_test_setup_teardown(test_what_was_read_is_not_shown_for_a_later_hit,
						open_memory, close_memory),
		cmocka_unit_test_setup_teardown(test_processes_are_kept_apart_and_forgotten,
						open_memory, close_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
