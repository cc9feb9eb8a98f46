/* SPDX-License-Identifier: Apache-2.0 */
/* Shortens names of C++ templates for people: GPU kernels of libraries have names of 300 and more
 * characters, nearly all of which are arguments of templates. */
#ifndef WAFFLE_UTIL_TEMPLATE_FOLD_H
#define WAFFLE_UTIL_TEMPLATE_FOLD_H

#include <stdint.h>

/*
 * Returns a copy of a text in which names of templates are shorter, step by step, until it has at
 * most `columns` characters: the arguments lose their namespaces, and the template its parameters,
 * so that "at::apply<at::List<float, 3>, at::Div<float> >(at::Args)" becomes "at::apply<List<float,
 * 3>, Div<float> >"; then the innermost arguments become "…", level by level: "at::apply<List<…>,
 * Div<…> >" and "at::apply<…>". The name of the anonymous namespace is dropped. The result may be
 * longer than `columns`. A text that is short enough, or whose brackets do not match, is copied
 * unchanged. The caller frees it.
 */
char *template_fold(const char *text, uint32_t columns);

/* The same of the name of a function, whose own name is kept: if folded templates are not enough,
 * its parameters become "…", and then its qualifiers, the outermost first:
 * "std::_Hashtable<…>::_M_find_node(…) const", "…::_M_find_node(…) const". Functions of Python,
 * "step (train.py)", have none of these. */
char *function_fold(const char *text, uint32_t columns);

#endif
