// SPDX-License-Identifier: Apache-2.0
/* Calls whose values are all words, which the kernel makes without its interpreter (struct
 * waffle_word). The values must equal those of the interpreter. Needs root. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cmocka.h>

#include "calls_rig.h"

PROBED void take_words(signed char tiny, unsigned short small, int number, long large, bool flag,
		       unsigned x, unsigned y, unsigned z, signed char below, int deeper,
		       unsigned deepest);

void take_words(signed char tiny, unsigned short small, int number, long large, bool flag,
		unsigned x, unsigned y, unsigned z, signed char below, int deeper, unsigned deepest)
{
	sink += (uint64_t)tiny + small + (uint64_t)number + (uint64_t)large + flag + x + y + z +
		(uint64_t)below + (uint64_t)deeper + deepest;
}

#define TAKE_WORDS                                                                                 \
	"uprobe:exe:take_words(i8 tiny, u16 small, i32 number, i64 large, bool flag, xyz box, "    \
	"i8 below, i32 deeper, u32 deepest)"

/* With long parameters a caller can set the unused part of each register and stack word, too. */
typedef void call_words(long tiny, long small, long number, long large, long flag, long x, long y,
			long z, long below, long deeper, long deepest);

static const struct object_call *call_of(const struct rig *rig, const struct said *said)
{
	return &rig->object->calls.data[said->site];
}

static void words_are(const struct rig *rig, const struct said *said)
{
	const struct box box = {UINT32_MAX, 2, 4000000000};

	assert_int_equal(value_of(rig, said, "tiny").i64, -3);
	assert_int_equal(value_of(rig, said, "small").u64, 65535);
	assert_int_equal(value_of(rig, said, "number").i64, -2000000000);
	assert_int_equal(value_of(rig, said, "large").i64, INT64_MIN + 1);
	assert_int_equal(value_of(rig, said, "flag").u64, 1);
	dim_is(rig, said, "box", box);
	assert_int_equal(value_of(rig, said, "below").i64, INT8_MIN);
	assert_int_equal(value_of(rig, said, "deeper").i64, INT32_MIN);
	assert_int_equal(value_of(rig, said, "deepest").u64, 7);
}

static void test_words_are_what_the_interpreter_makes_of_them(void **state)
{
	/* A name is not a word, so the interpreter makes all values. */
	struct rig *rig = RIG("enum fruit apple pear", TAKE_WORDS " as event",
			      TAKE_WORDS " {*(enum:fruit)(arg4) as fruit} as event");
	call_words *volatile call = (call_words *)(void *)take_words;
	const long rest = 0x0123456700000000;
	unsigned made[2] = {0};

	call(rest + 0xabcd00 + (uint8_t)-3, rest + 0xabcd0000 + 65535, rest + (uint32_t)-2000000000,
	     INT64_MIN + 1, rest + 1, rest + UINT32_MAX, rest + 2, rest + 4000000000,
	     rest + 0xabcd00 + (uint8_t)INT8_MIN, rest + (uint32_t)INT32_MIN, rest + 7);
	rig_read(rig);
	assert_int_equal(said_count(rig, WAFFLE_REC_HIT, "take_words"), 2);
	for (size_t i = 0; i < rig->said.len; i++) {
		const struct said *said = HIT(rig, i, "take_words");

		bool words = call_of(rig, said)->fetch_program.word_count > 0;

		made[words]++;
		words_are(rig, said);
		if (!words) /* nothing is mapped at that address */
			text_is(rig, said, "fruit", "apple");
	}
	assert_int_equal(made[0], 1);
	assert_int_equal(made[1], 1);
	assert_int_equal(dropped(rig), 0);
	rig_end(rig);
	(void)state;
}

PROBED void take_plain(signed char tiny, unsigned short small, int number, long large, bool flag,
		       unsigned x, unsigned y, unsigned z, signed char below);

void take_plain(signed char tiny, unsigned short small, int number, long large, bool flag,
		unsigned x, unsigned y, unsigned z, signed char below)
{
	sink += (uint64_t)tiny + small + (uint64_t)number + (uint64_t)large + flag + x + y + z +
		(uint64_t)below;
}

#define TAKE_PLAIN                                                                                 \
	"uprobe:exe:take_plain(i8 tiny, u16 small, i32 number, i64 large, bool flag, xyz box, "    \
	"i8 below)"

typedef void call_plain(long tiny, long small, long number, long large, long flag, long x, long y,
			long z, long below);

/* An event whose words are in registers and the first words of the stack comes as these; a span has
 * them made in the kernel, and one with a name has the interpreter. */
static void test_plain_calls_are_what_the_kernel_makes_of_them(void **state)
{
	struct rig *rig = RIG("enum fruit apple pear", TAKE_PLAIN, TAKE_PLAIN " as event",
			      TAKE_PLAIN " {*(enum:fruit)(arg4) as fruit} as event");
	call_plain *volatile call = (call_plain *)(void *)take_plain;
	const long rest = 0x0123456700000000;
	const struct box box = {UINT32_MAX, 2, 4000000000};
	const struct said *said[3];

	call(rest + 0xabcd00 + (uint8_t)-3, rest + 0xabcd0000 + 65535, rest + (uint32_t)-2000000000,
	     INT64_MIN + 1, rest + 1, rest + UINT32_MAX, rest + 2, rest + 4000000000,
	     rest + 0xabcd00 + (uint8_t)INT8_MIN);
	rig_read(rig);
	assert_int_equal(said_count(rig, WAFFLE_REC_HIT, "take_plain"), 3);
	for (size_t i = 0; i < 3; i++) {
		said[i] = HIT(rig, i, "take_plain");
		assert_int_equal(value_of(rig, said[i], "tiny").i64, -3);
		assert_int_equal(value_of(rig, said[i], "small").u64, 65535);
		assert_int_equal(value_of(rig, said[i], "number").i64, -2000000000);
		assert_int_equal(value_of(rig, said[i], "large").i64, INT64_MIN + 1);
		assert_int_equal(value_of(rig, said[i], "flag").u64, 1);
		dim_is(rig, said[i], "box", box);
		assert_int_equal(value_of(rig, said[i], "below").i64, INT8_MIN);
		assert_int_not_equal(said[i]->id, 0);
	}
	assert_int_not_equal(said[0]->id, said[1]->id);
	assert_int_not_equal(said[1]->id, said[2]->id);
	assert_int_equal(dropped(rig), 0);
	rig_end(rig);
	(void)state;
}

PROBED void take_last(int a, int b, int c, int d, int e, int f, int g, int h, int i);

void take_last(int a, int b, int c, int d, int e, int f, int g, int h, int i)
{
	sink += (uint64_t)a + (uint64_t)b + (uint64_t)c + (uint64_t)d + (uint64_t)e + (uint64_t)f +
		(uint64_t)g + (uint64_t)h + (uint64_t)i;
}

/* Calls take_last() at the end of the stack, with nothing after its arguments. */
static void take_at_end_of_stack(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = 16 * page;
	char *stack = mmap(NULL, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);
	ucontext_t here, there;

	assert_ptr_not_equal(stack, MAP_FAILED);
	assert_int_equal(mprotect(stack + bytes, page, PROT_NONE), 0);
	assert_int_equal(getcontext(&there), 0);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = bytes;
	there.uc_link = &here;
	makecontext(&there, (void (*)(void))(void *)take_last, 9, -1, 2, 3, 4, 5, 6, -7, 8, 9);
	assert_int_equal(swapcontext(&here, &there), 0);
	munmap(stack, bytes + page);
}

/* Reads do not go beyond the end of the stack. If all values are words, as many are read as needed;
 * otherwise the surrounding words are read at once, if they can be. */
static void test_arguments_at_the_very_end_of_a_stack_are_read(void **state)
{
	static const struct {
		const char *spec;
		bool words;
	} cases[] = {
		{"uprobe:exe:take_last(int a, int, int, int, int, int, int g, int, int i) as event",
		 true},
		{"uprobe:exe:take_last(int, char a[4], int, int, int, int, int g, int, int i) "
		 "as event",
		 false},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rig *rig = RIG(cases[i].spec);
		const struct said *hit;

		take_at_end_of_stack();
		rig_read(rig);
		assert_int_equal(rig->said.len, 1);
		hit = HIT(rig, 0, "take_last");
		assert_int_equal(call_of(rig, hit)->fetch_program.word_count > 0, cases[i].words);
		assert_int_equal(value_of(rig, hit, "g").i64, -7);
		assert_int_equal(value_of(rig, hit, "i").i64, 9);
		assert_int_equal(kernel_call_faults(rig->kernel), !cases[i].words);
		rig_end(rig);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words_are_what_the_interpreter_makes_of_them),
		cmocka_unit_test(test_plain_calls_are_what_the_kernel_makes_of_them),
		cmocka_unit_test(test_arguments_at_the_very_end_of_a_stack_are_read),
	};

	if (geteuid()) {
		print_message("needs root: skipped\n");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
