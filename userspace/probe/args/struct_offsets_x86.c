// SPDX-License-Identifier: Apache-2.0
#include <elf.h>

#include "probe/args/struct_offsets_internal.h"

static unsigned x86_number(x86_reg reg)
{
	static const x86_reg names[][4] = {
		{X86_REG_RAX, X86_REG_EAX, X86_REG_AX, X86_REG_AL},
		{X86_REG_RCX, X86_REG_ECX, X86_REG_CX, X86_REG_CL},
		{X86_REG_RDX, X86_REG_EDX, X86_REG_DX, X86_REG_DL},
		{X86_REG_RBX, X86_REG_EBX, X86_REG_BX, X86_REG_BL},
		{X86_REG_RSP, X86_REG_ESP, X86_REG_SP, X86_REG_SPL},
		{X86_REG_RBP, X86_REG_EBP, X86_REG_BP, X86_REG_BPL},
		{X86_REG_RSI, X86_REG_ESI, X86_REG_SI, X86_REG_SIL},
		{X86_REG_RDI, X86_REG_EDI, X86_REG_DI, X86_REG_DIL},
		{X86_REG_R8, X86_REG_R8D, X86_REG_R8W, X86_REG_R8B},
		{X86_REG_R9, X86_REG_R9D, X86_REG_R9W, X86_REG_R9B},
		{X86_REG_R10, X86_REG_R10D, X86_REG_R10W, X86_REG_R10B},
		{X86_REG_R11, X86_REG_R11D, X86_REG_R11W, X86_REG_R11B},
		{X86_REG_R12, X86_REG_R12D, X86_REG_R12W, X86_REG_R12B},
		{X86_REG_R13, X86_REG_R13D, X86_REG_R13W, X86_REG_R13B},
		{X86_REG_R14, X86_REG_R14D, X86_REG_R14W, X86_REG_R14B},
		{X86_REG_R15, X86_REG_R15D, X86_REG_R15W, X86_REG_R15B},
	};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		for (unsigned k = 0; k < 4; k++)
			if (names[i][k] == reg)
				return i;
	return REGISTERS;
}
enum { X86_NUMBER_SP = 4, X86_NUMBER_SI = 6, X86_NUMBER_DI = 7 };
static const uint8_t x86_scratch[] = {0, 1, 2, 6, 7, 8, 9, 10, 11};

static struct operand x86_operand(const cs_x86_op *op)
{
	struct operand place = {.reg = REGISTERS, .index = REGISTERS, .bytes = op->size};

	if (op->type == X86_OP_REG) {
		place.kind = OPERAND_REGISTER;
		place.reg = x86_number(op->reg);
	} else if (op->type == X86_OP_IMM) {
		place.kind = OPERAND_NUMBER;
		place.n = op->imm;
	} else if (op->type == X86_OP_MEM && op->mem.index == X86_REG_INVALID &&
		   op->mem.segment == X86_REG_INVALID) {
		place.kind = OPERAND_MEMORY;
		place.reg = x86_number(op->mem.base);
		place.n = op->mem.disp;
	}
	return place;
}

/* Forgets the registers that an unsupported instruction writes. */
static void x86_other(struct offset_walk *walk)
{
	const cs_x86 *x86 = &walk->insn->detail->x86;
	static const struct operand unknown = {.kind = OPERAND_NONE};
	cs_regs read, written;
	uint8_t reads, writes;

	for (unsigned i = 0; i < x86->op_count; i++) {
		struct operand place = x86_operand(&x86->operands[i]);

		if (walk->insn->id == X86_INS_TEST || walk->insn->id == X86_INS_CMP)
			return;
		if (place.kind == OPERAND_REGISTER)
			walk_set(walk, place.reg, value_nothing);
		else if (place.kind == OPERAND_MEMORY && !i && walk->insn->id != X86_INS_NOP)
			walk_move(walk, &place, &unknown);
	}
	if (cs_regs_access(walk->handle, walk->insn, read, &reads, written, &writes))
		return;
	for (unsigned i = 0; i < writes; i++)
		walk_set(walk, x86_number(written[i]), value_nothing);
}

static void x86_jump(struct offset_walk *walk)
{
	const cs_x86 *x86 = &walk->insn->detail->x86;

	if (x86->op_count == 1 && x86->operands[0].type == X86_OP_IMM)
		walk_jump(walk, (uint64_t)x86->operands[0].imm);
	if (walk->insn->id == X86_INS_JMP)
		walk_leave(walk);
}

static void x86_step(struct offset_walk *walk)
{
	const cs_x86 *x86 = &walk->insn->detail->x86;
	struct operand to = x86_operand(&x86->operands[0]);
	struct operand from = x86_operand(&x86->operands[1]);

	switch (walk->insn->id) {
	case X86_INS_MOV:
	case X86_INS_MOVABS:
		walk_move(walk, &to, &from);
		break;
	case X86_INS_LEA:
		if (from.kind == OPERAND_MEMORY)
			walk_add(walk, to.reg, from.reg, from.n);
		else
			walk_set(walk, to.reg, value_nothing);
		break;
	case X86_INS_ADD:
	case X86_INS_SUB:
		if (to.kind == OPERAND_REGISTER && from.kind == OPERAND_NUMBER && to.bytes == 8)
			walk_add(walk, to.reg, to.reg,
				 walk->insn->id == X86_INS_ADD ? from.n : -from.n);
		else
			x86_other(walk);
		break;
	case X86_INS_XOR:
		if (to.kind == OPERAND_REGISTER && from.kind == OPERAND_REGISTER &&
		    to.reg == from.reg)
			walk_set(walk, to.reg, (struct offset_value){KNOWN_NUMBER, 0});
		else
			x86_other(walk);
		break;
	case X86_INS_PUSH:
		walk_set(walk, X86_NUMBER_SP, value_nothing);
		break;
	case X86_INS_CALL:
		walk_forget(walk, x86_scratch, sizeof(x86_scratch));
		break;
	case X86_INS_RET:
	case X86_INS_UD2:
	case X86_INS_HLT:
		walk_leave(walk);
		break;
	default:
		if (cs_insn_group(walk->handle, walk->insn, X86_GRP_JUMP))
			x86_jump(walk);
		else
			x86_other(walk);
	}
}

const struct offset_machine offset_x86 = {
	.machine = EM_X86_64,
	.arch = CS_ARCH_X86,
	.mode = CS_MODE_64,
	.arguments = {X86_NUMBER_DI, X86_NUMBER_SI},
	.step = x86_step,
};
