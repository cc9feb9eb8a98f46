// SPDX-License-Identifier: Apache-2.0
/* Names of C++ templates become short enough, from the inside out. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "util/template_fold.h"

static void expect(const char *text, uint32_t columns, const char *expected)
{
	char *folded = template_fold(text, columns);

	assert_string_equal(folded, expected);
	free(folded);
}

static void test_folds_the_innermost_arguments_first(void **state)
{
	const char *name = "at::(anonymous namespace)::apply<at::List<float, 3>, a::Div<float> >"
			   "(at::Args<float>)";

	(void)state;
	expect(name, 100, name);
	expect(name, 60, "at::apply<List<float, 3>, Div<float> >");
	expect(name, 35, "at::apply<List<…>, Div<…> >");
	expect(name, 20, "at::apply<…>");
	expect(name, 1, "at::apply<…>");
	expect("a<b>::c<d<eeee>>", 13, "a<b>::c<d<…>>");
	expect("a<b>::c<d<eeee>>", 12, "a<…>::c<…>");
}

static void test_drops_namespaces_and_parameters(void **state)
{
	(void)state;
	expect("kernel n::f<a::b::C, ::D, e> on stream 7", 20, "kernel n::f<…> on stream 7");
	expect("kernel n::f<a::b::C, ::D, e> on stream 7", 39,
	       "kernel n::f<C, ::D, e> on stream 7");
	expect("f<a::g(b::C)>(int (*)(char), d", 20, "f<g(C)>");
	expect("f<(a::e)1, b::C<d::e>::F>", 24, "f<(e)1, C<e>::F>");
}

static void test_knows_operators(void **state)
{
	(void)state;
	expect("bool operator< <int>(int)", 20, "bool operator< <int>");
	expect("operator<=> <int, int, int>", 20, "operator<=> <…>");
	expect("f<&s::operator->, 123456>", 20, "f<…>");
}

static void test_leaves_what_it_does_not_understand(void **state)
{
	(void)state;
	expect("", 0, "");
	expect("/data/a>b<c>d", 3, "/data/a>b<c>d");
	expect("a<b<c", 1, "a<b<c");
	expect("a -> b", 1, "a -> b");
}

static void expect_function(const char *text, uint32_t columns, const char *expected)
{
	char *folded = function_fold(text, columns);

	assert_string_equal(folded, expected);
	free(folded);
}

static void test_keeps_the_own_name_of_a_function(void **state)
{
	const char *name =
		"std::_Hashtable<unsigned long, std::pair<unsigned long const, int> >::_M_find_node"
		"(unsigned long, unsigned long const&, unsigned long) const, user";

	(void)state;
	expect_function(name, 200, name);
	expect_function(
		name, 100,
		"std::_Hashtable<…>::_M_find_node(unsigned long, unsigned long const&, unsigned "
		"long) const, user");
	expect_function(name, 60, "std::_Hashtable<…>::_M_find_node(…) const, user");
	expect_function(name, 45, "…::_Hashtable<…>::_M_find_node(…) const, user");
	expect_function(name, 44, "…::_M_find_node(…) const, user");
	expect_function(name, 10, "…::_M_find_node(…) const, user");
	expect_function("shop::Cart::total(int)", 20, "shop::Cart::total(…)");
	expect_function("shop::Cart::total()", 14, "…::total()");
}

static void test_knows_what_are_no_parameters(void **state)
{
	(void)state;
	expect_function("step (a_long_name_of_a_file.py)", 20, "step (a_long_name_of_a_file.py)");
	expect_function("run_module (<frozen runpy>), user", 20,
			"run_module (<frozen runpy>), user");
	expect_function("main.(*Server).ServeAllOfThem", 20, "main.(*Server).ServeAllOfThem");
	expect_function("shop::less::operator()(int, int) const", 32,
			"shop::less::operator()(…) const");
	expect_function("serve(char const*)::{lambda(int)#1}::operator()(int) const", 30,
			"…::operator()(…) const");
	expect_function("shop::operator<(shop::Item, shop::Item)", 20, "shop::operator<(…)");
	expect_function("kernel, system_call_of_a_long_name()", 20,
			"kernel, system_call_of_a_long_name()");
}

static void test_functions_of_cpp_are_no_functions_of_python(void **state)
{
	(void)state;
	expect_function("void (anonymous namespace)::f<a::b, c::d>(int), user", 20,
			"void f<b, d>, user");
	expect_function("decltype (x+y) add<a::b, c::d>(x, y), user", 30,
			"decltype (x+y) add<b, d>, user");
	expect_function("f<decltype (x), a::b, c::d>(int)", 20, "f<…>");
	expect_function("make.<locals>.run (job.py), user", 10, "make.<locals>.run (job.py), user");
}

/* A hostile file may have such names. */
static void test_long_names_take_little_time(void **state)
{
	enum { COUNT = 400000 };
	char *name = malloc(3 * COUNT + sizeof("f(int)")), *folded;

	(void)state;
	for (size_t i = 0; i < COUNT; i++)
		memcpy(name + 3 * i, "a::", 3);
	strcpy(name + 3 * COUNT, "f(int)");
	expect_function(name, 12, "…::a::f(…)");
	memset(name, '<', 3 * COUNT);
	folded = function_fold(name, 12);
	assert_true(folded[0] == '<');
	free(folded);
	free(name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_folds_the_innermost_arguments_first),
		cmocka_unit_test(test_drops_namespaces_and_parameters),
		cmocka_unit_test(test_knows_operators),
		cmocka_unit_test(test_leaves_what_it_does_not_understand),
		cmocka_unit_test(test_keeps_the_own_name_of_a_function),
		cmocka_unit_test(test_knows_what_are_no_parameters),
		cmocka_unit_test(test_functions_of_cpp_are_no_functions_of_python),
		cmocka_unit_test(test_long_names_take_little_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
