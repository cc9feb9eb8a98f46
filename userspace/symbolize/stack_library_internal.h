/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that every program of a language has, by their names as symbols and debug information
 * give them: those of the C library, of Go's run-time, and of the libraries of C++ and Rust. The
 * latter are compiled into the program, so its file does not tell.
 */
#ifndef WAFFLE_SYMBOLIZE_STACK_LIBRARY_INTERNAL_H
#define WAFFLE_SYMBOLIZE_STACK_LIBRARY_INTERNAL_H

#include <stdbool.h>

bool stack_function_is_library(const char *function);

#endif
