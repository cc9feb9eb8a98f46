/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run-time does besides the program's own work, by the functions that it consists of: it
 * collects garbage, loads classes, or notes each allocation. The garbage collection of CPython is
 * told by the interpreter's frames, with the function of Python that it runs for.
 */
#ifndef WAFFLE_ANALYZE_WHY_LOOKUP_WHY_PHASES_INTERNAL_H
#define WAFFLE_ANALYZE_WHY_LOOKUP_WHY_PHASES_INTERNAL_H

#include "symbolize/stack_names.h"

/* Goes on with the next outer function of a stack, whose name is known. Sets `phase`, NULL at
 * first, to what the innermost such function is of, such as "the garbage collection of Go", unless
 * an outer one tells what that is for. The work that a collector makes the program do counts as
 * well: to mark for it before it allocates, and to tell it of pointers. What allocates, and what
 * waits until the world has stopped, does not. */
void phase_add(const char **phase, const struct stack_frame *frame);

#endif
