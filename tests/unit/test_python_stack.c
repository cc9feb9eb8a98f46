// SPDX-License-Identifier: Apache-2.0
/* Lines and frames of Python: tables that CPython made. Frames: tests/integration/test_stacks.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "target/process/python.h"

/*
 * The table of lines of one function, and what the same interpreter says of each of its
 * instructions (co_lines(), before 3.10 dis.findlinestarts()); 0: none. The function, from line 2
 * on:
 *
 *	def sample(a, b):
 *	    total = 0
 *	    for i in range(a):
 *	        total += (
 *	            b *
 *	            i
 *	        )
 *	    try:
 *	        return [x for x in range(total)]
 *	    except ValueError as e:
 *	        raise e
 *	    (three empty lines)
 *	    finally:
 *	        total = 1
 */
static const struct {
	const char *version;
	enum python_lines form;
	const char *table;
	uint32_t lines[96];
	size_t count;
} samples[] = {
	{"3.8.18",
	 PYTHON_LINES_LNOTAB,
	 "000104010c010201020102ff02ff06040401180110011a05",
	 {3,  3,  4,  4,  4,  4,  4,  4,  5,  6,  7,  6,  5,  5,  5,  9,  9,  10, 10,
	  10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 11, 11, 11, 11, 11, 11, 11, 11, 12,
	  12, 12, 12, 12, 12, 12, 12, 12, 12, 12, 12, 12, 17, 17, 17, 17, 17},
	 55},
	{"3.9.18",
	 PYTHON_LINES_LNOTAB,
	 "000104010c010201020102ff02ff06040401140704f902010e011c05",
	 {3,  3,  4,  4,  4,  4,  4,  4,  5,  6,  7,  6,  5,  5,  5,  9,  9,  10, 10, 10,
	  10, 10, 10, 10, 10, 10, 10, 17, 17, 10, 11, 11, 11, 11, 11, 11, 11, 12, 12, 12,
	  12, 12, 12, 12, 12, 12, 12, 12, 12, 12, 12, 17, 17, 17, 17, 17, 17, 17, 17},
	 59},
	{"3.10.13",
	 PYTHON_LINES_3_10,
	 "04010c0102010201020102ff06ff0404140106070efa0401088002ff0606",
	 {3,  3,  4,  4,  4,  4,  4,  4,  5,  6,  7,  6,  5,  5,  5,  9,
	  9,  10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 17, 17, 17, 11, 11,
	  11, 11, 11, 11, 11, 12, 12, 0,  0,  0,  0,  11, 17, 17, 17},
	 47},
	{"3.11.7",
	 PYTHON_LINES_LOCATIONS,
	 "8000d80c0d8045dd0d12903189588c58f00004050af00004050a8801d8080dd80c0dd80c0df103010d0ef1030"
	 "3090a88058805f008080512d80f28d00f289d35a015993c9c3cd00f28d10f28d40f28f00e00111288058805f8"
	 "f50d000c16f000010510f000010510f000010510d80e0f8807f8f8f8f8f003010510f8f8f8f8f00c001112880"
	 "58809880988098809",
	 {2,  3,  3,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  5,
	  6,  7,  6,  6,  5,  5,  5,  5,  9,  10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10,
	  10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 17, 17, 17, 0,  11, 11, 11, 11, 11,
	  11, 11, 11, 11, 12, 12, 0,  0,  0,  0,  11, 0,  0,  0,  0,  17, 17, 17, 17, 17, 17},
	 84},
	{"3.12.1",
	 PYTHON_LINES_LOCATIONS,
	 "8000d80c0d8045dc0d1290318b58f20004050a8801d8080dd80c0dd80c0df103010d0ef10303090a8905f0030"
	 "4050af00a080512dc1b20a0159b3cd60f2890619201d20f28f00e0011128905f9f20f001029f8dc0b15f20001"
	 "0510d80e0f8807fbf003010510fbf00c0011128905fa",
	 {2,  3,  3,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  5,  6,  7,  6,  6,
	  5,  5,  5,  5,  4,  9,  10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10,
	  10, 10, 10, 10, 10, 10, 10, 10, 17, 17, 17, 0,  0,  10, 10, 10, 0,  11, 11, 11, 11, 11,
	  11, 11, 11, 12, 12, 0,  0,  0,  0,  11, 0,  0,  0,  0,  17, 17, 17, 0,  0,  0},
	 86},
	{"3.13.0",
	 PYTHON_LINES_LOCATIONS,
	 "8000d80c0d8045dc0d1290318e588801d8080dd80c0dd80c0df103010d0ef10303090a8a05f103000e16f00a0"
	 "80512dc1b20a0159c3cd30f28993c90619201993cd10f28f00e0011128905f9f20f001029f8dc0b15f3000105"
	 "10d80e0f8807fbf003010510fbf00c0011128905fa",
	 {2,  3,  3,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  4,  5,
	  6,  7,  6,  6,  5,  5,  5,  5,  5,  4,  4,  9,  10, 10, 10, 10, 10, 10,
	  10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10,
	  10, 17, 17, 17, 0,  0,  10, 10, 10, 0,  11, 11, 11, 11, 11, 11, 11, 11,
	  11, 12, 12, 0,  0,  0,  0,  11, 0,  0,  0,  0,  17, 17, 17, 0,  0,  0},
	 90},
};

static size_t unhex(const char *text, unsigned char *bytes)
{
	size_t size = strlen(text) / 2;

	for (size_t i = 0; i < size; i++) {
		unsigned byte;

		assert_int_equal(sscanf(text + 2 * i, "%2x", &byte), 1);
		bytes[i] = (unsigned char)byte;
	}
	return size;
}

static void test_lines_are_those_that_the_interpreter_says(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		unsigned char table[256];
		size_t size = unhex(samples[i].table, table);

		for (size_t k = 0; k < samples[i].count; k++)
			assert_int_equal(python_line(samples[i].form, table, size, 2, 2 * k),
					 samples[i].lines[k]);
		if (samples[i].form != PYTHON_LINES_LNOTAB) /* whose last line has no end */
			assert_int_equal(
				python_line(samples[i].form, table, size, 2, 2 * samples[i].count),
				0);
	}
}

static void test_a_cut_table_gives_no_line_behind_its_end(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		enum python_lines form = samples[i].form;
		unsigned char table[256];
		size_t size = unhex(samples[i].table, table);

		for (size_t cut = 0; cut < size; cut++) {
			unsigned char *exact = malloc(cut ? cut : 1);

			assert_non_null(exact);
			memcpy(exact, table, cut);
			for (uint64_t offset = 0; offset < 200; offset += 2)
				python_line(form, exact, cut, 2,
					    offset); /* ASan: reads no further */
			if (form != PYTHON_LINES_LNOTAB)
				assert_int_equal(python_line(form, exact, cut, 2, 1u << 20), 0);
			free(exact);
		}
	}
}

static void test_a_table_of_any_bytes_is_read_without_harm(void **state)
{
	uint64_t random = 7;

	(void)state;
	for (int round = 0; round < 2000; round++) {
		unsigned char table[64];

		for (size_t i = 0; i < sizeof(table); i++) {
			random = random * 6364136223846793005ull + 1442695040888963407ull;
			table[i] = (unsigned char)(random >> 56);
		}
		for (int form = PYTHON_LINES_LOCATIONS; form <= PYTHON_LINES_LNOTAB; form++)
			python_line((enum python_lines)form, table, sizeof(table), 1, random % 200);
	}
}

static void test_a_line_that_is_too_far_is_none(void **state)
{
	/* An entry of two bytes' length, whose line is 2^59 - 1 behind the one before. */
	static const unsigned char entry[] = {0x80 | 13 << 3, 0x7e, 0x7f, 0x7f, 0x7f, 0x7f,
					      0x7f,           0x7f, 0x7f, 0x7f, 0x3f};
	unsigned char table[64 * sizeof(entry)];

	(void)state;
	for (size_t i = 0; i < 64; i++)
		memcpy(table + i * sizeof(entry), entry, sizeof(entry));
	for (uint64_t offset = 0; offset < 64; offset += 2)
		assert_int_equal(
			python_line(PYTHON_LINES_LOCATIONS, table, sizeof(table), 1, offset), 0);
}

static void text_set(struct waffle_code_text *text, uint8_t *to, const uint32_t *characters,
		     uint32_t count)
{
	*text = (struct waffle_code_text){.state = 4u << 2 | 1u << 5, .bytes = 4 * count};
	memcpy(to, characters, text->bytes);
}

static void test_a_name_of_any_characters_is_whole_and_utf8(void **state)
{
	static const uint32_t name[] = {'a', 0, 0xd800, 'b', 0x110000, 0xffffffff, 0x1f600};
	static const uint32_t file[] = {'/', 0xdcff, 0x416};
	struct waffle_rec_code *code = calloc(1, sizeof(*code));
	struct python python = {0};
	struct python_frame frame;

	(void)state;
	assert_non_null(code);
	text_set(&code->name_text, code->name, name, sizeof(name) / sizeof(name[0]));
	text_set(&code->file_text, code->file, file, sizeof(file) / sizeof(file[0]));
	assert_true(python_frame_of(&python, code, 0, &frame));
	assert_string_equal(frame.function, "a\xef\xbf\xbd\xef\xbf\xbd"
					    "b\xef\xbf\xbd\xef\xbf\xbd\xf0\x9f\x98\x80");
	assert_string_equal(frame.file, "/\xef\xbf\xbd\xd0\x96");
	free(code);
}

static void test_a_process_without_python_has_none(void **state)
{
	struct error err = ERROR_INIT;
	struct mappings mappings;
	struct python python;
	struct image image;

	(void)state;
	assert_int_equal(process_mappings(&mappings, getpid(), &err), 0);
	assert_int_equal(image_open(&image, getpid()), 0);
	python_find(&python, &image, getpid(), &mappings, false);
	image_close(&image);
	assert_false(python.found);
	assert_int_equal(python.kernel.version, 0);
	assert_true(!python.kernel.runtime);
	mappings_free(&mappings);
}

/* What is found in a process that has mapped nothing but a program's code. */
static struct python found_in(char *path)
{
	struct mapping mapping = {.start = 0x1000, .end = 0x2000, .executable = true, .path = path};
	struct mappings mappings = {.list = {.data = &mapping, .len = 1}};
	struct python python;
	struct image image;

	assert_int_equal(image_open(&image, getpid()), 0);
	assert_int_equal(python_find(&python, &image, getpid(), &mappings, false), 0);
	image_close(&image);
	return python;
}

static void test_an_old_interpreter_is_known_by_its_name_and_not_supported(void **state)
{
	(void)state;
	assert_true(found_in("/nowhere/bin/python2.7").found);
	assert_int_equal(found_in("/nowhere/bin/python2.7").kernel.version, 0x02070000);
	assert_int_equal(found_in("/nowhere/libpython3.6m.so.1.0").kernel.version, 0x03060000);
	assert_true(!found_in("/nowhere/bin/python3.6").kernel.runtime);
	assert_false(found_in("/nowhere/bin/python3.7").found);
	assert_false(found_in("/nowhere/bin/python3.10").found);
	assert_false(found_in("/nowhere/python2.70").found);
	assert_false(found_in("/nowhere/pythonic").found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines_are_those_that_the_interpreter_says),
		cmocka_unit_test(test_a_cut_table_gives_no_line_behind_its_end),
		cmocka_unit_test(test_a_table_of_any_bytes_is_read_without_harm),
		cmocka_unit_test(test_a_line_that_is_too_far_is_none),
		cmocka_unit_test(test_a_name_of_any_characters_is_whole_and_utf8),
		cmocka_unit_test(test_a_process_without_python_has_none),
		cmocka_unit_test(test_an_old_interpreter_is_known_by_its_name_and_not_supported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
