// SPDX-License-Identifier: Apache-2.0
#include "filter/codegen/asm_internal.h"

#include <errno.h>

static bool fits(uint64_t value)
{
	return (uint64_t)(int64_t)(int32_t)(uint32_t)value == value;
}

static bool is_jump(const struct bpf_insn *insn)
{
	return insn->code == (BPF_JMP | BPF_JA);
}

/* The negated comparison; 0: there is none. */
static unsigned op_inverse(unsigned op)
{
	static const unsigned char inverse[] = {
		[BPF_JEQ >> 4] = BPF_JNE,   [BPF_JNE >> 4] = BPF_JEQ,   [BPF_JGT >> 4] = BPF_JLE,
		[BPF_JLE >> 4] = BPF_JGT,   [BPF_JGE >> 4] = BPF_JLT,   [BPF_JLT >> 4] = BPF_JGE,
		[BPF_JSGT >> 4] = BPF_JSLE, [BPF_JSLE >> 4] = BPF_JSGT, [BPF_JSGE >> 4] = BPF_JSLT,
		[BPF_JSLT >> 4] = BPF_JSGE,
	};

	return op >> 4 < sizeof(inverse) ? inverse[op >> 4] : 0;
}

uint32_t asm_label(struct assembler *as)
{
	struct asm_label label = {.at = ASM_NOWHERE};

	if (!vec_push(&as->labels, label)) {
		as->err = -ENOMEM;
		return 0;
	}
	return (uint32_t)as->labels.len - 1;
}

/* Removes the last instruction, which is a jump. */
static void drop_jump(struct assembler *as)
{
	uint32_t end = (uint32_t)as->code->insns.len--;

	as->labels.data[as->fixups.data[--as->fixups.len].label].uses--;
	as->dead = false;
	if (as->last_label != end)
		return;
	as->last_label = end - 1;
	for (size_t i = 0; i < as->labels.len; i++)
		if (as->labels.data[i].at == end)
			as->labels.data[i].at = end - 1;
}

/* Turns "if x goto label; goto other; label:" into "if not x goto other". */
static bool turn_branch(struct assembler *as, uint32_t label)
{
	size_t len = as->code->insns.len, fixups = as->fixups.len;
	struct asm_fixup *branch, *jump;
	struct bpf_insn *insn;
	unsigned inverse;

	if (len < 2 || fixups < 2 || as->last_label >= len - 1)
		return false;
	insn = &as->code->insns.data[len - 2];
	branch = &as->fixups.data[fixups - 2];
	jump = &as->fixups.data[fixups - 1];
	if (branch->insn != len - 2 || branch->label != label || jump->insn != len - 1 ||
	    !is_jump(insn + 1))
		return false;
	inverse = op_inverse(BPF_OP(insn->code));
	if (!inverse || is_jump(insn))
		return false;
	insn->code = (unsigned char)((insn->code & ~0xf0u) | inverse);
	as->labels.data[label].uses--;
	as->labels.data[jump->label].uses++;
	branch->label = jump->label;
	drop_jump(as);
	return true;
}

static bool ends_with_jump_to(const struct assembler *as, uint32_t label)
{
	size_t len = as->code->insns.len;
	const struct asm_fixup *last;

	if (!as->fixups.len)
		return false;
	last = &as->fixups.data[as->fixups.len - 1];
	return last->insn == len - 1 && last->label == label &&
	       is_jump(&as->code->insns.data[len - 1]);
}

void asm_place(struct assembler *as, uint32_t label)
{
	if (as->err)
		return;
	if (!ends_with_jump_to(as, label))
		turn_branch(as, label);
	while (ends_with_jump_to(as, label))
		drop_jump(as);
	as->labels.data[label].at = as->last_label = (uint32_t)as->code->insns.len;
	if (as->labels.data[label].uses)
		as->dead = false;
}

void asm_insn(struct assembler *as, struct bpf_insn insn)
{
	if (as->err || as->dead)
		return;
	if (!vec_push(&as->code->insns, insn))
		as->err = -ENOMEM;
}

void asm_mov(struct assembler *as, unsigned dst, unsigned src)
{
	asm_alu(as, BPF_MOV, dst, src);
}

void asm_mov32(struct assembler *as, unsigned dst, unsigned src)
{
	asm_insn(as, (struct bpf_insn){.code = BPF_ALU | BPF_MOV | BPF_X,
				       .dst_reg = dst & 15,
				       .src_reg = src & 15});
}

static void asm_const_pair(struct assembler *as, unsigned dst, unsigned src, uint64_t value)
{
	asm_insn(as, (struct bpf_insn){.code = BPF_LD | BPF_IMM | BPF_DW,
				       .dst_reg = dst & 15,
				       .src_reg = src & 15,
				       .imm = (int32_t)(uint32_t)value});
	asm_insn(as, (struct bpf_insn){.imm = (int32_t)(value >> 32)});
}

void asm_const(struct assembler *as, unsigned dst, uint64_t value)
{
	if (fits(value))
		asm_alu_imm(as, BPF_MOV, dst, (int32_t)(uint32_t)value);
	else
		asm_const_pair(as, dst, 0, value);
}

void asm_alu(struct assembler *as, unsigned op, unsigned dst, unsigned src)
{
	asm_insn(as, (struct bpf_insn){.code = (unsigned char)(BPF_ALU64 | op | BPF_X),
				       .dst_reg = dst & 15,
				       .src_reg = src & 15});
}

void asm_alu_imm(struct assembler *as, unsigned op, unsigned dst, int32_t imm)
{
	asm_insn(as, (struct bpf_insn){.code = (unsigned char)(BPF_ALU64 | op | BPF_K),
				       .dst_reg = dst & 15,
				       .imm = imm});
}

void asm_load(struct assembler *as, unsigned size, unsigned dst, unsigned src, int offset)
{
	asm_insn(as, (struct bpf_insn){.code = (unsigned char)(BPF_LDX | BPF_MEM | size),
				       .dst_reg = dst & 15,
				       .src_reg = src & 15,
				       .off = (int16_t)offset});
}

void asm_store(struct assembler *as, unsigned size, unsigned dst, int offset, unsigned src)
{
	asm_insn(as, (struct bpf_insn){.code = (unsigned char)(BPF_STX | BPF_MEM | size),
				       .dst_reg = dst & 15,
				       .src_reg = src & 15,
				       .off = (int16_t)offset});
}

void asm_store_imm(struct assembler *as, unsigned size, unsigned dst, int offset, int32_t imm)
{
	asm_insn(as, (struct bpf_insn){.code = (unsigned char)(BPF_ST | BPF_MEM | size),
				       .dst_reg = dst & 15,
				       .off = (int16_t)offset,
				       .imm = imm});
}

void asm_call(struct assembler *as, enum bpf_func_id helper)
{
	asm_insn(as, (struct bpf_insn){.code = BPF_JMP | BPF_CALL, .imm = (int32_t)helper});
}

void asm_exit(struct assembler *as)
{
	asm_insn(as, (struct bpf_insn){.code = BPF_JMP | BPF_EXIT});
	as->dead = true;
}

void asm_map(struct assembler *as, unsigned dst, enum code_reloc_type type, uint32_t offset)
{
	struct code_reloc reloc = {.insn = (uint32_t)as->code->insns.len, .type = type};
	unsigned src = type == CODE_RELOC_TABLE ? BPF_PSEUDO_MAP_VALUE : BPF_PSEUDO_MAP_FD;

	if (as->err || as->dead)
		return;
	if (!vec_push(&as->code->relocs, reloc))
		as->err = -ENOMEM;
	asm_const_pair(as, dst, src, (uint64_t)offset << 32);
}

static void asm_jump_insn(struct assembler *as, struct bpf_insn insn, uint32_t label)
{
	struct asm_fixup fixup = {.insn = (uint32_t)as->code->insns.len, .label = label};

	if (as->err || as->dead)
		return;
	if (!vec_push(&as->fixups, fixup))
		as->err = -ENOMEM;
	asm_insn(as, insn);
	if (!as->err)
		as->labels.data[label].uses++;
}

void asm_jump(struct assembler *as, uint32_t label)
{
	asm_jump_insn(as, (struct bpf_insn){.code = BPF_JMP | BPF_JA}, label);
	as->dead = true;
}

void asm_branch(struct assembler *as, unsigned op, unsigned dst, unsigned src, uint32_t label)
{
	asm_jump_insn(as,
		      (struct bpf_insn){.code = (unsigned char)(BPF_JMP | op | BPF_X),
					.dst_reg = dst & 15,
					.src_reg = src & 15},
		      label);
}

void asm_branch_imm(struct assembler *as, unsigned op, unsigned dst, int32_t imm, uint32_t label)
{
	asm_jump_insn(as,
		      (struct bpf_insn){.code = (unsigned char)(BPF_JMP | op | BPF_K),
					.dst_reg = dst & 15,
					.imm = imm},
		      label);
}

void asm_branch32_imm(struct assembler *as, unsigned op, unsigned dst, int32_t imm, uint32_t label)
{
	asm_jump_insn(as,
		      (struct bpf_insn){.code = (unsigned char)(BPF_JMP32 | op | BPF_K),
					.dst_reg = dst & 15,
					.imm = imm},
		      label);
}

void asm_branch_const(struct assembler *as, unsigned op, unsigned dst, uint64_t value,
		      unsigned scratch, uint32_t label)
{
	if (fits(value)) {
		asm_branch_imm(as, op, dst, (int32_t)(uint32_t)value, label);
		return;
	}
	asm_const(as, scratch, value);
	asm_branch(as, op, dst, scratch, label);
}

int assembler_finish(struct assembler *as)
{
	for (size_t i = 0; !as->err && i < as->fixups.len; i++) {
		struct asm_fixup fixup = as->fixups.data[i];
		int64_t offset = (int64_t)as->labels.data[fixup.label].at - (int64_t)fixup.insn - 1;

		if (offset != (int16_t)offset)
			as->err = -E2BIG;
		as->code->insns.data[fixup.insn].off = (int16_t)offset;
	}
	vec_free(&as->labels);
	vec_free(&as->fixups);
	return as->err;
}
