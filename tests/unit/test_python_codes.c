// SPDX-License-Identifier: Apache-2.0
/* Code objects of Python in memory that may hold anything. Real ones:
 * tests/integration/test_python_probes.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "target/process/python_codes.h"

#define CODE 0x1000
#define NAME 0x2000
#define FILE_NAME 0x2100
#define TYPE 0xabc0
#define VERSION 0x800

static unsigned char memory[0x3000];

static void put(size_t at, uint64_t value, size_t bytes)
{
	memcpy(memory + at, &value, bytes);
}

/* A str of ASCII, as since 3.12. */
static void text_put(size_t at, const char *text)
{
	put(at + WAFFLE_PYTHON_LENGTH, strlen(text), 8);
	put(at + WAFFLE_PYTHON_STATE, 1u << 2 | 1u << 5 | 1u << 6, 4);
	memcpy(memory + at + 40, text, strlen(text));
}

static void code_put(void)
{
	memset(memory, 0, sizeof(memory));
	put(VERSION, 0x030c01f0, 8);
	put(CODE, 2, 8); /* references */
	put(CODE + 8, TYPE, 8);
	put(CODE + 48, 3, 4);  /* flags: CO_OPTIMIZED, CO_NEWLOCALS */
	put(CODE + 68, 17, 4); /* line */
	put(CODE + 112, FILE_NAME, 8);
	put(CODE + 120, NAME, 8);
	put(CODE + 128, NAME, 8);
	text_put(NAME, "step");
	text_put(FILE_NAME, "/srv/train.py");
}

static bool code_get(struct python_code *code)
{
	const struct python_place place = {.version_at = VERSION};
	struct image image = {.process = -1, .memory = memfd_create("memory", MFD_CLOEXEC)};
	struct python python;
	bool found;

	assert_true(image.memory >= 0);
	assert_int_equal(write(image.memory, memory, sizeof(memory)), sizeof(memory));
	assert_true(python_at(&python, &image, &place));
	python.code_type = TYPE;
	found = python_code_at(code, &python, &image, CODE);
	close(image.memory);
	return found;
}

static void test_a_code_object_is_read(void **state)
{
	struct python_code code;

	(void)state;
	code_put();
	assert_true(code_get(&code));
	assert_string_equal(code.function.function, "step");
	assert_string_equal(code.function.file, "/srv/train.py");
	assert_int_equal(code.first_line, 17);
	assert_int_equal(code.first, CODE + 192);
	assert_int_equal(code.name, NAME);
	assert_false(code.suspends);
	put(CODE + 48, 0x83, 4); /* CO_COROUTINE */
	assert_true(code_get(&code));
	assert_true(code.suspends);
	put(CODE, 0xffffffff, 8); /* immortal */
	assert_true(code_get(&code));
}

static void test_what_is_no_living_code_object_is_rejected(void **state)
{
	static const struct {
		size_t at, bytes;
		uint64_t value;
	} faults[] = {
		{CODE, 8, 0},               /* it was freed */
		{CODE, 8, 0x7f0012345678},  /* it was freed, and is in a list of free blocks */
		{CODE, 8, 0x7f0000000000},  /* the same */
		{CODE + 8, 8, TYPE + 8},    /* an object of another type */
		{CODE + 68, 4, 0x80000000}, /* no line */
		{CODE + 112, 8, 0x100000},  /* its file's name is nowhere */
		{CODE + 128, 8, 0},         /* it has no name */
		{NAME + WAFFLE_PYTHON_STATE, 4, 0}, /* its name is no str */
		{NAME + WAFFLE_PYTHON_LENGTH, 8, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct python_code code;

		code_put();
		put(faults[i].at, faults[i].value, faults[i].bytes);
		assert_false(code_get(&code));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_code_object_is_read),
		cmocka_unit_test(test_what_is_no_living_code_object_is_rejected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
