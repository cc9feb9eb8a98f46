// SPDX-License-Identifier: Apache-2.0
/* Frames of Python in memory that may hold anything. Real ones, of all versions:
 * tests/integration/test_hangs.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "target/process/python_frames.h"

#define RUNTIME 0x1000
#define INTERPRETER 0x2000
#define STATES 0x3000 /* one each 0x100 bytes */
#define FRAMES 0x4000 /* one each 0x80 bytes */
#define CODE(number) (0x100000u + 0x100u * (number))
#define INSTRUCTION(number) (CODE(number) + 0x40u)
#define KEY 0x7f0000001740ull
#define FRAMES_ALL 64

static unsigned char memory[0x8000];

/* As in 3.12: the frame behind the outermost one of a call of the loop is none of Python. */
static const struct python python = {
	.found = true,
	.kernel = {.runtime = RUNTIME,
		   .interpreters_main = 48,
		   .threads_head = 72,
		   .thread_next = 8,
		   .thread_key = 136,
		   .thread_frame = 56,
		   .frame_previous = 8,
		   .frame_instr = 56,
		   .frame_owner = 70,
		   .owner_none = 3},
};

static void put(size_t at, uint64_t value)
{
	memcpy(memory + at, &value, sizeof(value));
}

static uint64_t frame_at(unsigned number)
{
	return FRAMES + 0x80 * number;
}

static void frame_put(unsigned number, uint8_t owner, uint64_t previous)
{
	put(frame_at(number), CODE(number) | 1); /* a tag of 3.14 */
	put(frame_at(number) + 8, previous);
	put(frame_at(number) + 56, INSTRUCTION(number));
	memory[frame_at(number) + 70] = owner;
}

/* Two threads, of which the second has `frames` frames and the key. */
static void threads_put(unsigned frames)
{
	memset(memory, 0, sizeof(memory));
	put(RUNTIME + 48, INTERPRETER);
	put(INTERPRETER + 72, STATES);
	put(STATES + 8, STATES + 0x100);
	put(STATES + 136, KEY + 1);
	put(STATES + 0x100 + 136, KEY);
	put(STATES + 0x100 + 56, frames ? frame_at(0) : 0);
	for (unsigned i = 0; i < frames; i++)
		frame_put(i, 0, i + 1 < frames ? frame_at(i + 1) : 0);
}

static uint32_t frames_get(uint64_t key, uint64_t *words, bool *cut)
{
	struct image image = {.process = -1, .memory = memfd_create("memory", MFD_CLOEXEC)};
	struct python_frames frames;
	uint32_t count;

	assert_int_equal(write(image.memory, memory, sizeof(memory)), sizeof(memory));
	python_frames_begin(&frames, &python, &image);
	count = python_frames_read(&frames, key, words, cut);
	python_frames_end(&frames);
	close(image.memory);
	return count;
}

static void test_frames_of_the_thread_with_the_key_are_read(void **state)
{
	uint64_t words[2 * WAFFLE_FRAMES_PYTHON_MAX];
	bool cut;

	(void)state;
	threads_put(4);
	frame_put(2, 3, frame_at(3)); /* a new call of the loop */
	assert_int_equal(frames_get(KEY, words, &cut), 3);
	assert_false(cut);
	assert_int_equal(words[0], CODE(0));
	assert_int_equal(words[1], INSTRUCTION(0));
	assert_int_equal(words[2], CODE(1));
	assert_int_equal(words[3], INSTRUCTION(1) | WAFFLE_PYTHON_ENTRY);
	assert_int_equal(words[4], CODE(3));
	assert_int_equal(words[5], INSTRUCTION(3));
}

static void test_a_thread_that_is_not_known_has_no_frames(void **state)
{
	uint64_t words[2 * WAFFLE_FRAMES_PYTHON_MAX];
	bool cut;

	(void)state;
	threads_put(3);
	assert_int_equal(frames_get(KEY + 2, words, &cut), 0);
	assert_int_equal(frames_get(0, words, &cut), 0);
	threads_put(0);
	assert_int_equal(frames_get(KEY, words, &cut), 0);
}

static void test_circles_end_and_deep_stacks_are_cut(void **state)
{
	uint64_t words[2 * WAFFLE_FRAMES_PYTHON_MAX];
	bool cut;

	(void)state;
	threads_put(FRAMES_ALL);
	assert_int_equal(frames_get(KEY, words, &cut), WAFFLE_FRAMES_PYTHON_MAX);
	assert_true(cut);
	threads_put(2);
	frame_put(0, 3, frame_at(0)); /* a circle without Python */
	assert_int_equal(frames_get(KEY, words, &cut), 0);
	assert_true(cut);
	threads_put(2);
	put(STATES + 8, STATES); /* a circle of threads */
	assert_int_equal(frames_get(KEY, words, &cut), 0);
}

static void test_frames_that_cannot_be_read_end_the_stack(void **state)
{
	uint64_t words[2 * WAFFLE_FRAMES_PYTHON_MAX];
	bool cut;

	(void)state;
	threads_put(2);
	frame_put(1, 0, UINT64_MAX - 7);
	assert_int_equal(frames_get(KEY, words, &cut), 2);
	assert_true(cut);
	put(INTERPRETER + 72, UINT64_MAX - 7);
	assert_int_equal(frames_get(KEY, words, &cut), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames_of_the_thread_with_the_key_are_read),
		cmocka_unit_test(test_a_thread_that_is_not_known_has_no_frames),
		cmocka_unit_test(test_circles_end_and_deep_stacks_are_cut),
		cmocka_unit_test(test_frames_that_cannot_be_read_end_the_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
