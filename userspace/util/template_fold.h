/* SPDX-License-Identifier: Apache-2.0 */
/* Shortens names of C++ templates for people: GPU kernels of libraries have names of 300 and more
 * characters, nearly all of which are arguments of templates. */
#ifndef WAFFLE_UTIL_TEMPLATE_FOLD_H
#define WAFFLE_UTIL_TEMPLATE_FOLD_H

#include <stdint.h>

/*
 * Returns a copy of a text in which the innermost arguments of templates became "…", level by
 * level, until it has at most `columns` characters or only the outermost brackets are left:
 * "a::apply<b::List<float, 3>, c::Div<float> >" becomes "a::apply<b::List<…>, c::Div<…> >" or
 * "a::apply<…>". The name of the anonymous namespace is dropped. The result may be longer than
 * `columns`. A text that is short enough, or whose brackets do not match, is copied unchanged. The
 * caller frees it.
 */
char *template_fold(const char *text, uint32_t columns);

#endif
