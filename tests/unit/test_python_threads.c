// SPDX-License-Identifier: Apache-2.0
/* Names of threads in memory that may hold anything, for the forms of all versions. Real ones:
 * tests/integration/test_thread_names.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "target/process/python_threads.h"

#define RUNTIME 0x1000
#define VERSION_AT 0x1800
#define INTERPRETER 0x2000
#define STATE 0x3000
#define CFRAME 0x3800
#define FRAME 0x4000
#define CODE 0x5000
#define TYPE 0x6000
#define OBJECT 0x7080
#define DICT 0x8000
#define KEYS 0x9000
#define VALUES 0xa000
#define TEXTS 0xb000 /* one each 0x100 bytes: the file, its function, two keys and the name */
#define NUMBER 0xc000
#define TID 4711

static unsigned char memory[0xd000];

/* The offsets that a version of CPython uses. Versions from 3.13 on publish most of them
 * (offsets_put()). */
struct layout {
	uint32_t version;
	uint32_t interpreters, threads, frame, cframe; /* cframe 1: there is none */
	uint32_t frame_code, frame_back, frame_owner, frame_locals;
	uint32_t code_file, code_name, cached_keys, ascii;
};

static const struct layout layouts[] = {
	{0x0308, 40, 8, 24, 1, 32, 24, 0, 360, 104, 112, 872, 48},
	{0x0309, 40, 8, 24, 1, 32, 24, 0, 360, 104, 112, 864, 48},
	{0x030a, 40, 8, 24, 1, 32, 24, 0, 352, 104, 112, 872, 48},
	{0x030b, 48, 16, 56, 8, 32, 48, 69, 72, 112, 120, 872, 48},
	{0x030c, 48, 72, 56, 0, 0, 8, 70, 72, 112, 120, 880, 40},
	{0x030d, 624, 7344, 72, 1, 0, 8, 70, 80, 112, 120, 880, 40},
	{0x030e, 632, 7360, 72, 1, 0, 8, 74, 80, 112, 120, 888, 40},
};

static void put(size_t at, uint64_t value, size_t bytes)
{
	memcpy(memory + at, &value, bytes);
}

static uint64_t text_put(const struct layout *layout, unsigned number, const char *text)
{
	uint64_t at = TEXTS + 0x100 * number;

	put(at + WAFFLE_PYTHON_LENGTH, strlen(text), 8);
	put(at + WAFFLE_PYTHON_STATE, 1u << 2 | 1u << 5 | 1u << 6, 4);
	strcpy((char *)memory + at + layout->ascii, text);
	return at;
}

/* The offsets that 3.13 and later publish: Include/internal/pycore_debug_offsets.h. */
static void offsets_put(const struct layout *layout)
{
	bool last = layout->version == 0x030e;
	unsigned thread = last ? 22 : 19, frame = last ? 31 : 28, code = last ? 39 : 34;
	unsigned type = last ? 52 : 46;

	memcpy(memory + RUNTIME, "xdebugpy", 8);
	put(RUNTIME + 8, layout->version << 16 | 0xf0, 8);
	put(RUNTIME + 8 * 5, layout->interpreters, 8);
	put(RUNTIME + 8 * 9, layout->threads % 0x1000, 8);
	put(RUNTIME + 8 * (thread + 2), 8, 8);
	put(RUNTIME + 8 * (thread + 4), layout->frame, 8);
	put(RUNTIME + 8 * (thread + 5), 152, 8);
	put(RUNTIME + 8 * (frame + 1), layout->frame_back, 8);
	put(RUNTIME + 8 * (frame + 2), layout->frame_code, 8);
	put(RUNTIME + 8 * (frame + 4), layout->frame_locals, 8);
	put(RUNTIME + 8 * (frame + 5), layout->frame_owner, 8);
	put(RUNTIME + 8 * (code + 1), layout->code_file, 8);
	put(RUNTIME + 8 * (code + 2), layout->code_name, 8);
	put(RUNTIME + 8 * type, layout->cached_keys - 464, 8);
	put(RUNTIME + 8 * (type + 1), 24, 8);
	put(RUNTIME + 8 * (type + 3), 168, 8);
}

/* Keys and values: with `values`, apart from the keys. */
static void keys_put(const struct layout *layout, uint64_t values)
{
	bool old = layout->version < 0x030b;
	uint64_t entries = old ? KEYS + 40 + 8 : KEYS + 32 + 8;
	uint32_t step = old ? 24 : 16, key = old ? 8 : 0;

	put(KEYS + 8, old ? 8 : 3 | 3 << 8 | 1 << 16, 8); /* 8 indexes of a byte */
	put(KEYS + (old ? 32 : 24), 3, 8);
	put(entries + key, text_put(layout, 4, "_target"), 8);
	put(entries + step + key, text_put(layout, 2, "_name"), 8);
	put(entries + 2 * step + key, text_put(layout, 3, "_native_id"), 8);
	put(values ? values + 8 : entries + step + key + 8, text_put(layout, 5, "loader"), 8);
	put(values ? values + 16 : entries + 2 * step + key + 8, NUMBER, 8);
}

enum form { IN_DICT, IN_SPLIT_DICT, WITHOUT_DICT };

static void attributes_put(const struct layout *layout, enum form form)
{
	bool managed = layout->version >= 0x030b, head = layout->version >= 0x030d;
	uint64_t values = form == IN_DICT ? 0 : head ? VALUES + 8 : VALUES;
	uint64_t dict = managed ? OBJECT - 24 : OBJECT + 16;

	if (form == WITHOUT_DICT && head)
		values = OBJECT + 64 + 8;
	put(TYPE + 32, 64, 8);
	put(TYPE + 168, managed ? 1 << 4 | 1 << 2 : 0, 8);
	put(TYPE + 288, managed ? 0 : 16, 8);
	put(TYPE + layout->cached_keys, KEYS, 8);
	put(OBJECT + 8, TYPE, 8);
	keys_put(layout, values);
	put(DICT + 32, KEYS, 8);
	put(DICT + 40, form == IN_SPLIT_DICT ? VALUES : 0, 8);
	put(VALUES + 3, head, 1);
	if (form != WITHOUT_DICT)
		put(dict, DICT, 8);
	else if (layout->version == 0x030b)
		put(OBJECT - 32, VALUES, 8);
	else if (layout->version == 0x030c)
		put(OBJECT - 24, VALUES - 1, 8);
	else
		put(OBJECT + 64 + 3, 1, 1);
}

static void thread_put(const struct layout *layout, enum form form)
{
	memset(memory, 0, sizeof(memory));
	if (layout->version >= 0x030d)
		offsets_put(layout);
	else if (layout->version >= 0x030b)
		put(VERSION_AT, layout->version << 16 | 0xf0, 8);
	put(RUNTIME + layout->interpreters, INTERPRETER, 8);
	put(INTERPRETER + layout->threads % 0x1000, STATE, 8);
	put(STATE + layout->frame, layout->cframe == 1 ? FRAME : CFRAME, 8);
	if (layout->cframe != 1)
		put(CFRAME + layout->cframe, FRAME, 8);
	put(FRAME + layout->frame_code, CODE, 8);
	put(FRAME + layout->frame_locals, OBJECT, 8);
	put(CODE + layout->code_file, text_put(layout, 0, "/usr/lib/python3/threading.py"), 8);
	put(CODE + layout->code_name, text_put(layout, 1, "_bootstrap"), 8);
	attributes_put(layout, form);
	put(NUMBER + 16, layout->version >= 0x030c ? 1 << 3 : 1, 8);
	put(NUMBER + 24, TID, 4);
}

/* Searches the threads of a process with this memory. False: there is nothing to search. */
static bool threads_search(const struct layout *layout, python_thread_fn *each, void *arg)
{
	static const uint32_t sizes[] = {1464, 656, 672};
	struct python_place place = {.runtime = RUNTIME};
	struct image image = {.process = -1, .memory = memfd_create("memory", MFD_CLOEXEC)};
	struct python_threads threads;
	struct python python;
	bool begun;

	if (layout->version < 0x030b)
		place.runtime_bytes = sizes[layout->version - 0x0308];
	else if (layout->version < 0x030d)
		place.version_at = VERSION_AT;
	assert_int_equal(write(image.memory, memory, sizeof(memory)), sizeof(memory));
	assert_true(python_at(&python, &image, &place));
	begun = python_threads_begin(&threads, &python, &image);
	while (begun && python_threads_step(&threads, each, arg))
		;
	python_threads_end(&threads);
	return begun;
}

static void thread_seen(const struct python_thread *thread, void *arg)
{
	struct python_thread *seen = arg;

	assert_int_equal(seen->seen_tid, 0);
	*seen = *thread;
}

/* Returns the only thread that the search finds. Its name is "" if there is none. */
static struct python_thread thread_get(const struct layout *layout)
{
	struct python_thread seen = {0};

	threads_search(layout, thread_seen, &seen);
	return seen;
}

static const size_t layout_count = sizeof(layouts) / sizeof(layouts[0]);

/* Versions before 3.11 are known on x86-64 only (python.c, offsets_know()). */
static bool is_known(const struct layout *layout)
{
#if defined(__x86_64__)
	return layout->version >= 0x0308;
#else
	return layout->version >= 0x030b;
#endif
}

static void test_a_threads_name_is_read_in_all_forms(void **state)
{
	(void)state;
	for (size_t i = 0; i < layout_count; i++) {
		enum form last = layouts[i].version < 0x030b ? IN_SPLIT_DICT : WITHOUT_DICT;

		for (enum form form = IN_DICT; form <= last; form++) {
			struct python_thread seen;

			thread_put(&layouts[i], form);
			seen = thread_get(&layouts[i]);
			assert_string_equal(seen.name, is_known(&layouts[i]) ? "loader" : "");
			assert_int_equal(seen.seen_tid, is_known(&layouts[i]) ? TID : 0);
		}
	}
}

static void test_a_long_name_is_cut_between_characters(void **state)
{
	const struct layout *layout = &layouts[4];
	uint64_t text;

	(void)state;
	thread_put(layout, IN_DICT);
	text = TEXTS + 0x500;
	put(text + WAFFLE_PYTHON_STATE, 2u << 2 | 1u << 5, 4); /* two bytes a character */
	put(text + WAFFLE_PYTHON_LENGTH, 80, 8);
	for (unsigned i = 0; i < 80; i++)
		put(text + 56 + 2 * i, 0x20ac, 2); /* U+20AC takes three bytes */
	assert_int_equal(strlen(thread_get(layout).name), 63);
}

static void test_what_is_no_named_thread_has_no_name(void **state)
{
	static const struct {
		size_t at, bytes;
		uint64_t value;
	} faults[] = {
		{RUNTIME + 48, 8, 0},              /* no interpreter */
		{INTERPRETER + 72, 8, UINT64_MAX}, /* no thread state */
		{FRAME + 8, 8, FRAME},             /* a circle of frames */
		{FRAME + 70, 1, 3},                /* no frame of Python */
		{FRAME + 72, 8, 0},                /* no object */
		{FRAME + 72, 8, UINT64_MAX - 7},
		{TEXTS + 0x100 + 40, 8, 0x7070617274736f6f},   /* another function */
		{TEXTS + 40 + 17, 8, 0},                       /* in another file */
		{OBJECT + 8, 8, 0x100000},                     /* no type */
		{OBJECT - 24, 8, 0},                           /* no attributes */
		{DICT + 32, 8, UINT64_MAX - 100},              /* no keys */
		{KEYS + 9, 1, 200},                            /* too many indexes */
		{KEYS + 24, 8, 1},                             /* the name is none of the keys */
		{KEYS + 24, 8, UINT64_MAX},                    /* too many keys */
		{NUMBER + 16, 8, 1 << 3 | 2},                  /* a negative id */
		{NUMBER + 16, 8, 0},                           /* None, or an id of no digits */
		{TEXTS + 0x500 + WAFFLE_PYTHON_LENGTH, 8, 0},  /* an empty name */
		{TEXTS + 0x500 + WAFFLE_PYTHON_STATE, 4, 0},   /* no str */
		{TEXTS + 0x500 + WAFFLE_PYTHON_STATE, 4, ~0u}, /* seven bytes a character */
	};
	const struct layout *layout = &layouts[4];

	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct python_thread seen;

		thread_put(layout, IN_DICT);
		put(faults[i].at, faults[i].value, faults[i].bytes);
		seen = thread_get(layout);
		assert_string_equal(seen.name, "");
		assert_int_equal(seen.seen_tid, 0);
	}
}

static void test_offsets_that_lack_a_section_name_nothing(void **state)
{
	const struct layout *layout = &layouts[6];

	(void)state;
	thread_put(layout, WITHOUT_DICT);
	put(RUNTIME + 8 * 53, 25, 8); /* tp_name is elsewhere in every version */
	assert_string_equal(thread_get(layout).name, "");
}

static void each_count(const struct python_thread *thread, void *arg)
{
	(void)thread;
	(*(unsigned *)arg)++;
}

static void test_a_circle_of_threads_ends(void **state)
{
	const struct layout *layout = &layouts[4];
	unsigned count = 0;

	(void)state;
	thread_put(layout, IN_DICT);
	put(STATE + 8, STATE, 8);
	assert_true(threads_search(layout, each_count, &count));
	assert_int_equal(count, WAFFLE_PYTHON_THREADS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_threads_name_is_read_in_all_forms),
		cmocka_unit_test(test_a_long_name_is_cut_between_characters),
		cmocka_unit_test(test_what_is_no_named_thread_has_no_name),
		cmocka_unit_test(test_offsets_that_lack_a_section_name_nothing),
		cmocka_unit_test(test_a_circle_of_threads_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
