/* SPDX-License-Identifier: Apache-2.0 */
/* Shows the programs of a filter as text, for tests of the code generator. */
#ifndef WAFFLE_TESTS_DISASM_H
#define WAFFLE_TESTS_DISASM_H

#include <stdio.h>

#include "filter/codegen/codegen.h"

#define DISASM_TEXT 96

static inline const char *alu_op(unsigned op)
{
	static const char *const ops[16] = {
		[BPF_ADD >> 4] = "+=",  [BPF_SUB >> 4] = "-=",  [BPF_MUL >> 4] = "*=",
		[BPF_DIV >> 4] = "/=",  [BPF_OR >> 4] = "|=",   [BPF_AND >> 4] = "&=",
		[BPF_LSH >> 4] = "<<=", [BPF_RSH >> 4] = ">>=", [BPF_MOD >> 4] = "%=",
		[BPF_XOR >> 4] = "^=",  [BPF_MOV >> 4] = "=",   [BPF_ARSH >> 4] = "s>>=",
	};

	return ops[op >> 4];
}

static inline const char *jump_op(unsigned op)
{
	static const char *const ops[16] = {
		[BPF_JEQ >> 4] = "==",   [BPF_JGT >> 4] = ">",    [BPF_JGE >> 4] = ">=",
		[BPF_JSET >> 4] = "&",   [BPF_JNE >> 4] = "!=",   [BPF_JSGT >> 4] = "s>",
		[BPF_JSGE >> 4] = "s>=", [BPF_JLT >> 4] = "<",    [BPF_JLE >> 4] = "<=",
		[BPF_JSLT >> 4] = "s<",  [BPF_JSLE >> 4] = "s<=",
	};

	return ops[op >> 4];
}

static inline const char *size_name(unsigned code)
{
	switch (BPF_SIZE(code)) {
	case BPF_B:
		return "u8";
	case BPF_H:
		return "u16";
	case BPF_W:
		return "u32";
	default:
		return "u64";
	}
}

static inline const char *helper_name(int helper)
{
	switch (helper) {
	case BPF_FUNC_map_lookup_elem:
		return "bpf_map_lookup_elem";
	case BPF_FUNC_get_smp_processor_id:
		return "bpf_get_smp_processor_id";
	case BPF_FUNC_tail_call:
		return "bpf_tail_call";
	case BPF_FUNC_get_current_pid_tgid:
		return "bpf_get_current_pid_tgid";
	case BPF_FUNC_get_current_comm:
		return "bpf_get_current_comm";
	case BPF_FUNC_probe_read_user:
		return "bpf_probe_read_user";
	case BPF_FUNC_probe_read_kernel:
		return "bpf_probe_read_kernel";
	case BPF_FUNC_get_current_task_btf:
		return "bpf_get_current_task_btf";
	case BPF_FUNC_task_storage_get:
		return "bpf_task_storage_get";
	default:
		return "bpf_unspec";
	}
}

static inline const char *map_name(const struct filter_code *code, uint32_t insn)
{
	static const char *const names[] = {
		[CODE_RELOC_OPEN] = "open",   [CODE_RELOC_DEFERRED] = "deferred",
		[CODE_RELOC_NEXT] = "next",   [CODE_RELOC_CALLS] = "calls",
		[CODE_RELOC_TABLE] = "table",
	};

	for (size_t i = 0; i < code->relocs.len; i++)
		if (code->relocs.data[i].insn == insn)
			return names[code->relocs.data[i].type];
	return NULL;
}

static inline unsigned disasm_pair(char text[DISASM_TEXT], const struct filter_code *code,
				   uint32_t index)
{
	const struct bpf_insn *insn = &code->insns.data[index];
	uint32_t high = index + 1 < code->insns.len ? (uint32_t)insn[1].imm : 0;
	const char *map = map_name(code, index);

	if (map && insn->src_reg == BPF_PSEUDO_MAP_VALUE)
		snprintf(text, DISASM_TEXT, "r%u = map[%s][0]+%u", insn->dst_reg, map, high);
	else if (map)
		snprintf(text, DISASM_TEXT, "r%u = map[%s]", insn->dst_reg, map);
	else
		snprintf(text, DISASM_TEXT, "r%u = 0x%llx", insn->dst_reg,
			 (unsigned long long)high << 32 | (uint32_t)insn->imm);
	return 2;
}

static inline void disasm_alu(char text[DISASM_TEXT], const struct bpf_insn *insn)
{
	char reg = BPF_CLASS(insn->code) == BPF_ALU64 ? 'r' : 'w';
	unsigned op = BPF_OP(insn->code);

	if (op == BPF_NEG)
		snprintf(text, DISASM_TEXT, "%c%u = -%c%u", reg, insn->dst_reg, reg, insn->dst_reg);
	else if (BPF_SRC(insn->code) == BPF_X)
		snprintf(text, DISASM_TEXT, "%c%u %s %c%u", reg, insn->dst_reg, alu_op(op), reg,
			 insn->src_reg);
	else
		snprintf(text, DISASM_TEXT, "%c%u %s %d", reg, insn->dst_reg, alu_op(op),
			 insn->imm);
}

static inline void disasm_jump(char text[DISASM_TEXT], const struct bpf_insn *insn)
{
	char reg = BPF_CLASS(insn->code) == BPF_JMP ? 'r' : 'w';
	unsigned op = BPF_OP(insn->code);

	if (op == BPF_EXIT)
		snprintf(text, DISASM_TEXT, "exit");
	else if (op == BPF_CALL)
		snprintf(text, DISASM_TEXT, "call %s#%d", helper_name(insn->imm), insn->imm);
	else if (op == BPF_JA)
		snprintf(text, DISASM_TEXT, "goto pc%+d", insn->off);
	else if (BPF_SRC(insn->code) == BPF_X)
		snprintf(text, DISASM_TEXT, "if %c%u %s %c%u goto pc%+d", reg, insn->dst_reg,
			 jump_op(op), reg, insn->src_reg, insn->off);
	else
		snprintf(text, DISASM_TEXT, "if %c%u %s 0x%x goto pc%+d", reg, insn->dst_reg,
			 jump_op(op), (uint32_t)insn->imm, insn->off);
}

/* Formats an instruction as bpftool does, "r1 = *(u64 *)(r6 +96)". Returns the number of
 * instructions used (2 for a BPF_LD_IMM64). */
static inline unsigned disasm(char text[DISASM_TEXT], const struct filter_code *code, uint32_t insn)
{
	const struct bpf_insn *at = &code->insns.data[insn];

	switch (BPF_CLASS(at->code)) {
	case BPF_LD:
		return disasm_pair(text, code, insn);
	case BPF_LDX:
		snprintf(text, DISASM_TEXT, "r%u = *(%s *)(r%u %+d)", at->dst_reg,
			 size_name(at->code), at->src_reg, at->off);
		return 1;
	case BPF_ST:
		snprintf(text, DISASM_TEXT, "*(%s *)(r%u %+d) = %d", size_name(at->code),
			 at->dst_reg, at->off, at->imm);
		return 1;
	case BPF_STX:
		snprintf(text, DISASM_TEXT, "*(%s *)(r%u %+d) = r%u", size_name(at->code),
			 at->dst_reg, at->off, at->src_reg);
		return 1;
	case BPF_ALU:
	case BPF_ALU64:
		disasm_alu(text, at);
		return 1;
	default:
		disasm_jump(text, at);
		return 1;
	}
}

#endif
