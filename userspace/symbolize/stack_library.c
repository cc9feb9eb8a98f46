// SPDX-License-Identifier: Apache-2.0
#include "symbolize/stack_library_internal.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

/* What the names begin with. "__" is reserved for the implementation, as in __gnu_cxx. Go's
 * packages are its run-time, and what makes system calls; those of programs have longer paths. */
static const char *const beginnings[] = {
	"__",     "pthread_", "syscall",           "std::",
	"futex_", "runtime.", "internal/runtime/", "internal/poll."};
/* Crates of Rust's own library. A function of C++ may have such a namespace, but has parentheses.
 */
static const char *const rust_crates[] = {"std::", "core::", "alloc::"};
/* What comes before a type of Rust in the types of its references, pointers, slices, tuples and
 * trait objects. */
static const char *const rust_modifiers[] = {"&", "*const ", "*mut ", "mut ", "[", "(", "dyn "};
/* The types that have no crate: https://doc.rust-lang.org/std/index.html#primitives */
static const char *const rust_primitives[] = {"bool", "char", "str",  "f32",   "f64",  "i8",
					      "i16",  "i32",  "i64",  "i128",  "u8",   "u16",
					      "u32",  "u64",  "u128", "isize", "usize"};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* The length of the entry with which a text begins; 0: none. */
static size_t beginning(const char *text, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strncmp(text, list[i], strlen(list[i])))
			return strlen(list[i]);
	return 0;
}

static bool is_of_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* ---- Rust ---- */

/* Whether a type is Rust's own, or made of one: "std::fs::File", "&i32". */
static bool is_rusts_type(const char *type)
{
	size_t len;

	while ((len = beginning(type, rust_modifiers, COUNT(rust_modifiers))))
		type += len;
	if (beginning(type, rust_crates, COUNT(rust_crates)))
		return true;
	for (size_t i = 0; i < COUNT(rust_primitives); i++) {
		len = strlen(rust_primitives[i]);
		if (!strncmp(type, rust_primitives[i], len) && !is_of_name(type[len]) &&
		    type[len] != ':')
			return true;
	}
	return false;
}

/* "core::fmt::write", "<&std::fs::File as std::io::Write>::write"; but not the program's own
 * "<alloc::vec::Vec<T> as shop::Total>::total". */
static bool is_of_rusts_library(const char *function)
{
	const char *as = strstr(function, " as ");

	if (*function != '<')
		return beginning(function, rust_crates, COUNT(rust_crates));
	return is_rusts_type(function + 1) &&
	       (!as || beginning(as + 4, rust_crates, COUNT(rust_crates)));
}

/* ---- C++ ---- */

/* Behind "operator" at the begin of `text`, with what it is an operator of unless that is a type:
 * its brackets are no brackets, and the space in "operator< <char>" does not end the name. */
static const char *operator_end(const char *text)
{
	text += strlen("operator");
	if (!strncmp(text, "()", 2) || !strncmp(text, "[]", 2))
		text += 2;
	else if (!strncmp(text, "<=>", 3))
		text += 3;
	else
		text += strspn(text, *text == '<' ? "<=" : ">=-+*/%^&|~!,");
	if (!strncmp(text, " <", 2))
		text++;
	else if (*text == ' ')
		text += 1 + strcspn(text + 1, "(<");
	return text;
}

/*
 * The begin of the qualified name in a name with parameters. What is made from a template has the
 * type that it returns in front of its name: "void std::this_thread::sleep_for<long>(long)". The
 * last parentheses outside of all others are those of the parameters; the name in front of them
 * begins behind the last space outside of all brackets. NULL: there are no parentheses.
 */
static const char *qualified_name(const char *function)
{
	const char *word = function, *name = NULL;
	size_t depth = 0;

	for (const char *at = function; *at;) {
		if (!strncmp(at, "operator", 8) && !is_of_name(at[8]) &&
		    (at == function || !is_of_name(at[-1]))) {
			at = operator_end(at);
			continue;
		}
		if (*at == '(' && !depth)
			name = word;
		if (strchr("(<[{", *at))
			depth++;
		else if (strchr(")]}>", *at) && depth && (*at != '>' || at[-1] != '-'))
			depth--;
		else if (*at == ' ' && !depth)
			word = at + 1;
		at++;
	}
	return name;
}

bool stack_function_is_library(const char *function)
{
	const char *name = qualified_name(function);

	if (!name && is_of_rusts_library(function))
		return true;
	return beginning(name ?: function, beginnings, COUNT(beginnings));
}
