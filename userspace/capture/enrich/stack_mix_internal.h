/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One stack of the frames of Python and of native code, as `py-spy --native` shows it. Each call of
 * the interpreter's loop (_PyEval_EvalFrameDefault) is replaced by the Python functions that it
 * runs. One call runs a Python function and those that it calls directly; a function that is called
 * from native code begins a new one.
 *
 *	native	poll ← [time_sleep] ← eval ← [vectorcall] ← eval ← main
 *	Python	fetch ← __getitem__ | run
 *	mixed	poll ← [time_sleep] ← fetch ← __getitem__ ← run
 *
 * Here eval is a call of the loop, [ ] marks other frames of the interpreter, and | separates the
 * functions of two calls of the loop.
 *
 * The interpreter's own frames are left out, except those innermost: they tell what it waits for.
 */
#ifndef WAFFLE_CAPTURE_ENRICH_STACK_MIX_INTERNAL_H
#define WAFFLE_CAPTURE_ENRICH_STACK_MIX_INTERNAL_H

#include <stdint.h>

#include "target/process/python.h"

struct stack_mix {
	const uint64_t *native; /* innermost first, as are the following */
	uint32_t native_count;
	const uint64_t *python;
	uint32_t python_count;
	/* Bit i: python[i] is the outermost function of its call of the loop. */
	uint64_t python_ends;
};

/* Writes the mixed stack, of at most native_count + python_count frames, and returns its length.
 * Functions of Python for which no call of the loop is found come last. */
uint32_t stack_mix(const struct stack_mix *mix, const struct python_code_range *interpreter,
		   uint64_t *mixed);

#endif
