/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A comparison of a number with a literal, reduced to what one or a few instructions can do in the
 * type of the number: `kv.signed < 1.5` is "signed <= 1", `kv.unsigned > -1` always holds. Nothing
 * is rounded.
 */
#ifndef WAFFLE_FILTER_CODEGEN_NUMBER_H
#define WAFFLE_FILTER_CODEGEN_NUMBER_H

#include "filter/asm.h"

enum number_class { NUMBER_SIGNED, NUMBER_UNSIGNED, NUMBER_FLOAT };

enum number_answer { NUMBER_NEVER, NUMBER_ALWAYS, NUMBER_COMPARE };

struct number_test {
	enum number_answer answer;
	enum number_class class;
	unsigned op;    /* BPF_JEQ, …: true if it jumps; of a float only BPF_JEQ, BPF_JNE … */
	uint64_t value; /* … with the bits of the literal; 0: of either sign */
	/* … or a range: place in the order of floats, less `low`, is at most `span`. */
	bool range;
	uint64_t low, span;
};

/* FILTER_IN is asked as FILTER_EQ, for each literal. */
struct number_test number_test_make(enum number_class class, enum filter_op op,
				    const struct filter_literal *literal);

/* Goes to `yes` if the number in r1 makes it true, falls through if not. r2 and r3 are lost. */
void number_test_emit(struct assembler *as, const struct number_test *test, uint32_t yes);

#endif
