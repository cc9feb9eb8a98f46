/* SPDX-License-Identifier: Apache-2.0 */
/* Names of functions: what a compiler has appended to them, and those of C++ and Rust as people
 * write them. */
#ifndef WAFFLE_CALL_FUNC_NAME_H
#define WAFFLE_CALL_FUNC_NAME_H

#include <stdbool.h>
#include <stddef.h>

#include "target/demangle.h"

/* What a symbol names. */
enum func_part {
	FUNC_WHOLE,    /* a function as it stands in the source */
	FUNC_CLONE,    /* "f.constprop.0": it may have other arguments than f, or none */
	FUNC_FRAGMENT, /* "f.cold": no function; it is jumped to, so there is no return address */
};
enum func_part func_part(const char *symbol);

/* Where a name is, and the "(int)" behind it. */
struct func_parts {
	size_t from, name_to, args_to;
};

/* A function of C++, or one of Rust whose name is mangled in the old way: it ends in a hash. */
struct func_name {
	char whole[DEMANGLE_MAX]; /* "int ns::twice<int>(int) const" */
	struct func_parts at;
	bool clone; /* see FUNC_CLONE; only its whole name means it */
};

/* false: not mangled, or no function of the source (a thunk, a guard). */
bool func_name_read(struct func_name *name, const char *symbol);
/*
 * Whether a pattern without wildcards means it. It is a name, "ns::twice<int>"; without "<int>" it
 * means all of the template, without "(int)" all overloads; without the hash, "::h" and 16 digits,
 * all of Rust's functions of that name. Blanks do not matter.
 */
bool func_name_is(const struct func_name *name, const char *pattern);
bool func_name_is_near(const struct func_name *name, const char *pattern);
/* Whether a pattern is of one overload: "f(int)". */
bool func_name_has_args(const char *pattern);
/* Writes "ns::twice<int>", or with its arguments "ns::twice<int>(int)". Returns its length. */
size_t func_name_put(const struct func_name *name, bool args, char text[DEMANGLE_MAX]);

#endif
