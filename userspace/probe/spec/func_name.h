/* SPDX-License-Identifier: Apache-2.0 */
/* Names of functions: the suffixes that compilers append, and demangled names of C++ and Rust. */
#ifndef WAFFLE_PROBE_SPEC_FUNC_NAME_H
#define WAFFLE_PROBE_SPEC_FUNC_NAME_H

#include <stdbool.h>
#include <stddef.h>

#include "target/elf/demangle.h"

/* What a symbol denotes. */
enum func_part {
	FUNC_WHOLE, /* a function of the source */
	FUNC_CLONE, /* "f.constprop.0": its arguments may differ from those of f */
	/* "f.cold": not a function; it is jumped to, so there is no return address. */
	FUNC_FRAGMENT,
};
enum func_part func_part(const char *symbol);

/* The name, and the "(int)" after it. */
struct func_parts {
	size_t from, name_to, args_to;
};

/* A C++ function, or a Rust function with a legacy mangled name, which ends in a hash. */
struct func_name {
	char whole[DEMANGLE_MAX]; /* "int ns::twice<int>(int) const" */
	struct func_parts at;
	bool clone; /* see FUNC_CLONE; only its complete name matches */
};

/* False: not mangled, or not a function of the source (a thunk, a guard). */
bool func_name_read(struct func_name *name, const char *symbol);
/*
 * Whether a pattern without wildcards matches: "ns::twice<int>". Without "<int>" it matches all
 * instances of the template, without "(int)" all overloads. Without the hash ("::h" and 16 digits)
 * it matches all Rust functions of that name. Spaces do not matter.
 */
bool func_name_is(const struct func_name *name, const char *pattern);
bool func_name_is_similar(const struct func_name *name, const char *pattern);
/* Whether a pattern selects one overload: "f(int)". */
bool func_name_has_args(const char *pattern);
/* Writes "ns::twice<int>", or with its arguments "ns::twice<int>(int)". Returns its length. */
size_t func_name_put(const struct func_name *name, bool args, char text[DEMANGLE_MAX]);

#endif
