// SPDX-License-Identifier: Apache-2.0
#include "call/returns.h"

#include <capstone/capstone.h>
#include <elf.h>
#include <stdbool.h>

struct function {
	csh handle;
	uint64_t begin, end; /* addresses */
	struct returns *returns;
};

/* Takes a return; false: there are too many. */
static bool take_return(struct returns *returns, uint64_t address)
{
	if (returns->count == RETURNS_MAX)
		return false;
	returns->list[returns->count++] = address;
	return true;
}

static bool take_leave(struct returns *returns, uint64_t target)
{
	for (uint32_t i = 0; i < returns->leave_count; i++)
		if (returns->leaves[i] == target)
			return true;
	if (returns->leave_count == LEAVES_MAX)
		return false;
	returns->leaves[returns->leave_count++] = target;
	return true;
}

/* The target of a direct jump; false: it is not known. */
static bool jump_target(uint16_t machine, const cs_insn *insn, uint64_t *target)
{
	const cs_detail *detail = insn->detail;

	if (machine == EM_X86_64) {
		const cs_x86 *x86 = &detail->x86;

		if (x86->op_count != 1 || x86->operands[0].type != X86_OP_IMM)
			return false;
		*target = (uint64_t)x86->operands[0].imm;
		return true;
	}
	/* Of cbz and tbz it is the last operand. */
	if (!detail->arm64.op_count ||
	    detail->arm64.operands[detail->arm64.op_count - 1].type != ARM64_OP_IMM)
		return false;
	*target = (uint64_t)detail->arm64.operands[detail->arm64.op_count - 1].imm;
	return true;
}

/* False: the function may be left here in a way that no return shows. */
static bool look_at(struct function *function, uint16_t machine, const cs_insn *insn)
{
	uint64_t target;

	if (cs_insn_group(function->handle, insn, CS_GRP_RET) ||
	    (machine == EM_AARCH64 && insn->id == ARM64_INS_RET))
		return take_return(function->returns, insn->address);
	if (cs_insn_group(function->handle, insn, CS_GRP_IRET) ||
	    (machine == EM_AARCH64 && insn->id == ARM64_INS_BR))
		return false;
	if (!cs_insn_group(function->handle, insn, CS_GRP_JUMP))
		return true;
	if (!jump_target(machine, insn, &target))
		return false;
	if (target >= function->begin && target < function->end)
		return true;
	return take_leave(function->returns, target);
}

bool returns_add(struct returns *returns, uint16_t machine, const uint8_t *code, size_t bytes,
		 uint64_t address)
{
	struct function function = {.begin = address, .end = address + bytes, .returns = returns};
	bool arm = machine == EM_AARCH64, known = arm || machine == EM_X86_64;
	cs_insn *insn;

	if (!known || cs_open(arm ? CS_ARCH_ARM64 : CS_ARCH_X86,
			      arm ? CS_MODE_LITTLE_ENDIAN : CS_MODE_64, &function.handle))
		return false;
	cs_option(function.handle, CS_OPT_DETAIL, CS_OPT_ON);
	insn = cs_malloc(function.handle);
	known = insn;
	while (known && bytes)
		known = cs_disasm_iter(function.handle, &code, &bytes, &address, insn) &&
			look_at(&function, machine, insn);
	if (insn)
		cs_free(insn, 1);
	cs_close(&function.handle);
	return known;
}
