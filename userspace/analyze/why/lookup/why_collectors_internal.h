/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The garbage collectors of run-times, by the functions that they consist of. Those of CPython are
 * told by the interpreter's frames, with the function of Python that they run for.
 */
#ifndef WAFFLE_ANALYZE_WHY_LOOKUP_WHY_COLLECTORS_INTERNAL_H
#define WAFFLE_ANALYZE_WHY_LOOKUP_WHY_COLLECTORS_INTERNAL_H

/* The run-time whose collector a function is of, such as "Go"; NULL: it is of none. The work that a
 * collector makes the program do counts as well: to mark for it before it allocates, and to tell it
 * of pointers. What allocates, and what waits until the world has stopped, does not. */
const char *collector_of(const char *function);

#endif
