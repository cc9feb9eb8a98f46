// SPDX-License-Identifier: Apache-2.0
/* Every message for a wrong description, and the columns that it points at. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "probe/spec/call.h"
#include "probe/spec/spec.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static const struct sample {
	const char *text, *message, *caret;
} samples[] = {
	{"uprob:libc:malloc",
	 "expected uprobe:LIB:FUNC, usdt:LIB:PROVIDER:PROBE or tracepoint:CATEGORY:NAME, found "
	 "'uprob'; did you mean uprobe",
	 "^~~~~"},
	{"malloc",
	 "expected uprobe:LIB:FUNC, usdt:LIB:PROVIDER:PROBE or tracepoint:CATEGORY:NAME, found "
	 "'malloc'",
	 "^~~~~~"},
	{"",
	 "expected uprobe:LIB:FUNC, usdt:LIB:PROVIDER:PROBE or tracepoint:CATEGORY:NAME, found the "
	 "end",
	 "^"},
	{"uprobe", "expected ':' behind the kind, found the end", "      ^"},
	{"uprobe:libc:f(int code) as span {cod}", "no value 'cod' of this call; did you mean code",
	 "                                 ^~~"},
	{"uprobe:libc:f(int a) -> int as span \"f {a} {ret}\"", "no value 'ret' of this call",
	 "                                            ^~~"},
	{"uprobe:libc:f(int code) as span \"f {code\" outer",
	 "a '{' without its '}': {key} in a name becomes the value of that key",
	 "                                   ^"},
	{"uprobe:libc:f(int code) as span f{}", "no value '' of this call",
	 "                                  ^"},
	{"uprobe:libc:f(int a, long b) {a as c} as span {a}{b}", "no value 'a' of this call",
	 "                                               ^"},
	{"usdt:libc:libc:p as event {arg}", "no value 'arg' of this call",
	 "                           ^~~"},
	{"uprobe libc", "expected ':' behind the kind, found 'libc'", "       ^~~~"},
	{"uprobe:libc", "expected ':' behind the library", "           ^"},
	{"uprobe::f", "expected a name here", "       ^"},
	{"uprobe:libc:", "expected a name here", "            ^"},
	{"uprobe:libc: ", "expected a name here", "             ^"},
	{"uprobe:libc:f(", "expected a type, found the end", "              ^"},
	{"uprobe:libc:f(int", "expected ',' or ')' behind a parameter, found the end",
	 "                 ^"},
	{"uprobe:libc:f(int x", "expected ',' or ')' behind a parameter, found the end",
	 "                   ^"},
	{"uprobe:libc:f(int x y)", "expected ',' or ')' behind a parameter, found 'y'",
	 "                    ^"},
	{"uprobe:libc:f(float x)",
	 "a floating-point value is in a vector register, which the kernel can't read; leave out "
	 "its name",
	 "              ^~~~~~~"},
	{"uprobe:libc:f(out float x)",
	 "a float can't be widened by the kernel; only double can be read",
	 "              ^~~~~~~~~~~"},
	{"uprobe:libc:f(long double x)",
	 "a long double can't be read by the kernel; leave out its name",
	 "              ^~~~~~~~~~~~~"},
	{"uprobe:libc:f(out long double x)",
	 "a long double can't be read by the kernel; leave out its name",
	 "              ^~~~~~~~~~~~~~~~~"},
	{"uprobe:libc:f(int a, unsigned float)", "these words make no type of C",
	 "                     ^~~~~~~~~~~~~~"},
	{"uprobe:libc:f(short double)", "these words make no type of C",
	 "              ^~~~~~~~~~~~"},
	{"uprobe:libc:f(long long double, int q)", "these words make no type of C",
	 "              ^~~~~~~~~~~~~~~~"},
	{"uprobe:libc:f(long long long)", "these words make no type of C",
	 "              ^~~~~~~~~~~~~~"},
	{"uprobe:libc:f(signed unsigned)", "these words make no type of C",
	 "              ^~~~~~~~~~~~~~~"},
	{"uprobe:libc:f(long struct)",
	 "'struct' is no name, and no type with what stands before it",
	 "                   ^~~~~~"},
	{"uprobe:libc:f(unsigned __int128, int q)",
	 "'__int128' is no name, and no type with what stands before it",
	 "                       ^~~~~~~~"},
	{"uprobe:libc:f(size_t int)", "'int' is no name, and no type with what stands before it",
	 "                     ^~~"},
	{"uprobe:libc:f -> long struct",
	 "'struct' is no name, and no type with what stands before it",
	 "                      ^~~~~~"},
	{"uprobe:libc:f(struct req r)", "a struct by value is written with its size: blob:16",
	 "                     ^~~"},
	{"uprobe:libc:f(req r)",
	 "unknown type; a pointer to anything is 'ptr', a struct by value 'blob:SIZE'",
	 "              ^~~"},
	{"uprobe:libc:f(blob:16 r)", "a struct has no value of its own; leave out its name",
	 "              ^~~~~~~~~"},
	{"uprobe:libc:f(struct_return r)", "a struct has no value of its own; leave out its name",
	 "              ^~~~~~~~~~~~~~~"},
	{"uprobe:libc:f(struct_return) {arg1}",
	 "the place of the returned struct is not an argument",
	 "                              ^~~~"},
	{"uprobe:libc:f(blob:32 r) {r}", "a struct has no value of its own",
	 "                          ^"},
	{"usdt:libc:p:f(blob:32 r)", "a struct has no value of its own; leave out its name",
	 "              ^~~~~~~~~"},
	{"uprobe:libc:f(ptr a) {a unless rank}", "expected an offset such as $rank behind 'unless'",
	 "                               ^~~~"},
	{"uprobe:libc:f(ptr a) {a unless $}", "expected a name behind '$'",
	 "                                ^"},
	{"uprobe:libc:f(ptr a, int n) {*(int)(a) as x if m > 1}",
	 "expected a parameter that is a number behind 'if', found 'm'",
	 "                                               ^"},
	{"uprobe:libc:f(ptr a, int n) {*(int)(a) as x if n < 1}",
	 "expected '>' behind the parameter, found '<'",
	 "                                                 ^"},
	{"uprobe:libc:f(blob x)", "expected ':' and a size behind 'blob', found 'x'",
	 "                   ^"},
	{"uprobe:libc:f(blob:0)", "expected a number from 1 to 4096", "                   ^"},
	{"uprobe:libc:f(enum:kidn x)", "unknown table of names 'kidn'", "                   ^~~~"},
	{"uprobe:libc:f(int x[4])", "only of char there are arrays: char[16]",
	 "                    ^"},
	{"uprobe:libc:f(char[300] x)", "expected a number from 1 to 255", "                   ^~~"},
	{"uprobe:libc:f(int 3x)", "a name begins with a letter", "                  ^~"},
	{"uprobe:libc:f(int x, long x)", "two values are named 'x'", "                     ^~~~~~"},
	{"uprobe:libc:f(int x) as sapn", "expected 'span' or 'event' behind 'as', found 'sapn'",
	 "                        ^~~~"},
	{"uprobe:libc:f as", "expected 'span' or 'event' behind 'as', found the end",
	 "                ^"},
	{"uprobe:libc:f as span \"x", "a '\"' without its second one", "                      ^"},
	{"uprobe:libc:f as event \"\"", "the name behind 'as' is empty",
	 "                       ^~"},
	{"uprobe:libc:f role lunch", "unknown role 'lunch'; did you mean launch",
	 "                   ^~~~~"},
	{"uprobe:libc:f key=arg1", "a key joins the two ends of a pair A..B; this is none",
	 "              ^~~"},
	{"uprobe:libc:a..b key=tid frame",
	 "'frame' is for pairs of USDT probes that are in one function: usdt:LIB:PROVIDER:A..B "
	 "key=tid frame",
	 "^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~"},
	{"usdt:libc:app:a(int x)..b(int x) key=x frame",
	 "'frame' is for pairs of USDT probes that are in one function: usdt:LIB:PROVIDER:A..B "
	 "key=tid frame",
	 "^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~"},
	{"uprobe:libc:f colour red",
	 "unknown option 'colour': expected as category role key outer inner stack nounwind frame",
	 "              ^~~~~~"},
	{"uprobe:libc:a..b",
	 "a pair needs a key that both ends know: key=arg1, or key=tid if they are of one thread",
	 "            ^~~~"},
	{"uprobe:libc:a..b key=x",
	 "expected a parameter's name, arg1, ret, duration or tid, found 'x'",
	 "                     ^"},
	{"uprobe:libc:a..b key=ret", "the key must be known when the function is entered",
	 "                     ^~~"},
	{"uprobe:libc:a..b key=arg1 as event x", "a pair A..B is a span",
	 "                             ^~~~~"},
	{"uprobe:libc:f outer inner", "a call is 'outer' or 'inner', not both",
	 "^~~~~~~~~~~~~~~~~~~~~~~~~"},
	{"uprobe:libc:f(out int x) as event e",
	 "known at the return only, and an event is over at the entry; write 'as span'",
	 "              ^~~~~~~~~"},
	{"uprobe:libc:f -> int r as event e",
	 "an event is over at the entry: leave out '-> …', or write 'as span'",
	 "                          ^~~~~"},
	{"uprobe:libc:f -> double r",
	 "a floating-point value is in a vector register, which the kernel can't read; leave out "
	 "its name",
	 "                 ^~~~~~~~"},
	{"uprobe:libc:f -> void r", "void has no value", "                 ^~~~~~"},
	{"uprobe:libc:f(ptr r) {r->x}",
	 "its fields are not known: declare it as a pointer to its struct, such as struct request "
	 "*r",
	 "                      ^"},
	{"uprobe:libc:f(struct s *r) {r.x}", "a pointer's fields are behind '->'",
	 "                             ^"},
	{"uprobe:libc:f(ptr r) {r+8}", "a name is needed: … as NAME", "                      ^~~"},
	{"uprobe:libc:f(ptr r) {*(int)(r+8)}", "a name is needed: … as NAME",
	 "                      ^~~~~~~~~~~"},
	{"uprobe:libc:f(ptr r) {*(int)(q+8) as x}",
	 "expected a parameter's name, arg1, ret, duration or tid, found 'q'",
	 "                             ^"},
	{"uprobe:libc:f(ptr r) {*int(r) as x}",
	 "expected '(' and a type behind '*', as in *(int)(p+8), found 'int'",
	 "                       ^~~"},
	{"uprobe:libc:f(ptr r) {*(struct s)(r) as x}",
	 "a struct by value is written with its size: blob:16", "                               ^"},
	{"uprobe:libc:f(ptr r) {tid}",
	 "the thread is known of every span; 'tid' is for the key of a pair",
	 "                      ^~~"},
	{"uprobe:libc:f(ptr r) {*(int)(r+99999999999) as x}",
	 "expected a number from 0 to 2147483647", "                               ^~~~~~~~~~~"},
	{"uprobe:libc:f(ptr r) {out seq(r)}", "calls are numbered at their entry",
	 "                          ^~~~~~"},
	{"uprobe:libc:f(ptr r) {seq(r, x)}", "expected a number, found 'x'",
	 "                             ^"},
	{"uprobe:libc:f(ptr r) {r as}", "expected a name behind 'as'",
	 "                          ^"},
	{"uprobe:libc:f{arg1 as x", "expected '}' behind the values, found the end",
	 "                       ^"},
	{"uprobe:libc:[a", "'[' is wrong here in a pattern", "            ^~"},
	{"uprobe:libc:a||b", "expected a name here", "              ^"},
	{"uprobe:libc:a|b|c|d|e|f|g|h|i", "more than 8 alternatives; give them a description each",
	 "                            ^"},
	{"usdt:libc:x", "expected ':' behind the provider", "           ^"},
	{"usdt:libc:p:n as span", "a USDT probe has no end: write 'as event', or two of them: A..B",
	 "                 ^~~~"},
	{"usdt:libc:p:n -> int x", "only a function returns a value", "              ^"},
	{"tracepoint:sched", "expected ':' behind the category of a tracepoint",
	 "                ^"},
	{"tracepoint:sched:a..b", "pairs of tracepoints are not supported",
	 "                    ^"},
	{"tracepoint:sched:sched_switch(int x)",
	 "fields of a tracepoint have no types: only their names are listed",
	 "                              ^~~"},
	{"tracepoint:sched:sched_switch {x}", "the fields of a tracepoint are listed in (…)",
	 "                               ^"},
	{"tracepoint:sched:sched_switch as span", "a tracepoint has no end: write 'as event'",
	 "                                 ^~~~"},
	{"uprobe:libc:f(ptr r) {*(int)(*(ptr)(*(ptr)(*(ptr)(*(ptr)(*(ptr)(r)))))) as x}",
	 "nested too deep", "                                                         ^"},
	{"uprobe:libc:f(xyz)x",
	 "unknown option 'x': expected as category role key outer inner stack nounwind frame",
	 "                  ^"},
	{"uprobe:libc:f(out xyz g)", "'xyz' is three parameters; in memory they are a dim3",
	 "              ^~~~~~~~~"},
	{"uprobe:libc:f(long) {arg1 as d, $x}",
	 "expected a parameter's name, arg1, ret, duration or tid, found '$'",
	 "                                ^"},
	{"uprobe:libc:f(int a, double) {arg2 as d}",
	 "a floating-point value, which the kernel can't read",
	 "                              ^~~~"},
	{"uprobe:libc:f(int a) {arg6, arg7 as g}",
	 "the place of an argument behind the sixth one depends on the types before it: list the "
	 "parameters",
	 "                            ^~~~"},
	{"usdt:l:p:f(...)..g(u8 a,u8 b,u8 c,u8 d,u8 e,u8 f,u8 g,u8 h,u8 i,u8 j,u8 k) key=tid",
	 "a span has at most 16 values",
	 "                                                                     ^~~~"},
	{"uprobe:libc:f..g key=arg2..arg8",
	 "the place of an argument behind the sixth one depends on the types before it: list the "
	 "parameters",
	 "                           ^~~~"},
	{"usdt:libc:p:n(int a, float x)",
	 "a float can't be widened by the kernel; only double can be read",
	 "                     ^~~~~~~"},
	{"enum",
	 "expected uprobe:LIB:FUNC, usdt:LIB:PROVIDER:PROBE or tracepoint:CATEGORY:NAME, found "
	 "'enum'",
	 "^~~~"},
	{"enum x toolongname1", "a name has at most 8 bytes", "       ^~~~~~~~~~~~"},
	{"uprobe:libc:f(...) {arg1}", "two values are named 'arg1'", "                    ^~~~"},
	{"uprobe:\"/opt/my app/libx.so:f", "a '\"' without its second one", "       ^"},
	{"uprobe:\"\":f", "expected a name here", "        ^"},
	{"uprobe:\"a b\"c:f", "expected ':' behind the library", "            ^"},
	{"uprobe:libc|\"a b:f", "a '\"' without its second one", "            ^"},
	{"uprobe:\"a b\":f(sizet bytes)",
	 "unknown type; did you mean size_t, ssize_t; a pointer to anything is 'ptr', a struct by "
	 "value "
	 "'blob:SIZE'",
	 "               ^~~~~"},
	{"usdt:\"a b\":\"p q:n", "a '\"' without its second one", "           ^"},
	{"uprobe:libc:f as event -> int r",
	 "an event is over at the entry: leave out '-> …', or write 'as span'",
	 "                       ^"},
	{"uprobe:libc:f as event e -> int r",
	 "an event is over at the entry: leave out '-> …', or write 'as span'",
	 "                         ^"},
	{"uprobe:libc:f as span -> int r",
	 "what a function returns stands before the options, behind its parameters",
	 "                      ^"},
	{"uprobe:libc:f category -> int r", "expected the category", "                       ^"},
	{"uprobe:libc:f -> int -> int r", "a second '->'", "                     ^"},
	{"usdt:libc:p:n as event -> int r", "only a function returns a value",
	 "                       ^"},
	{"uprobe:libc:f -> int key", "a key joins the two ends of a pair A..B; this is none",
	 "                     ^~~"},
	{"uprobe:libc:f(int a) category", "expected the category",
	 "                             ^"},
};

static void test_each_fault_is_said_with_a_caret_below_its_place(void **state)
{
	char expected[1200];

	for (size_t i = 0; i < COUNT_OF(samples); i++) {
		struct error err = ERROR_INIT;
		struct call_set *set;

		assert_int_equal(call_set_open(&set, &err), 0);
		assert_int_equal(call_set_add(set, samples[i].text, "--probe", &err), -EINVAL);
		snprintf(expected, sizeof(expected), "--probe: %s\n  %s\n  %s", samples[i].message,
			 samples[i].text, samples[i].caret);
		assert_string_equal(err.message, expected);
		call_set_free(set);
	}
	(void)state;
}

static void test_description_that_is_too_long_is_refused(void **state)
{
	struct error err = ERROR_INIT;
	struct call_set *set;
	char *text = malloc(SPEC_BYTES_MAX + 2);

	memset(text, 'x', SPEC_BYTES_MAX + 1);
	text[SPEC_BYTES_MAX + 1] = '\0';
	assert_int_equal(call_set_open(&set, &err), 0);
	assert_int_equal(call_set_add(set, text, "--probe", &err), -EINVAL);
	assert_string_equal(err.message, "--probe: a description of more than 4096 bytes");
	call_set_free(set);
	free(text);
	(void)state;
}

static void test_control_characters_of_a_description_reach_no_terminal(void **state)
{
	struct error err = ERROR_INIT;
	struct call_set *set;

	assert_int_equal(call_set_open(&set, &err), 0);
	assert_int_equal(call_set_add(set, "uprobe:libc:f(\x1b[2J x)", "--probe", &err), -EINVAL);
	assert_null(strchr(err.message, '\x1b'));
	call_set_free(set);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_fault_is_said_with_a_caret_below_its_place),
		cmocka_unit_test(test_description_that_is_too_long_is_refused),
		cmocka_unit_test(test_control_characters_of_a_description_reach_no_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
