// SPDX-License-Identifier: Apache-2.0
/* Reads a frame as late as possible, and trusts it as little as value_walk_next() does. */
#include <errno.h>
#include <stddef.h>

#include "filter/codegen/codegen_parts_internal.h"

/* ---- the stack and the verifier ---- */

int codegen_stack(struct codegen *gen, unsigned bytes)
{
	gen->stack -= (int)((bytes + 7) & ~7u);
	if (gen->stack < -STACK_BYTES)
		gen->as.err = -E2BIG;
	return gen->stack;
}

void codegen_forget(struct codegen *gen, unsigned reg)
{
	unsigned unknown = BPF_REG_5;

	/* Any number that the verifier knows nothing about will do. */
	if (gen->options->call)
		asm_load(&gen->as, BPF_DW, unknown, REG_FRAME, DEFERRED(ts));
	else if (!gen->options->at_end && gen->frame.run_count)
		unknown = REG_FRAME;
	else
		asm_load(&gen->as, BPF_DW, unknown, REG_CTX, gen->options->id_offset);
	asm_alu(&gen->as, BPF_XOR, reg, unknown);
	asm_alu(&gen->as, BPF_XOR, reg, unknown);
}

/* ---- layout ---- */

static void run_cover(struct frame_run *run, unsigned from, unsigned to)
{
	if (run->to == 0 || from < run->from)
		run->from = (uint16_t)from;
	if (to > run->to)
		run->to = (uint16_t)to;
}

void frame_layout_make(struct codegen *gen, uint32_t keys, bool header)
{
	struct frame_layout *frame = &gen->frame;
	struct frame_run *run = frame->runs;
	unsigned at = sizeof(struct waffle_frame);

	if (header)
		run_cover(run, 0, sizeof(struct waffle_frame));
	for (unsigned i = 0; keys >> i; i++) {
		char type = gen->site->keys[i].type;
		bool asked = keys >> i & 1;

		frame->run[i] = (uint8_t)(run - frame->runs);
		frame->at[i] = (uint16_t)at;
		/* This word also tells where later keys are, and whether they exist. */
		if (asked || type == WAFFLE_KEY_STR || type == WAFFLE_KEY_NUMBER)
			run_cover(run, at, at + key_bytes(type) + ((frame->ahead[i] + 7u) & ~7u));
		at += key_bytes(type);
		run->end = (uint16_t)(i + 1);
		if (type == WAFFLE_KEY_STR && keys >> i > 1) {
			run++;
			run->keys = run->end = (uint16_t)(i + 1);
			at = 0;
		}
	}
	frame->run_count = keys || header ? (unsigned)(run - frame->runs) + 1 : 0;
	for (unsigned i = 0; i < frame->run_count; i++)
		frame->runs[i].slot =
			codegen_stack(gen, (unsigned)(frame->runs[i].to - frame->runs[i].from));
}

int frame_header_slot(const struct codegen *gen, size_t offset)
{
	return gen->frame.runs[0].slot + (int)offset - gen->frame.runs[0].from;
}

int frame_key_slot(const struct codegen *gen, unsigned key)
{
	const struct frame_run *run = &gen->frame.runs[gen->frame.run[key]];

	return run->slot + gen->frame.at[key] - run->from;
}

/* The string whose length determines where a run begins. */
static int run_string_slot(const struct codegen *gen, unsigned index)
{
	return frame_key_slot(gen, gen->frame.runs[index].keys - 1u);
}

/* ---- reading ---- */

static enum bpf_func_id read_helper(const struct codegen *gen)
{
	return gen->options->at_end ? BPF_FUNC_probe_read_kernel : BPF_FUNC_probe_read_user;
}

/* Loads the number of valid bytes in the frame, for a comparison that may overwrite it. */
static void load_size(struct codegen *gen, unsigned reg)
{
	asm_mov(&gen->as, reg, REG_SIZE);
	codegen_forget(gen, reg);
}

/* Treats the frame as empty. */
static void drop_frame(struct codegen *gen)
{
	asm_const(&gen->as, REG_SIZE, 0);
	codegen_forget(gen, REG_SIZE);
}

/* Loads into r2 how many bytes the frame has from the first byte read of a run. May be negative. */
static void run_left(struct codegen *gen, unsigned index)
{
	const struct frame_run *run = &gen->frame.runs[index];

	load_size(gen, BPF_REG_2);
	if (run->from)
		asm_alu_imm(&gen->as, BPF_SUB, BPF_REG_2, run->from);
	if (index)
		asm_alu(&gen->as, BPF_SUB, BPF_REG_2, REG_TEXT);
}

static void run_slot(struct codegen *gen, unsigned index)
{
	asm_mov(&gen->as, BPF_REG_1, BPF_REG_10);
	asm_alu_imm(&gen->as, BPF_ADD, BPF_REG_1, gen->frame.runs[index].slot);
}

/*
 * Handles a frame that ends within the run: zeroes the run's slot, and loads the number of bytes to
 * read into r2. The helper zeroes its buffer if it can't read, so this reads from an invalid
 * address. (With single stores the verifier would track each 0.)
 */
static void run_short(struct codegen *gen, unsigned index, uint32_t done)
{
	const struct frame_run *run = &gen->frame.runs[index];
	struct assembler *as = &gen->as;
	int bytes = run->to - run->from;

	run_slot(gen, index);
	asm_const(as, BPF_REG_2, (uint64_t)bytes);
	asm_const(as, BPF_REG_3, gen->options->at_end ? 0 : UINT64_MAX);
	asm_call(as, read_helper(gen));
	run_left(gen, index);
	/* Negative, which as an unsigned number is large: none of the run is there. */
	asm_branch_imm(as, BPF_JGT, BPF_REG_2, bytes, done);
}

/* Reads a run. r9: where it begins, unless it is the first one. */
static void run_read(struct codegen *gen, unsigned index)
{
	const struct frame_run *run = &gen->frame.runs[index];
	struct assembler *as = &gen->as;
	uint32_t part = asm_label(as), read = asm_label(as), done = asm_label(as);
	int bytes = run->to - run->from;

	run_left(gen, index);
	asm_branch_imm(as, BPF_JSLT, BPF_REG_2, bytes, part);
	asm_const(as, BPF_REG_2, (uint64_t)bytes);
	asm_jump(as, read);
	asm_place(as, part);
	run_short(gen, index, done);
	asm_place(as, read);
	run_slot(gen, index);
	asm_mov(as, BPF_REG_3, REG_FRAME);
	if (index)
		asm_alu(as, BPF_ADD, BPF_REG_3, REG_TEXT);
	if (run->from)
		asm_alu_imm(as, BPF_ADD, BPF_REG_3, run->from);
	asm_call(as, read_helper(gen));
	asm_branch_imm(as, BPF_JEQ, BPF_REG_0, 0, done);
	drop_frame(gen);
	asm_place(as, done);
}

/* If the type of a counter's value is invalid, the frame ends here. */
static void run_check_number(struct codegen *gen, unsigned index, unsigned key)
{
	struct assembler *as = &gen->as;
	uint32_t fine = asm_label(as);

	asm_load(as, BPF_DW, BPF_REG_1, BPF_REG_10, frame_key_slot(gen, key));
	asm_branch_imm(as, BPF_JLE, BPF_REG_1, WAFFLE_NUMBER_NONE, fine);
	asm_const(as, BPF_REG_1, gen->frame.at[key]);
	if (index)
		asm_alu(as, BPF_ADD, BPF_REG_1, REG_TEXT);
	load_size(gen, BPF_REG_2);
	/* The frame may have ended before. */
	asm_branch(as, BPF_JLE, BPF_REG_2, BPF_REG_1, fine);
	asm_mov(as, REG_SIZE, BPF_REG_1);
	codegen_forget(gen, REG_SIZE);
	asm_place(as, fine);
}

/* Turns the first word of a string into the form described at STRING_BITS. */
static void run_check_string(struct codegen *gen, unsigned index, unsigned key)
{
	struct assembler *as = &gen->as;
	uint32_t bad = asm_label(as), store = asm_label(as);
	int slot = frame_key_slot(gen, key);

	if (index)
		asm_alu_imm(as, BPF_ADD, REG_TEXT, gen->frame.at[key] + 8);
	else
		asm_const(as, REG_TEXT, gen->frame.at[key] + 8u);
	load_size(gen, BPF_REG_3);
	asm_branch(as, BPF_JGT, REG_TEXT, BPF_REG_3, bad);
	asm_load(as, BPF_DW, BPF_REG_1, BPF_REG_10, slot);
	asm_mov32(as, BPF_REG_2, BPF_REG_1);
	asm_branch_imm(as, BPF_JGT, BPF_REG_2, WAFFLE_STR_MAX, bad);
	asm_alu_imm(as, BPF_ADD, BPF_REG_2, 7);
	asm_alu_imm(as, BPF_AND, BPF_REG_2, -8);
	asm_alu(as, BPF_ADD, BPF_REG_2, REG_TEXT);
	asm_branch(as, BPF_JGT, BPF_REG_2, BPF_REG_3, bad);
	asm_alu_imm(as, BPF_LSH, BPF_REG_1, 64 - STRING_BITS);
	asm_alu_imm(as, BPF_RSH, BPF_REG_1, 64 - STRING_BITS);
	asm_alu_imm(as, BPF_LSH, REG_TEXT, STRING_BITS);
	asm_alu(as, BPF_OR, BPF_REG_1, REG_TEXT);
	asm_alu_imm(as, BPF_LSH, BPF_REG_2, STRING_NEXT_SHIFT);
	asm_alu(as, BPF_OR, BPF_REG_1, BPF_REG_2);
	asm_jump(as, store);
	asm_place(as, bad);
	asm_const(as, BPF_REG_1, (uint64_t)STRING_NOWHERE << STRING_NEXT_SHIFT);
	asm_place(as, store);
	codegen_forget(gen, BPF_REG_1);
	asm_store(as, BPF_DW, BPF_REG_10, slot, BPF_REG_1);
}

static void run_load(struct codegen *gen, unsigned index)
{
	const struct frame_run *run = &gen->frame.runs[index];

	if (index) {
		asm_load(&gen->as, BPF_DW, REG_TEXT, BPF_REG_10, run_string_slot(gen, index));
		asm_alu_imm(&gen->as, BPF_RSH, REG_TEXT, STRING_NEXT_SHIFT);
	}
	run_read(gen, index);
	for (unsigned key = run->keys; key < run->end; key++) {
		char type = gen->site->keys[key].type;

		if (type == WAFFLE_KEY_NUMBER)
			run_check_number(gen, index, key);
		if (type == WAFFLE_KEY_STR)
			run_check_string(gen, index, key);
	}
}

void frame_need(struct codegen *gen, unsigned run)
{
	for (unsigned i = 0; i <= run; i++) {
		if (gen->have & 1u << i)
			continue;
		run_load(gen, i);
		gen->have |= 1u << i;
	}
}

/* ---- values ---- */

/* Jumps to `no` unless the `bytes` of a key are in the frame. */
static void key_check(struct codegen *gen, unsigned key, unsigned bytes, uint32_t no)
{
	unsigned index = gen->frame.run[key];
	int end = (int)(gen->frame.at[key] + bytes);

	load_size(gen, BPF_REG_2);
	if (!index) {
		asm_branch_imm(&gen->as, BPF_JLT, BPF_REG_2, end, no);
		return;
	}
	asm_load(&gen->as, BPF_DW, BPF_REG_1, BPF_REG_10, run_string_slot(gen, index));
	asm_alu_imm(&gen->as, BPF_RSH, BPF_REG_1, STRING_NEXT_SHIFT);
	asm_alu_imm(&gen->as, BPF_ADD, BPF_REG_1, end);
	asm_branch(&gen->as, BPF_JGT, BPF_REG_1, BPF_REG_2, no);
}

/* A number that is stored with its type: one test for each type. */
static void number_of_any_type(struct codegen *gen, const struct filter_predicate *predicate,
			       unsigned key, struct code_exits exits)
{
	struct assembler *as = &gen->as;
	uint32_t is_unsigned = asm_label(as), is_float = asm_label(as);

	asm_load(as, BPF_DW, BPF_REG_4, BPF_REG_10, frame_key_slot(gen, key));
	asm_load(as, BPF_DW, BPF_REG_1, BPF_REG_10, frame_key_slot(gen, key) + 8);
	asm_branch_imm(as, BPF_JEQ, BPF_REG_4, WAFFLE_NUMBER_U64, is_unsigned);
	asm_branch_imm(as, BPF_JEQ, BPF_REG_4, WAFFLE_NUMBER_F64, is_float);
	asm_branch_imm(as, BPF_JEQ, BPF_REG_4, WAFFLE_NUMBER_NONE, exits.no);
	codegen_number(gen, predicate, NUMBER_SIGNED, exits);
	asm_place(as, is_unsigned);
	codegen_number(gen, predicate, NUMBER_UNSIGNED, exits);
	asm_place(as, is_float);
	codegen_number(gen, predicate, NUMBER_FLOAT, exits);
}

void frame_number(struct codegen *gen, const struct filter_predicate *predicate, unsigned key,
		  struct code_exits exits)
{
	struct assembler *as = &gen->as;
	char type = gen->site->keys[key].type;
	uint32_t is_false;

	frame_need(gen, gen->frame.run[key]);
	key_check(gen, key, key_bytes(type), exits.no);
	if (type == WAFFLE_KEY_NUMBER) {
		number_of_any_type(gen, predicate, key, exits);
		return;
	}
	asm_load(as, BPF_DW, BPF_REG_1, BPF_REG_10, frame_key_slot(gen, key));
	if (type == WAFFLE_KEY_BOOL) {
		is_false = asm_label(as);
		asm_branch_imm(as, BPF_JEQ, BPF_REG_1, 0, is_false);
		asm_const(as, BPF_REG_1, 1);
		asm_place(as, is_false);
	}
	codegen_number(gen, predicate, number_class_of(type), exits);
}

void frame_string(struct codegen *gen, unsigned key, uint32_t no)
{
	struct assembler *as = &gen->as;

	frame_need(gen, gen->frame.run[key]);
	asm_load(as, BPF_DW, BPF_REG_1, BPF_REG_10, frame_key_slot(gen, key));
	asm_mov(as, BPF_REG_2, BPF_REG_1);
	asm_alu_imm(as, BPF_RSH, BPF_REG_2, STRING_NEXT_SHIFT);
	load_size(gen, BPF_REG_3);
	asm_branch(as, BPF_JGT, BPF_REG_2, BPF_REG_3, no);
	asm_mov(as, BPF_REG_2, BPF_REG_1);
	asm_alu_imm(as, BPF_RSH, BPF_REG_2, __builtin_ctzll(WAFFLE_STR_NULL));
	asm_branch_imm(as, BPF_JSET, BPF_REG_2, 1, no);
	asm_mov(as, REG_TEXT, BPF_REG_1);
	asm_alu_imm(as, BPF_LSH, REG_TEXT, 64 - STRING_NEXT_SHIFT);
	asm_alu_imm(as, BPF_RSH, REG_TEXT, 64 - STRING_NEXT_SHIFT + STRING_BITS);
	asm_alu(as, BPF_ADD, REG_TEXT, REG_FRAME);
}

void frame_read_text(struct codegen *gen, unsigned bytes, bool kernel, uint32_t no)
{
	struct assembler *as = &gen->as;
	uint32_t fine = asm_label(as);

	asm_mov(as, BPF_REG_1, BPF_REG_10);
	asm_alu_imm(as, BPF_ADD, BPF_REG_1, gen->text);
	if (bytes)
		asm_const(as, BPF_REG_2, bytes);
	asm_call(as, kernel ? BPF_FUNC_probe_read_kernel : read_helper(gen));
	asm_branch_imm(as, BPF_JEQ, BPF_REG_0, 0, fine);
	if (!kernel)
		drop_frame(gen);
	asm_jump(as, no);
	asm_place(as, fine);
}
