// SPDX-License-Identifier: Apache-2.0
/* Which functions are those of a language's library, by their names alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "symbolize/stack_names.h"

static void check(bool library, const char *const *functions, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct stack_frame frame = {.function = functions[i], .module = "/srv/program"};

		if (stack_frame_is_common(&frame) != library)
			fail_msg("%s", functions[i]);
	}
}

static void test_the_library_of_cpp_is_known_behind_the_type_that_a_function_returns(void **state)
{
	static const char *const library[] = {
		"void std::this_thread::sleep_for<long, std::ratio<1l, 1000l> >"
		"(std::chrono::duration<long, std::ratio<1l, 1000l> > const&)",
		"void std::__sort<__gnu_cxx::__normal_iterator<Quote*, std::vector<Quote> >, "
		"__gnu_cxx::__ops::_Iter_less_iter>(__gnu_cxx::__normal_iterator<Quote*>)",
		"void std::call_once<void (std::thread::*)(), std::thread*>(std::once_flag&, "
		"void (std::thread::*&&)(), std::thread*&&)",
		"decltype ((__char_traits_cmp_cat<std::char_traits<char> >)(0)) "
		"std::operator<=><char, std::char_traits<char> >(std::string const&)",
		"bool std::operator< <char>(std::string const&, std::string const&) [clone "
		".isra.0]",
		"std::vector<int>::operator[](unsigned long) const",
		"std::unique_lock<std::mutex>::operator bool() const",
		"auto std::__detail::_Synth3way::operator()<std::string, std::string>"
		"(std::string const&, std::string const&) const",
		"bool __gnu_cxx::operator!=<int*>(int* const&)",
		"std::thread::_State_impl<std::thread::_Invoker<std::tuple<main::{lambda()#1}> > "
		">::_M_run()",
		"std::thread::join()",
	};
	static const char *const own[] = {
		"std::vector<int> shop::make<int>(int)",
		"void shop::each<std::vector<int> >(std::vector<int>&)",
		"std::string* (anonymous namespace)::find<int>(std::string const&)",
		"bool shop::operator< <std::string>(std::string const&)",
		"main::{lambda(std::string)#1}::operator()(std::string) const",
		"Bucket::take()",
		"shop::Price::operator std::string() const",
		"void shop::std::sort<int>(int)",
		"f(a->std::b)",
		"operator",
		"",
		"(",
		" (",
		">>>)(",
	};

	(void)state;
	check(true, library, sizeof(library) / sizeof(library[0]));
	check(false, own, sizeof(own) / sizeof(own[0]));
}

static void test_the_traits_of_rusts_library_for_its_own_types_are_of_the_library(void **state)
{
	static const char *const library[] = {
		"core::fmt::write",
		"std::thread::sleep",
		"<std::net::TcpStream as std::io::Read>::read",
		"<&std::fs::File as std::io::Write>::write",
		"<i32 as core::cmp::PartialOrd>::lt",
		"<&mut [u8] as std::io::Write>::write",
		"<dyn core::any::Any>::is",
	};
	static const char *const own[] = {
		"<alloc::vec::Vec<T> as shop::Total>::total",
		"<i32 as shop::Total>::total",
		"<&shop::Item as core::fmt::Debug>::fmt",
		"<u8x::Item as core::fmt::Debug>::fmt",
		"<str::Item as core::fmt::Debug>::fmt",
		"shop::main",
		"<",
		"<&",
	};

	(void)state;
	check(true, library, sizeof(library) / sizeof(library[0]));
	check(false, own, sizeof(own) / sizeof(own[0]));
}

static void test_what_makes_system_calls_for_go_is_of_its_library(void **state)
{
	static const char *const library[] = {
		"runtime.futex",
		"internal/runtime/syscall/linux.Syscall6",
		"internal/poll.(*FD).Write",
		"syscall.write",
	};
	static const char *const own[] = {
		"main.reserve",
		"example.org/shop/internal/poll.Run",
		"internal/pollution.Run",
		"net.(*conn).Write",
	};

	(void)state;
	check(true, library, sizeof(library) / sizeof(library[0]));
	check(false, own, sizeof(own) / sizeof(own[0]));
}

static void test_a_function_inlined_from_a_header_of_cpps_library_is_of_the_library(void **state)
{
	struct stack_frame frame = {.function = "sort<int*>",
				    .module = "/srv/program",
				    .file = "/usr/include/c++/14/bits/stl_algo.h",
				    .inlined = true};

	(void)state;
	assert_true(stack_frame_is_common(&frame));
	frame.inlined = false;
	assert_false(stack_frame_is_common(&frame));
	frame.inlined = true;
	frame.file = "/srv/include/sort.h";
	assert_false(stack_frame_is_common(&frame));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_the_library_of_cpp_is_known_behind_the_type_that_a_function_returns),
		cmocka_unit_test(
			test_the_traits_of_rusts_library_for_its_own_types_are_of_the_library),
		cmocka_unit_test(test_what_makes_system_calls_for_go_is_of_its_library),
		cmocka_unit_test(
			test_a_function_inlined_from_a_header_of_cpps_library_is_of_the_library),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
