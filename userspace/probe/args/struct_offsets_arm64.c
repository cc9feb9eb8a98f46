// SPDX-License-Identifier: Apache-2.0
#include <elf.h>

#include "probe/args/struct_offsets_internal.h"

static unsigned arm64_number(arm64_reg reg)
{
	if (reg >= ARM64_REG_X0 && reg <= ARM64_REG_X28)
		return reg - ARM64_REG_X0;
	if (reg >= ARM64_REG_W0 && reg <= ARM64_REG_W30)
		return reg - ARM64_REG_W0;
	if (reg == ARM64_REG_X29)
		return 29;
	if (reg == ARM64_REG_X30)
		return 30;
	return reg == ARM64_REG_SP ? 31 : REGISTERS;
}
static const uint8_t arm64_scratch[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,
					10, 11, 12, 13, 14, 15, 16, 17, 18, 30};

static unsigned arm64_bytes(arm64_reg reg)
{
	return (reg >= ARM64_REG_W0 && reg <= ARM64_REG_W30) || reg == ARM64_REG_WZR ? 4 : 8;
}

static struct operand arm64_operand(const cs_arm64_op *op)
{
	struct operand place = {.reg = REGISTERS, .index = REGISTERS, .bytes = 8};

	if (op->type == ARM64_OP_REG) {
		place.kind = OPERAND_REGISTER;
		place.reg = arm64_number(op->reg);
		place.bytes = arm64_bytes(op->reg);
		if (op->reg == ARM64_REG_WZR || op->reg == ARM64_REG_XZR)
			place = (struct operand){.kind = OPERAND_NUMBER, .bytes = place.bytes};
	} else if (op->type == ARM64_OP_IMM) {
		place.kind = OPERAND_NUMBER;
		place.n = op->shift.type == ARM64_SFT_LSL
				  ? (int64_t)((uint64_t)op->imm << (op->shift.value & 63))
				  : op->imm;
	} else if (op->type == ARM64_OP_MEM && op->shift.type == ARM64_SFT_INVALID &&
		   op->ext == ARM64_EXT_INVALID) {
		place.kind = OPERAND_MEMORY;
		place.reg = arm64_number(op->mem.base);
		if (op->mem.index != ARM64_REG_INVALID)
			place.index = arm64_number(op->mem.index);
		place.n = op->mem.disp;
	}
	return place;
}

static bool arm64_is_store(unsigned id)
{
	return id == ARM64_INS_STR || id == ARM64_INS_STUR || id == ARM64_INS_STP ||
	       id == ARM64_INS_STRB || id == ARM64_INS_STRH || id == ARM64_INS_STURB ||
	       id == ARM64_INS_STURH;
}

/* Handles ldr, str and their pairs: `count` registers, then the memory operand. */
static void arm64_memory(struct offset_walk *walk, bool loads)
{
	const cs_arm64 *arm64 = &walk->insn->detail->arm64;
	unsigned id = walk->insn->id;
	unsigned count = id == ARM64_INS_LDP || id == ARM64_INS_STP ? 2 : 1;
	struct operand memory;

	if (arm64->op_count <= count || arm64->operands[count].type != ARM64_OP_MEM)
		return;
	memory = arm64_operand(&arm64->operands[count]);
	for (unsigned i = 0; i < count; i++) {
		struct operand reg = arm64_operand(&arm64->operands[i]);

		memory.bytes = reg.bytes;
		if (id == ARM64_INS_STRB || id == ARM64_INS_STURB)
			memory.bytes = 1;
		if (id == ARM64_INS_STRH || id == ARM64_INS_STURH)
			memory.bytes = 2;
		if (memory.kind == OPERAND_NONE)
			walk_set(walk, loads ? reg.reg : REGISTERS, value_nothing);
		else
			walk_move(walk, loads ? &reg : &memory, loads ? &memory : &reg);
		memory.n = (int64_t)((uint64_t)memory.n + reg.bytes);
	}
	if (arm64->writeback)
		walk_set(walk, memory.reg, value_nothing);
}

static void arm64_movk(struct offset_walk *walk)
{
	const cs_arm64_op *ops = walk->insn->detail->arm64.operands;
	unsigned reg = arm64_number(ops[0].reg), shift = ops[1].shift.value & 63;
	struct offset_value value = walk_get(walk, reg);

	if (value.known == KNOWN_NUMBER)
		value.n = (int64_t)(((uint64_t)value.n & ~(0xffffull << shift)) |
				    (uint64_t)ops[1].imm << shift);
	else
		value.known = KNOWN_NOTHING;
	walk_set(walk, reg, value);
}

static void arm64_sum(struct offset_walk *walk, bool minus)
{
	const cs_arm64 *arm64 = &walk->insn->detail->arm64;
	struct operand to = arm64_operand(&arm64->operands[0]);
	struct operand left = arm64_operand(&arm64->operands[1]);
	struct operand right = arm64_operand(&arm64->operands[2]);
	struct offset_value n = right.kind == OPERAND_NUMBER
					? (struct offset_value){KNOWN_NUMBER, right.n}
					: walk_get(walk, right.reg);
	bool plain = right.kind == OPERAND_NUMBER ||
		     (arm64->operands[2].shift.type == ARM64_SFT_INVALID &&
		      arm64->operands[2].ext == ARM64_EXT_INVALID);

	if (to.kind != OPERAND_REGISTER)
		return;
	if (arm64->op_count == 3 && plain && n.known == KNOWN_NUMBER && to.bytes == 8)
		walk_add(walk, to.reg, left.reg, minus ? (int64_t)(0 - (uint64_t)n.n) : n.n);
	else
		walk_set(walk, to.reg, value_nothing);
}

static bool arm64_compares(unsigned id)
{
	return id == ARM64_INS_CMP || id == ARM64_INS_CMN || id == ARM64_INS_CCMP ||
	       id == ARM64_INS_CCMN || id == ARM64_INS_TST;
}

static void arm64_other(struct offset_walk *walk)
{
	const cs_arm64 *arm64 = &walk->insn->detail->arm64;

	if (arm64_compares(walk->insn->id))
		return;
	/* Any other instruction writes its first operand; one for pairs writes the second one,
	 * too. */
	for (unsigned i = 0; i < arm64->op_count && i < 2; i++)
		if (arm64->operands[i].type == ARM64_OP_REG)
			walk_set(walk, arm64_number(arm64->operands[i].reg), value_nothing);
}

static void arm64_jump(struct offset_walk *walk)
{
	const cs_arm64 *arm64 = &walk->insn->detail->arm64;
	bool always = walk->insn->id == ARM64_INS_BR ||
		      (walk->insn->id == ARM64_INS_B &&
		       (arm64->cc == ARM64_CC_INVALID || arm64->cc == ARM64_CC_AL));

	if (arm64->op_count && arm64->operands[arm64->op_count - 1].type == ARM64_OP_IMM)
		walk_jump(walk, (uint64_t)arm64->operands[arm64->op_count - 1].imm);
	if (always)
		walk_leave(walk);
}

static void arm64_step(struct offset_walk *walk)
{
	const cs_arm64 *arm64 = &walk->insn->detail->arm64;
	struct operand to = arm64_operand(&arm64->operands[0]);
	struct operand from = arm64_operand(&arm64->operands[1]);
	unsigned id = walk->insn->id;

	switch (id) {
	case ARM64_INS_MOV:
	case ARM64_INS_MOVZ:
		walk_move(walk, &to, &from);
		break;
	case ARM64_INS_MOVK:
		arm64_movk(walk);
		break;
	case ARM64_INS_LDR:
	case ARM64_INS_LDUR:
	case ARM64_INS_LDP:
		arm64_memory(walk, true);
		break;
	case ARM64_INS_ADD:
	case ARM64_INS_SUB:
		arm64_sum(walk, id == ARM64_INS_SUB);
		break;
	case ARM64_INS_BL:
	case ARM64_INS_BLR:
		walk_forget(walk, arm64_scratch, sizeof(arm64_scratch));
		break;
	case ARM64_INS_RET:
	case ARM64_INS_BRK:
		walk_leave(walk);
		break;
	case ARM64_INS_B:
	case ARM64_INS_BR:
	case ARM64_INS_CBZ:
	case ARM64_INS_CBNZ:
	case ARM64_INS_TBZ:
	case ARM64_INS_TBNZ:
		arm64_jump(walk);
		break;
	default:
		if (arm64_is_store(id))
			arm64_memory(walk, false);
		else
			arm64_other(walk);
	}
}

const struct offset_machine offset_arm64 = {
	.machine = EM_AARCH64,
	.arch = CS_ARCH_ARM64,
	.mode = CS_MODE_ARM,
	.arguments = {0, 1},
	.step = arm64_step,
};
