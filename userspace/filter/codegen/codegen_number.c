// SPDX-License-Identifier: Apache-2.0
#include "filter/codegen/asm_internal.h"
#include "filter/codegen/codegen_parts_internal.h"
#include "filter/number_test.h"

/* Emits code that jumps to `yes` if the test is true for the number in r1, and falls through
 * otherwise. It overwrites r2 and r3. */
static void number_test_emit(struct assembler *as, const struct number_test *test, uint32_t yes)
{
	if (test->answer == NUMBER_NEVER)
		return;
	if (test->answer == NUMBER_ALWAYS) {
		asm_jump(as, yes);
	} else if (test->range) {
		/* The position in the order: a negative float has all bits inverted, others only
		 * the sign bit. */
		asm_mov(as, BPF_REG_2, BPF_REG_1);
		asm_alu_imm(as, BPF_ARSH, BPF_REG_2, 63);
		asm_const(as, BPF_REG_3, 1ull << 63);
		asm_alu(as, BPF_OR, BPF_REG_2, BPF_REG_3);
		asm_alu(as, BPF_XOR, BPF_REG_2, BPF_REG_1);
		asm_const(as, BPF_REG_3, test->low);
		asm_alu(as, BPF_SUB, BPF_REG_2, BPF_REG_3);
		asm_branch_const(as, test->op, BPF_REG_2, test->span, BPF_REG_3, yes);
	} else if (test->class == NUMBER_FLOAT && !test->value) {
		asm_mov(as, BPF_REG_2, BPF_REG_1);
		asm_alu_imm(as, BPF_LSH, BPF_REG_2, 1);
		asm_branch_imm(as, test->op, BPF_REG_2, 0, yes);
	} else {
		asm_branch_const(as, test->op, BPF_REG_1, test->value, BPF_REG_2, yes);
	}
}

void codegen_number(struct codegen *gen, const struct filter_predicate *predicate,
		    enum number_class class, struct code_exits exits)
{
	const struct filter_literal *literals = &gen->filter->literals.data[predicate->literal];
	struct number_test test;

	for (uint32_t i = 0; i < predicate->count; i++) {
		if (!filter_literal_is_number(&literals[i]))
			continue;
		test = number_test_make(class, predicate->op, &literals[i]);
		number_test_emit(&gen->as, &test, exits.yes);
	}
	asm_jump(&gen->as, exits.no);
}
