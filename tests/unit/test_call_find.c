// SPDX-License-Identifier: Apache-2.0
/* Functions found by their symbols: in this program, and in the C library. */

#include "call_found.h"

/* The functions to find. */
__attribute__((noinline)) int fruit_one(int a, const char *b);
__attribute__((noinline)) int fruit_two(int a);
int fruit_alias(int a) __attribute__((alias("fruit_two")));

int fruit_one(int a, const char *b)
{
	__asm__ volatile("" ::"r"(b));
	return a + 1;
}

int fruit_two(int a)
{
	__asm__ volatile("");
	return a + 2;
}

static int berry_pick_big(void)
{
	return 1;
}

/* It runs before anything else does, sanitizers too. */
__attribute__((used, no_sanitize("address", "undefined"))) static int (*choose_berry(void))(void)
{
	return berry_pick_big;
}

int berry_pick(void) __attribute__((ifunc("choose_berry")));

/* Other functions as compilers name and split them. */
#define FUNCTION(symbol)                                                                           \
	__asm__(".text\n.type \"" symbol "\",@function\n\"" symbol                                 \
		"\":\n\tnop\n\tret\n.size \"" symbol "\",2\n")
FUNCTION("fruit_two.cold");
FUNCTION("fruit_one.part.0");
FUNCTION("_ZN5fruit4peelEl");
FUNCTION("_ZN5fruit4peelEl.cold");
FUNCTION("_ZN5fruit4peelEl.isra.0");
FUNCTION("_ZN5fruit4peelEi");
FUNCTION("_ZN5fruit4sortIiEET_S1_");

/* A function that is jumped to while the stack is in use, and one that a thread begins with. */
#if defined(__x86_64__)
#define RETURN_ADDRESS "rip"
#else
#define RETURN_ADDRESS "x30"
#endif
#define FRAMED(symbol, frame)                                                                      \
	__asm__(".text\n.type " symbol ",@function\n" symbol ":\n.cfi_startproc\n" frame           \
		"\n\tnop\n\tret\n.cfi_endproc\n.size " symbol ",.-" symbol "\n")
FRAMED("plum_rest", ".cfi_def_cfa_offset 48");
FRAMED("plum_start", ".cfi_undefined " RETURN_ADDRESS);
FRAMED("plum_whole", "");

/* It may end anywhere. */
#if defined(__x86_64__)
#define JUMP "jmp *%rax"
#else
#define JUMP "br x0"
#endif
__asm__(".text\n.type grape_jump,@function\ngrape_jump:\n\t" JUMP
	"\n.size grape_jump,.-grape_jump\n");

static uint64_t self_offset(void *function)
{
	extern char __ehdr_start[];

	return (uint64_t)((char *)function - __ehdr_start);
}

#define FIND(path, ...) FIND_IN(path, path, __VA_ARGS__)

static void test_function_is_a_span_with_its_arguments_and_return(void **state)
{
	struct found found = FIND(SELF, "uprobe:exe:fruit_one(int a, char *b) -> int ret");
	const struct site_info *site = &found.object->sites.data[0];
	const struct waffle_fetch_program *fetch_program =
		&found.object->calls.data[0].fetch_program;

	assert_int_equal(found.object->sites.len, 1);
	assert_string_equal(site->name, "fruit_one");
	assert_string_equal(site->func, "fruit_one");
	assert_int_equal(site->kind, WAFFLE_SITE_SPAN);
	assert_true(site->call);
	assert_int_equal(site->key_count, 3);
	assert_string_equal(site->keys[0].name, "a");
	assert_int_equal(site->keys[0].type, WAFFLE_KEY_I64);
	assert_string_equal(site->keys[1].name, "b");
	assert_int_equal(site->keys[1].type, WAFFLE_KEY_STR);
	assert_string_equal(site->keys[2].name, "ret");
	assert_int_equal(fetch_program->begins, 2);
	assert_int_equal(fetch_program->saves, 0);
	assert_int_equal(fetch_program->returns, 1);
	assert_int_equal(found.object->probes.len, 2);
	assert_int_equal(found.object->probes.data[0].type, OBJECT_PROBE_ENTER);
	assert_int_equal(found.object->probes.data[1].type, OBJECT_PROBE_RETURN);
	assert_string_equal(found.said, "");
	done(&found);
	(void)state;
}

static void test_aliases_of_one_address_are_probed_once_by_the_best_name(void **state)
{
	struct found found = FIND(SELF, "uprobe:exe:fruit_*(int a) as event category mine");

	assert_int_equal(found.object->sites.len, 2);
	assert_string_equal(found.object->sites.data[0].category, "mine");
	assert_int_equal(found.object->probes.len, 2);
	assert_int_equal(found.object->probes.data[0].type, OBJECT_PROBE_INSTANT);
	done(&found);
	(void)state;
}

static void test_missing_function_is_said_with_near_names(void **state)
{
	struct found found = FIND(SELF, "uprobe:exe:fruit_won(int a)");

	assert_int_equal(found.object->sites.len, 0);
	assert_string_equal(
		found.said,
		"--probe: no function 'fruit_won' in /proc/self/exe; did you mean fruit_one, "
		"fruit_two\n");
	done(&found);
	found = FIND(SELF, "uprobe:libnothing:f");
	assert_string_equal(found.said,
			    "--probe: no file 'libnothing' in a traced process; 'exe' is the "
			    "program's own\n");
	assert_false(found.missing);
	found.said[0] = '\0';
	call_set_unfound(found.set, CALL_SCOPE_FILES, found_say, &found);
	assert_string_equal(found.said, "--probe: no file 'libnothing' among those given\n");
	assert_true(found.missing);
	done(&found);
	(void)state;
}

static void test_function_name_in_the_name_of_a_span(void **state)
{
	struct found found = FIND(SELF, "uprobe:exe:fruit_one as span \"{func} of {func}()\"");

	assert_string_equal(found.object->sites.data[0].name, "fruit_one of fruit_one()");
	done(&found);
	(void)state;
}

static void test_function_that_is_chosen_at_load_time_is_said_with_its_choices(void **state)
{
	struct found found = FIND(SELF, "uprobe:exe:berry_pick");

	assert_int_equal(berry_pick(), 1);
	assert_int_equal(found.object->sites.len, 0);
	assert_string_equal(
		found.said,
		"--probe: 'berry_pick' of /proc/self/exe is chosen from several functions "
		"when it is loaded, by what the CPU can do: describe one of those, such as "
		"berry_pick_big\n");
	assert_true(found.missing);
	done(&found);
	/* A pattern does not match the ifunc, but the function that the loader chooses. */
	found = FIND(SELF, "uprobe:exe:berry_p* as event");
	assert_int_equal(found.object->sites.len, 1);
	assert_string_equal(found.object->sites.data[0].name, "berry_pick_big");
	done(&found);
	(void)state;
}

static void test_choice_at_load_time_is_said_though_another_function_has_no_end(void **state)
{
	struct found found = FIND(SELF, "uprobe:exe:berry_pick|grape_jump");

	assert_int_equal(found.object->sites.len, 1);
	assert_non_null(strstr(found.said, "grape_jump of /proc/self/exe is recorded when it "
					   "begins only"));
	assert_non_null(strstr(found.said, "is chosen from several functions when it is loaded"));
	assert_true(found.missing);
	done(&found);
	(void)state;
}

static void test_probes_are_at_the_functions_entries(void **state)
{
	struct found found = FIND(SELF, "uprobe:exe:fruit_one as event");

	assert_int_equal(found.object->probes.len, 1);
	assert_int_equal(found.object->probes.data[0].offset - found.object->probes.data[0].shift,
			 self_offset((void *)fruit_one));
	done(&found);
	(void)state;
}

static void test_fragment_of_a_function_is_never_probed(void **state)
{
	struct found found = FIND(SELF, "uprobe:exe:fruit_t* as event", "uprobe:exe:fruit_two.cold",
				  "uprobe:exe:fruit::peel(long) as event");

	/* fruit_two, and fruit::peel of two overloads */
	assert_int_equal(found.object->probes.len, 3);
	assert_int_equal(found.object->sites.len, 2);
	assert_string_equal(found.object->sites.data[0].name, "fruit_two");
	assert_string_equal(found.object->sites.data[1].name, "fruit::peel");
	assert_string_equal(found.said,
			    "--probe: 'fruit_two.cold' of /proc/self/exe is no function but a part "
			    "of one that it jumps to: describe the function\n");
	assert_true(found.missing);
	done(&found);
	(void)state;
}

static void test_what_is_jumped_to_is_no_function(void **state)
{
	struct found found = FIND(SELF, "uprobe:exe:plum_* as event");

	assert_int_equal(found.object->probes.len, 2); /* start, whole */
	assert_string_equal(found.said, "");
	done(&found);
	found = FIND(SELF, "uprobe:exe:plum_rest nounwind");
	assert_int_equal(found.object->probes.len, 0);
	assert_string_equal(found.said,
			    "--probe: 'plum_rest' of /proc/self/exe is no function but a part "
			    "of one that it jumps to: describe the function\n");
	assert_true(found.missing);
	done(&found);
	(void)state;
}

static void test_where_a_thread_begins_is_never_returned_from(void **state)
{
	struct found found = FIND(SELF, "uprobe:exe:plum_start nounwind");

	assert_int_equal(found.object->probes.len, 1);
	assert_int_equal(found.object->probes.data[0].type, OBJECT_PROBE_INSTANT);
	assert_string_equal(found.said,
			    "--probe: plum_start of /proc/self/exe is recorded when it begins "
			    "only: where it ends is not known for certain\n");
	done(&found);
	found = FIND(SELF, "uprobe:exe:plum_whole nounwind");
	assert_int_equal(found.object->probes.len, 2);
	assert_int_equal(found.object->probes.data[1].type, OBJECT_PROBE_LEAVE);
	done(&found);
	(void)state;
}

static void test_clone_is_probed_only_by_its_own_name(void **state)
{
	struct found found = FIND(SELF, "uprobe:exe:fruit_one* as event");

	assert_int_equal(found.object->sites.len, 1);
	assert_string_equal(found.object->sites.data[0].name, "fruit_one");
	done(&found);
	found = FIND(SELF, "uprobe:exe:fruit_one.part.0 as event",
		     "uprobe:exe:_ZN5fruit4peelEl.isra.0 as event",
		     "uprobe:exe:fruit_*.part.* as event");
	assert_int_equal(found.object->sites.len, 2);
	assert_int_equal(found.object->probes.len, 3);
	assert_string_equal(found.said, "");
	done(&found);
	(void)state;
}

static void test_overload_and_template_are_named_as_people_write_them(void **state)
{
	struct found found = FIND(SELF, "uprobe:exe:\"fruit::peel(int)\"(int depth) as event",
				  "uprobe:exe:fruit::sort<int>(int) as event sorted");

	assert_int_equal(found.object->sites.len, 2);
	assert_int_equal(found.object->probes.len, 2);
	assert_string_equal(found.object->sites.data[0].name, "fruit::peel(int)");
	assert_string_equal(found.object->sites.data[1].func, "fruit::sort<int>");
	assert_string_equal(found.said, "");
	done(&found);
	found = FIND(SELF, "uprobe:exe:fruit::sort<long>", "uprobe:exe:\"fruit::peel(char)\"");
	assert_string_equal(
		found.said,
		"--probe: no function 'fruit::sort<long>' in /proc/self/exe; did you mean "
		"fruit::sort<int>\n"
		"--probe: no function 'fruit::peel(char)' in /proc/self/exe; did you mean "
		"fruit::peel(int), fruit::peel(long), _ZN5fruit4peelEl.isra.0\n");
	done(&found);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_function_is_a_span_with_its_arguments_and_return),
		cmocka_unit_test(test_aliases_of_one_address_are_probed_once_by_the_best_name),
		cmocka_unit_test(test_missing_function_is_said_with_near_names),
		cmocka_unit_test(test_function_name_in_the_name_of_a_span),
		cmocka_unit_test(
			test_function_that_is_chosen_at_load_time_is_said_with_its_choices),
		cmocka_unit_test(
			test_choice_at_load_time_is_said_though_another_function_has_no_end),
		cmocka_unit_test(test_probes_are_at_the_functions_entries),
		cmocka_unit_test(test_fragment_of_a_function_is_never_probed),
		cmocka_unit_test(test_what_is_jumped_to_is_no_function),
		cmocka_unit_test(test_where_a_thread_begins_is_never_returned_from),
		cmocka_unit_test(test_clone_is_probed_only_by_its_own_name),
		cmocka_unit_test(test_overload_and_template_are_named_as_people_write_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
