// SPDX-License-Identifier: Apache-2.0
/* Names of functions as compilers make them and as people write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "probe/spec/func_name.h"

static const struct {
	const char *symbol, *name, *args;
} written[] = {
	{"_ZN2ns5twiceIiEET_S1_", "ns::twice<int>", "(int)"},
	{"_ZN2ns6Server6handleEi", "ns::Server::handle", "(int)"},
	{"_ZNK2ns6Server4sizeEv", "ns::Server::size", "()"},
	{"_ZN2ns6ServerD1Ev", "ns::Server::~Server", "()"},
	{"_ZN12_GLOBAL__N_13runEi", "(anonymous namespace)::run", "(int)"},
	{"_ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_PKc",
	 "std::operator<< <std::char_traits<char> >",
	 "(std::basic_ostream<char, std::char_traits<char> >&, char const*)"},
	{"_ZN1AcvbEv", "A::operator bool", "()"},
	{"_ZN1AclEi", "A::operator()", "(int)"},
	{"_ZltRK1AS1_", "operator<", "(A const&, A const&)"},
	{"_ZZ3fooiENKUliE_clEi", "foo(int)::{lambda(int)#1}::operator()", "(int)"},
	{"_Z3getIiEPFvcEi", "get<int>", "(int)"},
	{"_Z4workl.lto_priv.0", "work", "(long)"},
	{"_ZN4boolIXgtLi3ELi2EEE3runEv", "bool<((3)>(2))>::run", "()"},
};

static void test_name_and_parameters_of_a_function_without_what_it_returns(void **state)
{
	for (unsigned i = 0; i < sizeof(written) / sizeof(written[0]); i++) {
		char text[DEMANGLE_MAX], whole[DEMANGLE_MAX];
		struct func_name name;

		assert_true(func_name_read(&name, written[i].symbol));
		func_name_put(&name, false, text);
		assert_string_equal(text, written[i].name);
		snprintf(whole, sizeof(whole), "%s%s", written[i].name, written[i].args);
		func_name_put(&name, true, text);
		assert_string_equal(text, whole);
		assert_true(func_name_is(&name, written[i].name));
		assert_true(func_name_is(&name, whole));
		assert_true(func_name_is(&name, name.whole));
		assert_true(func_name_has_args(whole));
		assert_false(func_name_has_args(written[i].name));
	}
	(void)state;
}

static bool is(const char *symbol, const char *pattern)
{
	struct func_name name;

	return func_name_read(&name, symbol) && func_name_is(&name, pattern);
}

static void test_name_means_all_overloads_and_all_of_a_template(void **state)
{
	assert_true(is("_ZN2ns5twiceIiEET_S1_", "ns::twice"));
	assert_true(is("_ZN2ns5twiceIdEET_S1_", "ns::twice"));
	assert_false(is("_ZN2ns5twiceIdEET_S1_", "ns::twice<int>"));
	assert_false(is("_ZN2ns5twiceIdEET_S1_", "twice"));
	assert_true(is("_ZN2ns6Server6handleEi", "ns::Server::handle( int )"));
	assert_false(is("_ZN2ns6Server6handleEi", "ns::Server::handle(long)"));
	assert_true(is("_ZNK2ns6Server4sizeEv", "ns::Server::size() const"));
	/* No part of the function around it. */
	assert_false(is("_ZZ3fooiENKUliE_clEi", "foo"));
	assert_false(is("_ZThn16_N2ns6Server6handleEi", "ns::Server::handle"));
	(void)state;
}

static void test_functions_of_rust_need_no_hash(void **state)
{
	static const char risky[] = "_ZN3rsp5risky17he56d0f4e9ec12001E";
	static const char method[] =
		"_ZN45_$LT$rsp..Job$u20$as$u20$core..fmt..Debug$GT$3fmt17h0123456789abcdefE";
	struct func_name name;
	char text[DEMANGLE_MAX];

	assert_true(is(risky, "rsp::risky"));
	assert_true(is(risky, "rsp::risky::he56d0f4e9ec12001"));
	assert_true(is("_ZN3rsp5risky17he56d0f4e9ec12001E.llvm.123456", "rsp::risky"));
	assert_false(is(risky, "rsp::risky::he56d0f4e9ec12002"));
	assert_false(is(risky, "risky"));
	assert_false(is(risky, "rsp"));
	assert_true(func_name_read(&name, risky));
	func_name_put(&name, false, text);
	assert_string_equal(text, "rsp::risky");
	func_name_put(&name, true, text);
	assert_string_equal(text, "rsp::risky");
	assert_true(func_name_is_similar(&name, "rsp::riksy"));
	/* The dots are a part of the name. */
	assert_true(func_name_read(&name, method));
	assert_false(name.clone);
	func_name_put(&name, false, text);
	assert_string_equal(text, "_$LT$rsp..Job$u20$as$u20$core..fmt..Debug$GT$::fmt");
	assert_true(func_name_is(&name, text));
	/* A name of C++ that looks like it has parameters. */
	assert_true(func_name_read(&name, "_ZN3rsp17he56d0f4e9ec12001Ev"));
	func_name_put(&name, false, text);
	assert_string_equal(text, "rsp::he56d0f4e9ec12001");
	assert_false(is("_ZN3rsp17he56d0f4e9ec12001Ev", "rsp"));
	/* Version 0. */
	assert_true(is("_RNvCs1234_3rsp5risky", "rsp::risky"));
	assert_false(is("_RNvCs1234_3rsp5risky", "rsp::riskier"));
	(void)state;
}

static void test_clone_is_not_taken_for_its_function(void **state)
{
	assert_int_equal(func_part("work"), FUNC_WHOLE);
	assert_int_equal(func_part("work.lto_priv.0"), FUNC_WHOLE);
	assert_int_equal(func_part("main.partial"), FUNC_WHOLE);
	assert_int_equal(func_part("work.isra.0"), FUNC_CLONE);
	assert_int_equal(func_part("work.part.12.lto_priv.0"), FUNC_CLONE);
	assert_int_equal(func_part("work.constprop.3"), FUNC_CLONE);
	assert_int_equal(func_part("work.cold"), FUNC_FRAGMENT);
	assert_int_equal(func_part("work.cold.17"), FUNC_FRAGMENT);
	assert_int_equal(func_part("work.isra.0.cold"), FUNC_FRAGMENT);
	assert_int_equal(func_part("work.cold.0/1"), FUNC_FRAGMENT);
	assert_false(is("_Z4workl.isra.0", "work"));
	assert_false(is("_Z4workl.isra.0", "work(long)"));
	assert_true(is("_Z4workl.isra.0", "work(long) [clone .isra.0]"));
	(void)state;
}

static bool is_near(const char *symbol, const char *pattern)
{
	struct func_name name;

	return func_name_read(&name, symbol) && func_name_is_similar(&name, pattern);
}

static void test_near_names_differ_in_their_last_part(void **state)
{
	assert_true(is_near("_ZN2ns6Server6handleEi", "ns::Server::handel"));
	assert_true(is_near("_ZN2ns6Server6handleEi", "ns::Server::handle(long)"));
	assert_true(is_near("_ZN2ns6Server6handleEi", "handle"));
	assert_true(is_near("_ZN2ns5twiceIiEET_S1_", "ns::twice<float>"));
	assert_false(is_near("_ZN2ns6Server6handleEi", "ns::Server::close"));
	(void)state;
}

static void test_any_brackets_are_a_pattern_that_means_nothing(void **state)
{
	static const char *const patterns[] = {"",         "(",           "(a)(b)",      "a(((",
					       "a>>",      "<",           "a()()",       "(*)(*)",
					       "operator", "operator<<<", "x(operator)", "]])>::<",
					       "a(b)::",   "::",          " (b c)(",     "~"};
	struct func_name name;

	assert_true(func_name_read(&name, "_Z3getIiEPFvcEi"));
	for (unsigned i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		assert_false(func_name_is(&name, patterns[i]));
		func_name_is_similar(&name, patterns[i]);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_name_and_parameters_of_a_function_without_what_it_returns),
		cmocka_unit_test(test_name_means_all_overloads_and_all_of_a_template),
		cmocka_unit_test(test_functions_of_rust_need_no_hash),
		cmocka_unit_test(test_clone_is_not_taken_for_its_function),
		cmocka_unit_test(test_near_names_differ_in_their_last_part),
		cmocka_unit_test(test_any_brackets_are_a_pattern_that_means_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
