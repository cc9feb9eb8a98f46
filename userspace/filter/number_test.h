/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The comparison of a number with a literal, reduced to one test for the number's type. For
 * example, `kv.signed < 1.5` becomes "signed <= 1", and `kv.unsigned > -1` is always true. Nothing
 * is rounded.
 */
#ifndef WAFFLE_FILTER_NUMBER_TEST_H
#define WAFFLE_FILTER_NUMBER_TEST_H

#include "filter/expr_internal.h"

enum number_class { NUMBER_SIGNED, NUMBER_UNSIGNED, NUMBER_FLOAT };

enum number_answer { NUMBER_NEVER, NUMBER_ALWAYS, NUMBER_COMPARE };

struct number_test {
	enum number_answer answer;
	enum number_class class;
	unsigned op;    /* BPF_JEQ, …: jumps if true; floats use only BPF_JEQ and BPF_JNE … */
	uint64_t value; /* … with the bits of the literal; 0 stands for both signs */
	/* … or a range: the position in the order of floats, minus `low`, is at most `span` */
	bool range;
	uint64_t low, span;
};

/* Makes the test for one literal. FILTER_IN is tested as FILTER_EQ with each literal. */
struct number_test number_test_make(enum number_class class, enum filter_op op,
				    const struct filter_literal *literal);

#endif
