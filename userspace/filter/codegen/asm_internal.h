/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small assembler of BPF instructions. Labels may be placed after the jumps to them. The kernel
 * rejects programs with unreachable instructions, so the assembler drops instructions that no path
 * reaches, and jumps to the next instruction. The first error is kept, and assembler_finish()
 * returns it.
 */
#ifndef WAFFLE_FILTER_CODEGEN_ASM_INTERNAL_H
#define WAFFLE_FILTER_CODEGEN_ASM_INTERNAL_H

#include "filter/codegen/code.h"

struct asm_label {
	uint32_t at;   /* ASM_NOWHERE: not placed yet */
	uint32_t uses; /* number of jumps to it */
};
#define ASM_NOWHERE UINT32_MAX

struct asm_fixup {
	uint32_t insn, label;
};

struct assembler {
	struct filter_code *code; /* receives the instructions; owned by the caller */
	VEC(struct asm_label) labels;
	VEC(struct asm_fixup) fixups; /* in ascending order of instructions */
	uint32_t last_label;          /* position of the label placed last */
	bool dead;                    /* the current position is unreachable */
	int err;
};

/* Patches the jumps and frees everything but the code. Returns 0, -ENOMEM, or -E2BIG if a jump is
 * too far. */
int assembler_finish(struct assembler *as);

uint32_t asm_label(struct assembler *as);
void asm_place(struct assembler *as, uint32_t label);

void asm_insn(struct assembler *as, struct bpf_insn insn);
void asm_mov(struct assembler *as, unsigned dst, unsigned src);
/* Copies the low half, zero-extended. */
void asm_mov32(struct assembler *as, unsigned dst, unsigned src);
void asm_const(struct assembler *as, unsigned dst, uint64_t value);
void asm_alu(struct assembler *as, unsigned op, unsigned dst, unsigned src);
void asm_alu_imm(struct assembler *as, unsigned op, unsigned dst, int32_t imm);
/* `size` is BPF_B, BPF_H, BPF_W or BPF_DW. */
void asm_load(struct assembler *as, unsigned size, unsigned dst, unsigned src, int offset);
void asm_store(struct assembler *as, unsigned size, unsigned dst, int offset, unsigned src);
void asm_store_imm(struct assembler *as, unsigned size, unsigned dst, int offset, int32_t imm);
void asm_call(struct assembler *as, enum bpf_func_id helper);
void asm_exit(struct assembler *as);
/* Loads the fd of a map, or the address of a word in the table: `offset` bytes into it. */
void asm_map(struct assembler *as, unsigned dst, enum code_reloc_type type, uint32_t offset);

void asm_jump(struct assembler *as, uint32_t label);
void asm_branch(struct assembler *as, unsigned op, unsigned dst, unsigned src, uint32_t label);
void asm_branch_imm(struct assembler *as, unsigned op, unsigned dst, int32_t imm, uint32_t label);
/* Compares the low halves of registers. */
void asm_branch32_imm(struct assembler *as, unsigned op, unsigned dst, int32_t imm, uint32_t label);
/* Compares with any constant. If it does not fit in the instruction, `scratch` is overwritten with
 * it. */
void asm_branch_const(struct assembler *as, unsigned op, unsigned dst, uint64_t value,
		      unsigned scratch, uint32_t label);

#endif
