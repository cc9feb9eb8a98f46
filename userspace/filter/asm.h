/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small assembler of BPF instructions: labels that may be placed after they are jumped to, and no
 * instruction that can't be reached, since the kernel refuses a program that has one. What is
 * emitted where nothing leads to is left out; a jump to the next instruction too. An error stays
 * and is told once, by assembler_finish().
 */
#ifndef WAFFLE_FILTER_ASM_H
#define WAFFLE_FILTER_ASM_H

#include "filter/codegen.h"

struct asm_label {
	uint32_t at;   /* ASM_NOWHERE: not placed yet */
	uint32_t uses; /* jumps to it */
};
#define ASM_NOWHERE UINT32_MAX

struct asm_fixup {
	uint32_t insn, label;
};

struct assembler {
	struct filter_code *code; /* receives the instructions; belongs to the caller */
	VEC(struct asm_label) labels;
	VEC(struct asm_fixup) fixups; /* by instruction, ascending */
	uint32_t last_label;          /* where one was placed last */
	bool dead;                    /* nothing leads here */
	int err;
};

/* Patches the jumps and frees all but the code. 0, -ENOMEM or -E2BIG: a jump is too far. */
int assembler_finish(struct assembler *as);

uint32_t asm_label(struct assembler *as);
void asm_place(struct assembler *as, uint32_t label);

void asm_insn(struct assembler *as, struct bpf_insn insn);
void asm_mov(struct assembler *as, unsigned dst, unsigned src);
void asm_mov32(struct assembler *as, unsigned dst, unsigned src); /* the low half, zero-extended */
void asm_const(struct assembler *as, unsigned dst, uint64_t value);
void asm_alu(struct assembler *as, unsigned op, unsigned dst, unsigned src);
void asm_alu_imm(struct assembler *as, unsigned op, unsigned dst, int32_t imm);
/* `size` is BPF_B, BPF_H, BPF_W or BPF_DW. */
void asm_load(struct assembler *as, unsigned size, unsigned dst, unsigned src, int offset);
void asm_store(struct assembler *as, unsigned size, unsigned dst, int offset, unsigned src);
void asm_store_imm(struct assembler *as, unsigned size, unsigned dst, int offset, int32_t imm);
void asm_call(struct assembler *as, enum bpf_func_id helper);
void asm_exit(struct assembler *as);
/* A map, or a place in the table: `offset` bytes into it. */
void asm_map(struct assembler *as, unsigned dst, enum code_reloc_type type, uint32_t offset);

void asm_jump(struct assembler *as, uint32_t label);
void asm_branch(struct assembler *as, unsigned op, unsigned dst, unsigned src, uint32_t label);
void asm_branch_imm(struct assembler *as, unsigned op, unsigned dst, int32_t imm, uint32_t label);
/* Compares the low halves. */
void asm_branch32_imm(struct assembler *as, unsigned op, unsigned dst, int32_t imm, uint32_t label);
/* Compares with any constant; `scratch` holds it if it does not fit in the instruction. */
void asm_branch_const(struct assembler *as, unsigned op, unsigned dst, uint64_t value,
		      unsigned scratch, uint32_t label);

#endif
