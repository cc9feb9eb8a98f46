// SPDX-License-Identifier: Apache-2.0
/* The generated code, instruction by instruction.
 * test_filter_kernel.c tests that it does the right thing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "filter/codegen/asm_internal.h"
#include "filter/filter.h"
#include "disasm.h"

static const struct site_info site = {
	.name = "copy",
	.category = "",
	.file = "a.c",
	.func = "run",
	.object = "/bin/a",
	.kind = WAFFLE_SITE_SPAN,
	.key_count = 4,
	.keys = {{WAFFLE_KEY_I64, "i"},
		 {WAFFLE_KEY_STR, "s"},
		 {WAFFLE_KEY_U64, "u"},
		 {WAFFLE_KEY_STR, "t"}},
};

/* ---- the assembler ---- */

struct program {
	struct filter_code code;
	struct assembler as;
};

static void program_open(struct program *program)
{
	*program = (struct program){0};
	program->as.code = &program->code;
}

/* The instructions, one a line. */
static void code_expect(const struct filter_code *code, const char *expected)
{
	char text[8192] = "", line[DISASM_TEXT];
	size_t len = 0;
	unsigned words;

	for (uint32_t i = 0; i < code->insns.len; i += words) {
		words = disasm(line, code, i);
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s\n", line);
	}
	assert_string_equal(text, expected);
}

static void program_expect(struct program *program, const char *expected)
{
	assert_int_equal(assembler_finish(&program->as), 0);
	code_expect(&program->code, expected);
	filter_code_free(&program->code);
}

static void test_jumps_lead_to_their_labels(void **state)
{
	struct program program;
	uint32_t back, out;

	(void)state;
	program_open(&program);
	back = asm_label(&program.as);
	out = asm_label(&program.as);
	asm_const(&program.as, BPF_REG_0, 3);
	asm_place(&program.as, back);
	asm_branch_imm(&program.as, BPF_JEQ, BPF_REG_0, 0, out);
	asm_alu_imm(&program.as, BPF_SUB, BPF_REG_0, 1);
	asm_jump(&program.as, back);
	asm_place(&program.as, out);
	asm_exit(&program.as);
	program_expect(&program, "r0 = 3\n"
				 "if r0 == 0x0 goto pc+2\n"
				 "r0 -= 1\n"
				 "goto pc-3\n"
				 "exit\n");
}

static void test_nothing_is_left_that_can_not_be_reached(void **state)
{
	struct program program;
	uint32_t unused, used;

	(void)state;
	program_open(&program);
	unused = asm_label(&program.as);
	used = asm_label(&program.as);
	asm_jump(&program.as, used);
	asm_place(&program.as, unused);
	asm_const(&program.as, BPF_REG_0, 1);
	asm_branch_imm(&program.as, BPF_JEQ, BPF_REG_0, 0, unused);
	asm_map(&program.as, BPF_REG_1, CODE_RELOC_OPEN, 0);
	asm_exit(&program.as);
	asm_place(&program.as, used);
	asm_const(&program.as, BPF_REG_0, 2);
	asm_exit(&program.as);
	assert_int_equal(program.code.relocs.len, 0);
	program_expect(&program, "r0 = 2\n"
				 "exit\n");
}

static void test_a_jump_over_a_jump_is_turned_round(void **state)
{
	struct program program;
	uint32_t yes, no;

	(void)state;
	program_open(&program);
	yes = asm_label(&program.as);
	no = asm_label(&program.as);
	asm_branch_imm(&program.as, BPF_JSLT, BPF_REG_1, 5, yes);
	asm_jump(&program.as, no);
	asm_place(&program.as, yes);
	asm_const(&program.as, BPF_REG_0, 1);
	asm_exit(&program.as);
	asm_place(&program.as, no);
	asm_const(&program.as, BPF_REG_0, 0);
	asm_exit(&program.as);
	program_expect(&program, "if r1 s>= 0x5 goto pc+2\n"
				 "r0 = 1\n"
				 "exit\n"
				 "r0 = 0\n"
				 "exit\n");
}

static void test_constants_take_two_instructions_if_they_must(void **state)
{
	struct program program;
	uint32_t label;

	(void)state;
	program_open(&program);
	label = asm_label(&program.as);
	asm_const(&program.as, BPF_REG_1, UINT64_MAX);
	asm_const(&program.as, BPF_REG_1, 0x7fffffff);
	asm_const(&program.as, BPF_REG_1, 0x80000000);
	asm_branch_const(&program.as, BPF_JNE, BPF_REG_1, 1ull << 40, BPF_REG_2, label);
	asm_exit(&program.as);
	asm_place(&program.as, label);
	asm_exit(&program.as);
	program_expect(&program, "r1 = -1\n"
				 "r1 = 2147483647\n"
				 "r1 = 0x80000000\n"
				 "r2 = 0x10000000000\n"
				 "if r1 != r2 goto pc+1\n"
				 "exit\n"
				 "exit\n");
}

static void test_a_jump_that_is_too_far_is_an_error(void **state)
{
	struct program program;
	uint32_t far;

	(void)state;
	program_open(&program);
	far = asm_label(&program.as);
	asm_branch_imm(&program.as, BPF_JEQ, BPF_REG_1, 0, far);
	for (int i = 0; i < 32768; i++)
		asm_mov(&program.as, BPF_REG_0, BPF_REG_1);
	asm_place(&program.as, far);
	asm_exit(&program.as);
	assert_int_equal(assembler_finish(&program.as), -E2BIG);
	filter_code_free(&program.code);
}

/* ---- numbers ---- */

static const struct filter_literal zero = {.type = FILTER_LITERAL_INTEGER};
static const struct filter_literal minus_one = {
	.type = FILTER_LITERAL_INTEGER, .negative = true, .magnitude = 1};
static const struct filter_literal largest = {.type = FILTER_LITERAL_INTEGER,
					      .magnitude = UINT64_MAX};
static const struct filter_literal half = {.type = FILTER_LITERAL_FLOAT, .f64 = 1.5};
static const struct filter_literal minus_half = {.type = FILTER_LITERAL_FLOAT, .f64 = -1.5};

static void number_expect(enum number_class class, enum filter_op op,
			  const struct filter_literal *literal, enum number_answer answer,
			  unsigned jump, uint64_t value)
{
	struct number_test test = number_test_make(class, op, literal);

	assert_int_equal(test.answer, answer);
	if (answer != NUMBER_COMPARE)
		return;
	assert_int_equal(test.op, jump);
	assert_int_equal(test.value, value);
}

static void test_literals_are_rounded_the_way_the_operator_needs(void **state)
{
	(void)state;
	number_expect(NUMBER_SIGNED, FILTER_LT, &half, NUMBER_COMPARE, BPF_JSLT, 2);
	number_expect(NUMBER_SIGNED, FILTER_LE, &half, NUMBER_COMPARE, BPF_JSLE, 1);
	number_expect(NUMBER_SIGNED, FILTER_GT, &half, NUMBER_COMPARE, BPF_JSGT, 1);
	number_expect(NUMBER_SIGNED, FILTER_GE, &half, NUMBER_COMPARE, BPF_JSGE, 2);
	number_expect(NUMBER_SIGNED, FILTER_LT, &minus_half, NUMBER_COMPARE, BPF_JSLT,
		      (uint64_t)-1);
	number_expect(NUMBER_SIGNED, FILTER_LE, &minus_half, NUMBER_COMPARE, BPF_JSLE,
		      (uint64_t)-2);
	number_expect(NUMBER_UNSIGNED, FILTER_GE, &half, NUMBER_COMPARE, BPF_JGE, 2);
}

static void test_what_a_type_can_not_hold_is_decided(void **state)
{
	(void)state;
	number_expect(NUMBER_SIGNED, FILTER_EQ, &half, NUMBER_NEVER, 0, 0);
	number_expect(NUMBER_SIGNED, FILTER_NE, &half, NUMBER_ALWAYS, 0, 0);
	number_expect(NUMBER_SIGNED, FILTER_LT, &largest, NUMBER_ALWAYS, 0, 0);
	number_expect(NUMBER_SIGNED, FILTER_GE, &largest, NUMBER_NEVER, 0, 0);
	number_expect(NUMBER_UNSIGNED, FILTER_GT, &minus_one, NUMBER_ALWAYS, 0, 0);
	number_expect(NUMBER_UNSIGNED, FILTER_LE, &minus_one, NUMBER_NEVER, 0, 0);
	number_expect(NUMBER_UNSIGNED, FILTER_LT, &zero, NUMBER_NEVER, 0, 0);
	number_expect(NUMBER_UNSIGNED, FILTER_GE, &zero, NUMBER_ALWAYS, 0, 0);
	number_expect(NUMBER_UNSIGNED, FILTER_LE, &largest, NUMBER_ALWAYS, 0, 0);
	number_expect(NUMBER_UNSIGNED, FILTER_LT, &largest, NUMBER_COMPARE, BPF_JLT, UINT64_MAX);
	/* No float is 2^64 - 1. */
	number_expect(NUMBER_FLOAT, FILTER_EQ, &largest, NUMBER_NEVER, 0, 0);
	number_expect(NUMBER_FLOAT, FILTER_NE, &largest, NUMBER_ALWAYS, 0, 0);
}

/* ---- programs ---- */

static const struct codegen_options at_hit = {.id_offset = 112,
					      .frame_offset = 96,
					      .size_offset = 88,
					      .on_reject = CODEGEN_EXIT,
					      .on_accept = WAFFLE_NEXT_KEEP,
					      .on_defer = WAFFLE_NEXT_DEFER};

static int generate_for(struct filter_code *code, const char *source,
			const struct codegen_options *options)
{
	struct error err = ERROR_INIT;
	struct filter_expr *filter;
	struct residual residual;
	int result;

	if (filter_parse(&filter, "test", source, &err))
		fail_msg("%s", err.message);
	assert_true(residual_make(&residual, filter, &site));
	result = codegen(code, filter, &residual, &site, options);
	residual_free(&residual);
	filter_free(filter);
	return result;
}

static int generate(struct filter_code *code, const char *source, bool at_end)
{
	struct codegen_options options = at_hit;

	options.at_end = at_end;
	return generate_for(code, source, &options);
}

static void program_is(const char *source, bool at_end, const char *expected)
{
	struct filter_code code;

	assert_int_equal(generate(&code, source, at_end), 0);
	code_expect(&code, expected);
	filter_code_free(&code);
}

static void test_what_needs_no_frame_reads_none(void **state)
{
	(void)state;
	program_is("pid == 5 && cpu < 4", false,
		   "r6 = r1\n"
		   "call bpf_get_smp_processor_id#8\n"
		   "w1 = w0\n"
		   "if r1 >= 0x4 goto pc+9\n"
		   "call bpf_get_current_pid_tgid#14\n"
		   "r1 = r0\n"
		   "r1 >>= 32\n"
		   "if r1 != 0x5 goto pc+5\n"
		   "r1 = r6\n"
		   "r2 = map[next]\n"
		   "r3 = 1\n"
		   "call bpf_tail_call#12\n"
		   "r0 = 0\n"
		   "exit\n");
}

static void test_the_end_of_a_span_asks_what_was_deferred(void **state)
{
	(void)state;
	program_is("dur > 5000000000", true,
		   "r6 = r1\n"
		   "r1 = *(u64 *)(r6 +112)\n"
		   "*(u64 *)(r10 -8) = r1\n"
		   "r1 = map[deferred]\n"
		   "r2 = r10\n"
		   "r2 += -8\n"
		   "call bpf_map_lookup_elem#1\n"
		   "if r0 == 0x0 goto pc+13\n"
		   "r7 = r0\n"
		   "r7 += 72\n"
		   "r1 = *(u64 *)(r7 -64)\n"
		   "r2 = *(u64 *)(r7 -72)\n"
		   "r1 -= r2\n"
		   "r2 = 0x12a05f200\n"
		   "if r1 <= r2 goto pc+5\n"
		   "r1 = r6\n"
		   "r2 = map[next]\n"
		   "r3 = 1\n"
		   "call bpf_tail_call#12\n"
		   "r0 = 0\n"
		   "exit\n");
}

static void test_of_a_call_its_threads_slot_is_asked(void **state)
{
	struct codegen_options options = at_hit;
	struct filter_code code;

	(void)state;
	options.at_end = options.call = true;
	options.slot = 1000;
	options.on_accept = WAFFLE_CALL_ACCEPT;
	assert_int_equal(generate_for(&code, "dur > 5000000000", &options), 0);
	code_expect(&code, "r6 = r1\n"
			   "call bpf_get_current_task_btf#158\n"
			   "r2 = r0\n"
			   "r1 = map[calls]\n"
			   "r3 = 0\n"
			   "r4 = 0\n"
			   "call bpf_task_storage_get#156\n"
			   "if r0 == 0x0 goto pc+13\n"
			   "r7 = r0\n"
			   "r7 += 1072\n"
			   "r1 = *(u64 *)(r7 -64)\n"
			   "r2 = *(u64 *)(r7 -72)\n"
			   "r1 -= r2\n"
			   "r2 = 0x12a05f200\n"
			   "if r1 <= r2 goto pc+5\n"
			   "r1 = r6\n"
			   "r2 = map[next]\n"
			   "r3 = 0\n"
			   "call bpf_tail_call#12\n"
			   "r0 = 0\n"
			   "exit\n");
	filter_code_free(&code);
}

static unsigned calls_of(const struct filter_code *code, int helper)
{
	unsigned calls = 0;

	for (size_t i = 0; i < code->insns.len; i++)
		calls += code->insns.data[i].code == (BPF_JMP | BPF_CALL) &&
			 code->insns.data[i].imm == helper;
	return calls;
}

/* Counts the reads of the traced process in a program. One read of each run of keys is for frames
 * that are cut. */
static void reads_expect(const char *source, unsigned reads)
{
	struct filter_code code;

	assert_int_equal(generate(&code, source, false), 0);
	assert_int_equal(calls_of(&code, BPF_FUNC_probe_read_user), reads);
	assert_int_equal(calls_of(&code, BPF_FUNC_probe_read_kernel), 0);
	filter_code_free(&code);
}

static void test_no_more_is_read_than_is_asked(void **state)
{
	char longer[256];

	(void)state;
	reads_expect("pid == 1", 0);
	reads_expect("kv.i == 1", 2);
	reads_expect("kv.i == 1 && kv.i != 7 && sample(1/3)", 2);
	reads_expect("kv.s == \"\"", 2);
	reads_expect("kv.s ~ \"???*\"", 2);
	reads_expect("kv.u == 1", 4);
	reads_expect("kv.t == \"\"", 4);
	/* The first bytes of a text come with its length … */
	reads_expect("kv.s == \"abc\"", 2);
	reads_expect("kv.s ~ \"abc*\"", 2);
	reads_expect("kv.s in {\"abc\", \"abd\", \"abcd\"}", 2);
	/* … the last ones do not, nor do many. */
	reads_expect("kv.s ~ \"abc*abc\"", 3);
	snprintf(longer, sizeof(longer), "kv.s in {\"%080u\", \"%080u\"}", 1, 2);
	reads_expect(longer, 3);
	/* 64 bytes are shared by all texts. */
	snprintf(longer, sizeof(longer), "kv.s == \"%050u\" && kv.t == \"%050u\"", 1, 2);
	reads_expect(longer, 5);
}

static void test_a_parent_is_looked_up_once(void **state)
{
	struct filter_code code;

	(void)state;
	assert_int_equal(generate(&code, "depth > 1 && parent.name == \"a\" && depth < 9", false),
			 0);
	assert_int_equal(calls_of(&code, BPF_FUNC_map_lookup_elem), 1);
	assert_int_equal(code.relocs.len, 2);
	assert_int_equal(code.relocs.data[0].type, CODE_RELOC_OPEN);
	assert_int_equal(code.relocs.data[1].type, CODE_RELOC_NEXT);
	assert_int_equal(code.predicates, 3);
	filter_code_free(&code);
}

static void test_patterns_that_are_the_same_share_their_table(void **state)
{
	struct filter_code code;

	(void)state;
	assert_int_equal(generate(&code, "kv.s ~ \"*ab*\" || kv.t ~ \"x*ab*y\"", false), 0);
	assert_int_equal(code.table.len, 256);
	/* A bit for each token, 0 if it takes the byte. */
	assert_int_equal(code.table.data['a'], 2);
	assert_int_equal(code.table.data['b'], 1);
	assert_int_equal(code.table.data['c'], 3);
	filter_code_free(&code);
}

static void test_equal_code_is_equal(void **state)
{
	struct filter_code a, b, c;

	(void)state;
	assert_int_equal(generate(&a, "kv.s ~ \"*ab*\"", false), 0);
	assert_int_equal(generate(&b, "kv.s ~ \"*ab*\" && true", false), 0);
	assert_int_equal(generate(&c, "kv.s ~ \"*ac*\"", false), 0);
	assert_true(filter_code_equal(&a, &b));
	assert_false(filter_code_equal(&a, &c));
	filter_code_free(&a);
	filter_code_free(&b);
	filter_code_free(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_jumps_lead_to_their_labels),
		cmocka_unit_test(test_nothing_is_left_that_can_not_be_reached),
		cmocka_unit_test(test_a_jump_over_a_jump_is_turned_round),
		cmocka_unit_test(test_constants_take_two_instructions_if_they_must),
		cmocka_unit_test(test_a_jump_that_is_too_far_is_an_error),
		cmocka_unit_test(test_literals_are_rounded_the_way_the_operator_needs),
		cmocka_unit_test(test_what_a_type_can_not_hold_is_decided),
		cmocka_unit_test(test_what_needs_no_frame_reads_none),
		cmocka_unit_test(test_the_end_of_a_span_asks_what_was_deferred),
		cmocka_unit_test(test_of_a_call_its_threads_slot_is_asked),
		cmocka_unit_test(test_no_more_is_read_than_is_asked),
		cmocka_unit_test(test_a_parent_is_looked_up_once),
		cmocka_unit_test(test_patterns_that_are_the_same_share_their_table),
		cmocka_unit_test(test_equal_code_is_equal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
