// SPDX-License-Identifier: Apache-2.0
/*
 * Calls in the kernel: functions of this very program are described, found, armed and called, and
 * what the kernel says of them is compared with what they were called with. Needs root.
 */
#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "calls_rig.h"

/* ---- values ---- */

#define TAKE_ALL                                                                                   \
	"uprobe:exe:take_all(i8 tiny, u16 small, i32 number, i64 large, bool flag, char *text, "   \
	"enum:fruit kind, ptr far) -> i64 ret"

static void test_arguments_come_as_the_function_was_given_them(void **state)
{
	struct rig *rig = RIG("enum fruit apple pear", TAKE_ALL);
	const struct said *hit, *end;

	take_all(-3, 65535, -2000000000, INT64_MIN + 1, true, "a text", 1, (void *)0x1234567890);
	rig_read(rig);
	assert_int_equal(rig->said.len, 2);
	hit = HIT(rig, 0, "take_all");
	end = RETURN(rig, 1, "take_all");
	assert_int_equal(value_of(rig, hit, "tiny").i64, -3);
	assert_int_equal(value_of(rig, hit, "small").u64, 65535);
	assert_int_equal(value_of(rig, hit, "number").i64, -2000000000);
	assert_int_equal(value_of(rig, hit, "large").i64, INT64_MIN + 1);
	assert_int_equal(value_of(rig, hit, "flag").u64, 1);
	text_is(rig, hit, "text", "a text");
	text_is(rig, hit, "kind", "pear");
	assert_int_equal(value_of(rig, hit, "far").u64, 0x1234567890);
	assert_int_equal(value_of(rig, end, "ret").i64, INT64_MIN);
	assert_int_equal(hit->id, end->id);
	assert_int_not_equal(hit->id, 0);
	assert_int_equal(dropped(rig), 0);
	assert_int_equal(kernel_call_faults(rig->kernel), 0);
	rig_end(rig);
	(void)state;
}

static void test_numbers_without_a_name_are_numbers(void **state)
{
	static const struct {
		int number;
		const char *text;
	} cases[] = {
		{7, "#7"},         {42, "#42"},           {100, "#100"},     {999999, "#999999"},
		{-1, "#-1"},       {-999999, "#-999999"}, {1000000, "#?"},   {-1000000, "#?"},
		{1, "pear"},       {INT32_MAX, "#?"},     {INT32_MIN, "#?"}, {-10, "#-10"},
		{12040, "#12040"},
	};
	struct rig *rig = RIG("enum fruit apple pear", TAKE_ALL);

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		take_all(0, 0, 0, 0, false, "", (unsigned)cases[i].number, NULL);
	rig_read(rig);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		text_is(rig, HIT(rig, 2 * i, "take_all"), "kind", cases[i].text);
		text_is(rig, HIT(rig, 2 * i, "take_all"), "text", "");
	}
	rig_end(rig);
	(void)state;
}

static void test_addresses_that_point_nowhere_are_counted_and_the_call_is_there(void **state)
{
	struct rig *rig =
		RIG("enum fruit apple pear", TAKE_ALL,
		    "uprobe:exe:take_tree(ptr tree) {*(i32)(*(ptr)(tree+16)+8) as weight} as "
		    "event");
	const struct said *hit;

	take_all(0, 0, 5, 0, false, (const char *)NOWHERE, 0, NULL);
	take_all(0, 0, 6, 0, false, NULL, 0, NULL);
	take_tree((const struct tree *)NOWHERE);
	rig_read(rig);
	assert_int_equal(rig->said.len, 5);
	hit = HIT(rig, 0, "take_all");
	assert_int_equal(value_of(rig, hit, "text").text_len, 0);
	assert_true(value_of(rig, hit, "text").null);
	assert_int_equal(value_of(rig, hit, "number").i64, 5);
	text_is(rig, hit, "kind", "apple");
	assert_true(value_of(rig, HIT(rig, 2, "take_all"), "text").null);
	assert_int_equal(value_of(rig, HIT(rig, 4, "take_tree"), "weight").i64, 0);
	/* A null pointer is an answer, not a fault. */
	assert_int_equal(kernel_call_faults(rig->kernel), 2);
	rig_end(rig);
	(void)state;
}

/* A small number in place of an address means "none", as MPICH's MPI_STATUS_IGNORE does. */
static void test_numbers_behind_the_first_page_are_0_and_no_faults(void **state)
{
	struct rig *rig = RIG("uprobe:exe:take_tree(ptr tree) {*(i32)(tree) as weight} as event");

	take_tree((const struct tree *)1);
	take_tree((const struct tree *)4095);
	rig_read(rig);
	assert_int_equal(value_of(rig, HIT(rig, 0, "take_tree"), "weight").i64, 0);
	assert_int_equal(value_of(rig, HIT(rig, 1, "take_tree"), "weight").i64, 0);
	assert_int_equal(kernel_call_faults(rig->kernel), 0);
	rig_end(rig);
	(void)state;
}

static void test_elements_that_an_array_does_not_have_are_not_read(void **state)
{
	struct rig *rig =
		RIG("uprobe:exe:take_all(i8, u16, i32 number, i64, bool, ptr text) {*(u8)(text) as "
		    "first if number > 0, *(u8)(text+1) as second if number > 1, out *(u8)(text+1) "
		    "as last if number > 1} -> i64 ret");

	for (int number = -1; number < 3; number++)
		take_all(0, 0, number, 0, false, "AB", 0, NULL);
	rig_read(rig);
	assert_int_equal(rig->said.len, 8);
	for (int i = 0; i < 4; i++) {
		const struct said *hit = HIT(rig, 2 * i, "take_all");
		const struct said *end = RETURN(rig, 2 * i + 1, "take_all");

		assert_int_equal(value_of(rig, hit, "number").i64, i - 1);
		assert_int_equal(value_of(rig, hit, "first").u64, i - 1 > 0 ? 'A' : 0);
		assert_int_equal(value_of(rig, hit, "second").u64, i - 1 > 1 ? 'B' : 0);
		assert_int_equal(value_of(rig, end, "last").u64, i - 1 > 1 ? 'B' : 0);
	}
	rig_end(rig);
	(void)state;
}

static void test_structs_by_value_and_behind_pointers(void **state)
{
	struct rig *rig =
		RIG("uprobe:exe:take_box(dim3 box, char *text, dim3 second) as event",
		    "uprobe:exe:take_tree(ptr tree) {*(i32)(*(ptr)(tree+16)+8) as weight} as "
		    "event");
	const struct leaf leaf = {.before = 1, .weight = -77};
	const struct tree tree = {.name = "oak", .leaf = &leaf};
	const struct box first = {1, 2, 3}, second = {UINT32_MAX, 0, 4000000000};
	char text[1000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	take_box(first, text, second);
	take_tree(&tree);
	rig_read(rig);
	assert_int_equal(rig->said.len, 2);
	dim_is(rig, HIT(rig, 0, "take_box"), "box", first);
	dim_is(rig, HIT(rig, 0, "take_box"), "second", second);
	assert_true(value_of(rig, HIT(rig, 0, "take_box"), "text").cut);
	assert_in_range(value_of(rig, HIT(rig, 0, "take_box"), "text").text_len, WAFFLE_STR_MAX - 8,
			WAFFLE_STR_MAX);
	assert_int_equal(value_of(rig, HIT(rig, 1, "take_tree"), "weight").i64, -77);
	rig_end(rig);
	(void)state;
}

static void test_what_is_known_at_the_return_only_comes_then(void **state)
{
	struct rig *rig = RIG("uprobe:exe:give_out(i32 wanted, out u64 made) -> i32 ret");
	uint64_t made = 12345;
	const struct said *end;

	sink += (uint64_t)give_out(14, &made) + made;
	rig_read(rig);
	assert_int_equal(value_of(rig, HIT(rig, 0, "give_out"), "wanted").i64, 14);
	end = RETURN(rig, 1, "give_out");
	assert_int_equal(value_of(rig, end, "made").u64, 42);
	assert_int_equal(value_of(rig, end, "ret").i64, -14);
	assert_true(end->rec.ts > rig->said.data[0].rec.ts);
	rig_end(rig);
	(void)state;
}

static void numbers_are(struct rig *rig, const uint64_t numbers[6])
{
	rig_read(rig);
	assert_int_equal(rig->said.len, 6);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(value_of(rig, HIT(rig, i, "collective"), "seq").u64, numbers[i]);
}

static void test_calls_are_numbered_for_each_communicator(void **state)
{
	struct rig *rig = RIG("uprobe:exe:collective(ptr comm) {seq(comm) as seq} as event");
	static const uint64_t comms[] = {1, 2, 1, 1, 2, 3}, numbers[] = {0, 0, 1, 2, 1, 0};

	for (size_t i = 0; i < 6; i++)
		collective((void *)comms[i]);
	numbers_are(rig, numbers);
	rig_end(rig);
	(void)state;
}

static void test_what_is_new_at_an_old_address_is_numbered_from_0(void **state)
{
	struct rig *rig = RIG("uprobe:exe:collective(ptr comm) {seq(comm, 8) as seq} as event");
	static const uint64_t hashes[] = {7, 7, 8, 8, 8, 7}, numbers[] = {0, 1, 0, 1, 2, 2};
	uint64_t comm[2] = {0};

	for (size_t i = 0; i < 6; i++) {
		comm[1] = hashes[i];
		collective(comm);
	}
	numbers_are(rig, numbers);
	rig_end(rig);
	(void)state;
}

/* ---- nesting ---- */

static void test_recursive_calls_return_in_reverse(void **state)
{
	struct rig *rig = RIG("uprobe:exe:factorial(i64 n) -> i64 ret");
	static const long values[] = {0, 1, 2, 6, 24, 120, 720, 5040, 40320};

	factorial(8);
	rig_read(rig);
	assert_int_equal(rig->said.len, 16);
	for (size_t i = 0; i < 8; i++) {
		const struct said *hit = HIT(rig, i, "factorial");
		const struct said *end = RETURN(rig, 15 - i, "factorial");

		assert_int_equal(value_of(rig, hit, "n").i64, 8 - (long)i);
		assert_int_equal(value_of(rig, end, "ret").i64, values[8 - i]);
		assert_int_equal(hit->id, end->id);
		for (size_t j = 0; j < i; j++)
			assert_int_not_equal(hit->id, rig->said.data[j].id);
	}
	rig_end(rig);
	(void)state;
}

static void test_calls_too_deep_are_counted_as_lost_and_the_others_return(void **state)
{
	struct rig *rig = RIG("uprobe:exe:factorial(i64 n) -> i64 ret");

	factorial(20);
	rig_read(rig);
	assert_int_equal(said_count(rig, WAFFLE_REC_HIT, "factorial"), WAFFLE_CALL_DEPTH_MAX);
	assert_int_equal(said_count(rig, WAFFLE_REC_RETURN, "factorial"), WAFFLE_CALL_DEPTH_MAX);
	assert_int_equal(dropped(rig), 20 - WAFFLE_CALL_DEPTH_MAX);
	assert_int_equal(kernel_calls_too_deep(rig->kernel), 20 - WAFFLE_CALL_DEPTH_MAX);
	/* Each has its own values, even if calls inside it are missing. */
	assert_int_equal(value_of(rig, &rig->said.data[0], "n").i64, 20);
	assert_int_equal(value_of(rig, &rig->said.data[rig->said.len - 1], "ret").i64,
			 2432902008176640000);
	rig_end(rig);
	(void)state;
}

static void test_calls_left_by_longjmp_end_so_and_hide_nothing(void **state)
{
	struct rig *rig =
		RIG("uprobe:exe:jump_out(ptr, i32 depth)", "uprobe:exe:plain(i64 number)");

	for (int i = 0; i < 40; i++) {
		jump_once(2);
		plain(i);
	}
	rig_read(rig);
	assert_int_equal(dropped(rig), 0);
	assert_int_equal(said_count(rig, WAFFLE_REC_HIT, "jump_out"), 120);
	assert_int_equal(left_count(rig, "jump_out"), 120);
	assert_int_equal(said_count(rig, WAFFLE_REC_HIT, "plain"), 40);
	assert_int_equal(said_count(rig, WAFFLE_REC_RETURN, "plain"), 40);
	rig_end(rig);
	(void)state;
}

/* The same function called from the same frame again and again: all its calls have one and the
 * same stack pointer, those that were left as well. */
static void test_calls_left_in_a_loop_do_not_fill_the_thread(void **state)
{
	struct rig *rig =
		RIG("uprobe:exe:jump_out(ptr, i32 depth)", "uprobe:exe:plain(i64 number)");
	static jmp_buf where;
	volatile int i;

	for (i = 0; i < 40; i++) {
		if (!setjmp(where))
			jump_out(&where, 0);
		else
			plain(i);
	}
	rig_read(rig);
	assert_int_equal(dropped(rig), 0);
	assert_int_equal(said_count(rig, WAFFLE_REC_HIT, "jump_out"), 40);
	assert_int_equal(left_count(rig, "jump_out"), 40);
	assert_int_equal(said_count(rig, WAFFLE_REC_HIT, "plain"), 40);
	assert_int_equal(said_count(rig, WAFFLE_REC_RETURN, "plain"), 40);
	rig_end(rig);
	(void)state;
}

/* ---- what counts once ---- */

#define OUTER_INNER                                                                                \
	"uprobe:exe:outer_work|outer_jump(i64 number) -> i64 ret outer",                           \
		"uprobe:exe:inner_work(i64 number) -> i64 ret inner"

static void test_inner_calls_count_only_outside_of_outer_ones(void **state)
{
	struct rig *rig = RIG(OUTER_INNER);

	outer_work(5);
	inner_work(7);
	rig_read(rig);
	assert_int_equal(rig->said.len, 4);
	HIT(rig, 0, "outer_work");
	assert_int_equal(value_of(rig, RETURN(rig, 1, "outer_work"), "ret").i64, 12);
	assert_int_equal(value_of(rig, HIT(rig, 2, "inner_work"), "number").i64, 7);
	assert_int_equal(value_of(rig, RETURN(rig, 3, "inner_work"), "ret").i64, 8);
	rig_end(rig);
	(void)state;
}

static void test_an_outer_call_that_jumps_to_an_inner_one_returns(void **state)
{
	struct rig *rig = RIG(OUTER_INNER);

	outer_jump(21);
	rig_read(rig);
	assert_int_equal(rig->said.len, 2);
	HIT(rig, 0, "outer_jump");
	assert_int_equal(value_of(rig, RETURN(rig, 1, "outer_jump"), "ret").i64, 43);
	rig_end(rig);
	(void)state;
}

static void test_an_outer_call_left_by_longjmp_hides_no_inner_ones(void **state)
{
	struct rig *rig = RIG("uprobe:exe:outer_leave(ptr) outer", OUTER_INNER);
	static jmp_buf where;

	for (volatile int i = 0; i < 3; i++) {
		if (!setjmp(where))
			outer_leave(&where);
		inner_work(i);
	}
	rig_read(rig);
	assert_int_equal(said_count(rig, WAFFLE_REC_HIT, "outer_leave"), 3);
	assert_int_equal(said_count(rig, WAFFLE_REC_HIT, "inner_work"), 3);
	assert_int_equal(said_count(rig, WAFFLE_REC_RETURN, "inner_work"), 3);
	rig_end(rig);
	(void)state;
}

static void test_a_launch_counts_once(void **state)
{
	struct rig *rig = RIG("uprobe:exe:launch(i64 number) as event outer",
			      "uprobe:exe:launch_inner(i64 number) as event inner");

	for (int i = 0; i < 10; i++) {
		launch(i);
		launch_inner(i);
	}
	rig_read(rig);
	assert_int_equal(rig->said.len, 20);
	for (size_t i = 0; i < 10; i++) {
		assert_int_equal(value_of(rig, HIT(rig, 2 * i, "launch"), "number").i64, i);
		assert_int_equal(value_of(rig, HIT(rig, 2 * i + 1, "launch_inner"), "number").i64,
				 i);
	}
	rig_end(rig);
	(void)state;
}

PROBED void launch_around(long number);

void launch_around(long number)
{
	launch_inner(number);
	sink++;
}

/* An inner launch after an outer one that failed is not nested in it, wherever it is called. */
static void test_an_inner_launch_behind_one_that_fails_counts_by_itself(void **state)
{
	struct rig *rig = RIG("uprobe:exe:launch(i64 number) as event outer",
			      "uprobe:exe:launch_inner(i64 number) as event inner");

	for (int i = 0; i < 10; i++) {
		launch(i);
		launch(-1);
		launch_inner(i);
		launch(-2);
		launch_around(i);
	}
	rig_read(rig);
	assert_int_equal(rig->said.len, 50);
	assert_int_equal(said_count(rig, WAFFLE_REC_HIT, "launch"), 30);
	assert_int_equal(said_count(rig, WAFFLE_REC_HIT, "launch_inner"), 20);
	rig_end(rig);
	(void)state;
}

/* The same frame, as large as that of a library may be, around a launch that is nested in another
 * and one that is not. With alloca() functions have a frame pointer. */
PROBED void launch_framed(long number);
PROBED void launch_alone(long number);
static volatile size_t frame_room = 200;

void launch_framed(long number)
{
	volatile char *room = alloca(frame_room);

	room[0] = (char)number;
	if (number >= 0)
		launch_inner(number);
	sink += room[0];
}

void launch_alone(long number)
{
	volatile char *room = alloca(frame_room);

	room[0] = (char)number;
	if (number >= 0)
		launch_inner(number);
	sink += room[0];
}

#define FRAMED_ROUNDS 400

static struct rig *launch_both_ways(void)
{
	struct rig *rig = RIG("uprobe:exe:launch_framed(i64 number) as event outer",
			      "uprobe:exe:launch_inner(i64 number) as event inner");

	for (int i = 0; i < FRAMED_ROUNDS; i++) {
		for (int nested = 0; nested < 4; nested++)
			launch_framed(i);
		launch_framed(-1); /* fails, and is done by itself */
		launch_alone(i);
	}
	rig_read(rig);
	assert_int_equal(said_count(rig, WAFFLE_REC_HIT, "launch_framed"), 5 * FRAMED_ROUNDS);
	return rig;
}

static void test_a_launch_by_itself_as_far_below_as_a_nested_one_counts(void **state)
{
	struct rig *rig = launch_both_ways();

	assert_int_equal(said_count(rig, WAFFLE_REC_HIT, "launch_inner"), FRAMED_ROUNDS);
	assert_int_equal(dropped(rig), 0);
	rig_end(rig);
	(void)state;
}

static void test_a_launch_that_jumps_to_an_inner_one_counts_once(void **state)
{
	struct rig *rig = RIG("uprobe:exe:launch_jump(i64 number) as event outer",
			      "uprobe:exe:launch_inner(i64 number) as event inner");

	for (int i = 0; i < 10; i++) {
		launch_jump(i);
		launch_inner(i);
	}
	rig_read(rig);
	assert_int_equal(rig->said.len, 20);
	for (size_t i = 0; i < 10; i++) {
		HIT(rig, 2 * i, "launch_jump");
		assert_int_equal(value_of(rig, HIT(rig, 2 * i + 1, "launch_inner"), "number").i64,
				 i);
	}
	rig_end(rig);
	(void)state;
}

static void test_two_descriptions_of_a_function_both_begin_and_end(void **state)
{
	struct rig *rig = RIG("uprobe:exe:factorial(i64 n) -> i64 ret as span one",
			      "uprobe:exe:factorial(i64 n) -> i64 ret as span two");

	factorial(3);
	rig_read(rig);
	assert_int_equal(dropped(rig), 0);
	assert_int_equal(said_count(rig, WAFFLE_REC_HIT, "one"), 3);
	assert_int_equal(said_count(rig, WAFFLE_REC_HIT, "two"), 3);
	assert_int_equal(said_count(rig, WAFFLE_REC_RETURN, "one"), 3);
	assert_int_equal(said_count(rig, WAFFLE_REC_RETURN, "two"), 3);
	rig_end(rig);
	(void)state;
}

/* ---- threads ---- */

#define THREADS 64
#define THREAD_CALLS 50

static void *thread_calls(void *arg)
{
	pthread_barrier_wait(arg);
	for (long i = 0; i < THREAD_CALLS; i++)
		factorial(3);
	return NULL;
}

static int id_compare(const void *a, const void *b)
{
	const struct said *x = a, *y = b;

	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return (int)x->rec.kind - (int)y->rec.kind;
}

static void test_each_call_of_each_thread_is_there_or_counted(void **state)
{
	struct rig *rig = RIG("uprobe:exe:factorial(i64 n) -> i64 ret");
	pthread_t threads[THREADS];
	pthread_barrier_t barrier;
	size_t hits, ends;

	pthread_barrier_init(&barrier, NULL, THREADS);
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, thread_calls, &barrier), 0);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	rig_read(rig);
	hits = said_count(rig, WAFFLE_REC_HIT, "factorial");
	ends = said_count(rig, WAFFLE_REC_RETURN, "factorial");
	assert_in_range(ends, 1, hits);
	assert_true(hits + dropped(rig) >= 3 * THREADS * THREAD_CALLS);
	/* A begin and its end share an id that no other record has. */
	qsort(rig->said.data, rig->said.len, sizeof(*rig->said.data), id_compare);
	for (size_t i = 0; i + 1 < rig->said.len; i++) {
		const struct said *one = &rig->said.data[i], *next = one + 1;

		if (one->id != next->id)
			continue;
		assert_int_equal(one->rec.kind, WAFFLE_REC_HIT);
		assert_int_equal(next->rec.kind, WAFFLE_REC_RETURN);
		assert_int_equal(one->rec.tid, next->rec.tid);
	}
	pthread_barrier_destroy(&barrier);
	rig_end(rig);
	(void)state;
}

static void *thread_ends(void *arg)
{
	pair_ends(*(long *)arg);
	return NULL;
}

static void test_pairs_end_on_any_thread_by_their_key(void **state)
{
	struct rig *rig = RIG("uprobe:exe:pair_begins..pair_ends key=ARG1 as span paired");
	long first = 11, second = 22;
	pthread_t thread;

	pair_begins(first);
	pair_begins(second);
	assert_int_equal(pthread_create(&thread, NULL, thread_ends, &first), 0);
	pthread_join(thread, NULL);
	pair_ends(second);
	pair_ends(33);
	rig_read(rig);
	assert_int_equal(rig->said.len, 4);
	assert_int_equal(rig->said.data[0].id, rig->said.data[2].id);
	assert_int_equal(rig->said.data[1].id, rig->said.data[3].id);
	assert_int_not_equal(rig->said.data[0].id, rig->said.data[1].id);
	assert_int_equal(rig->said.data[2].rec.kind, WAFFLE_REC_RETURN);
	assert_int_not_equal(rig->said.data[2].rec.tid, gettid());
	RETURN(rig, 3, "paired");
	rig_end(rig);
	(void)state;
}

/* ---- all ---- */

static int single_mode(void **state)
{
	(void)state;
	return setenv("WAFFLE_UPROBE_SINGLE", "1", 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arguments_come_as_the_function_was_given_them),
		cmocka_unit_test(test_numbers_without_a_name_are_numbers),
		cmocka_unit_test(
			test_addresses_that_point_nowhere_are_counted_and_the_call_is_there),
		cmocka_unit_test(test_numbers_behind_the_first_page_are_0_and_no_faults),
		cmocka_unit_test(test_elements_that_an_array_does_not_have_are_not_read),
		cmocka_unit_test(test_structs_by_value_and_behind_pointers),
		cmocka_unit_test(test_what_is_known_at_the_return_only_comes_then),
		cmocka_unit_test(test_calls_are_numbered_for_each_communicator),
		cmocka_unit_test(test_what_is_new_at_an_old_address_is_numbered_from_0),
		cmocka_unit_test(test_recursive_calls_return_in_reverse),
		cmocka_unit_test(test_calls_too_deep_are_counted_as_lost_and_the_others_return),
		cmocka_unit_test(test_calls_left_by_longjmp_end_so_and_hide_nothing),
		cmocka_unit_test(test_calls_left_in_a_loop_do_not_fill_the_thread),
		cmocka_unit_test(test_inner_calls_count_only_outside_of_outer_ones),
		cmocka_unit_test(test_an_outer_call_that_jumps_to_an_inner_one_returns),
		cmocka_unit_test(test_an_outer_call_left_by_longjmp_hides_no_inner_ones),
		cmocka_unit_test(test_a_launch_counts_once),
		cmocka_unit_test(test_an_inner_launch_behind_one_that_fails_counts_by_itself),
		cmocka_unit_test(test_a_launch_by_itself_as_far_below_as_a_nested_one_counts),
		cmocka_unit_test(test_a_launch_that_jumps_to_an_inner_one_counts_once),
		cmocka_unit_test(test_two_descriptions_of_a_function_both_begin_and_end),
		cmocka_unit_test(test_each_call_of_each_thread_is_there_or_counted),
		cmocka_unit_test(test_pairs_end_on_any_thread_by_their_key),
	};
	/* These tests depend on how probes are attached. */
	const struct CMUnitTest single[] = {
		cmocka_unit_test(test_what_is_known_at_the_return_only_comes_then),
		cmocka_unit_test(test_recursive_calls_return_in_reverse),
		cmocka_unit_test(test_an_outer_call_that_jumps_to_an_inner_one_returns),
		cmocka_unit_test(test_two_descriptions_of_a_function_both_begin_and_end),
	};
	int failed;

	if (geteuid()) {
		print_message("needs root: skipped\n");
		return 0;
	}
	failed = cmocka_run_group_tests_name("multi", tests, NULL, NULL);
	return failed + cmocka_run_group_tests_name("single", single, single_mode, NULL);
}
