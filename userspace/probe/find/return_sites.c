// SPDX-License-Identifier: Apache-2.0
#include "probe/find/return_sites_internal.h"

#include <stdio.h>

#include <capstone/capstone.h>
#include <elf.h>
#include <stdbool.h>
#include <stdlib.h>

struct function {
	csh handle;
	uint16_t machine;
	uint64_t begin, end; /* start and end address */
	struct return_sites *returns;
	return_sites_stack_fn stack;
	void *arg;
	unsigned table; /* for how many more instructions a loaded table entry counts */
	unsigned sum;   /* register with the sum of an address and a table entry; 0: none */
	uint8_t *seen;  /* per byte: SEEN_* */
};

enum { SEEN_BEGIN = 1, SEEN_TARGET = 2 }; /* start of an instruction; target of a jump */

/* Adds a return. False: there are too many, or it cannot be one. */
static bool take_return(const struct function *function, uint64_t address)
{
	struct return_sites *returns = function->returns;

	if (function->stack(address, function->arg) == CFI_STACK_USED)
		return false;
	if (returns->count == RETURN_SITES_MAX)
		return false;
	returns->list[returns->count++] = address;
	return true;
}

static bool take_leave(struct return_sites *returns, uint64_t target)
{
	for (uint32_t i = 0; i < returns->leave_count; i++)
		if (returns->leaves[i] == target)
			return true;
	if (returns->leave_count == LEAVES_MAX)
		return false;
	returns->leaves[returns->leave_count++] = target;
	return true;
}

/* Target of a direct jump. False: it is unknown. */
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
	/* For cbz and tbz it is the last operand. */
	if (!detail->arm64.op_count ||
	    detail->arm64.operands[detail->arm64.op_count - 1].type != ARM64_OP_IMM)
		return false;
	*target = (uint64_t)detail->arm64.operands[detail->arm64.op_count - 1].imm;
	return true;
}

/* Compilers put few instructions between the load of a table entry and the jump. */
#define TABLE_DISTANCE 8

/* Prefix of a jump whose target needs no landing pad (endbr64), since the compiler knows all
 * targets. */
#define X86_NOTRACK 0x3e

/*
 * Recognises the code of a `switch`: a table entry, which is a distance, is added to an address. On
 * x86-64 these are movslq and add, on aarch64 the add of a shifted register. Such tables do not
 * hold pointers to functions.
 */
static void follow_table(struct function *function, const cs_insn *insn)
{
	const cs_x86 *x86 = &insn->detail->x86;
	const cs_arm64 *arm64 = &insn->detail->arm64;

	if (function->machine == EM_AARCH64) {
		bool sum = insn->id == ARM64_INS_ADD && arm64->op_count == 3 &&
			   arm64->operands[2].type == ARM64_OP_REG &&
			   arm64->operands[2].shift.value == 2;

		function->sum = sum ? arm64->operands[0].reg : 0;
		return;
	}
	if (function->table && !--function->table)
		function->sum = 0;
	if (insn->id == X86_INS_MOVSXD && x86->op_count == 2 &&
	    x86->operands[1].type == X86_OP_MEM && x86->operands[1].mem.index != X86_REG_INVALID &&
	    x86->operands[1].mem.scale == 4)
		function->table = TABLE_DISTANCE;
	else if (function->table && insn->id == X86_INS_ADD &&
		 x86->operands[0].type == X86_OP_REG && x86->operands[1].type == X86_OP_REG)
		function->sum = x86->operands[0].reg;
}

/* Whether an indirect jump stays in the function. */
static bool stays(const struct function *function, const cs_insn *insn)
{
	const cs_x86 *x86 = &insn->detail->x86;
	unsigned target;

	if (function->machine == EM_AARCH64) {
		target = insn->detail->arm64.operands[0].reg;
	} else {
		if (x86->prefix[1] == X86_NOTRACK)
			return true;
		target = x86->operands[0].type == X86_OP_REG ? x86->operands[0].reg : 0;
	}
	return (target && target == function->sum) ||
	       function->stack(insn->address, function->arg) == CFI_STACK_USED;
}

/* False: the function may be left here in a way that no return shows. */
static bool look_at(struct function *function, const cs_insn *insn)
{
	bool arm = function->machine == EM_AARCH64;
	uint64_t target;

	function->seen[insn->address - function->begin] |= SEEN_BEGIN;
	if (cs_insn_group(function->handle, insn, CS_GRP_RET) || (arm && insn->id == ARM64_INS_RET))
		return take_return(function, insn->address);
	if (cs_insn_group(function->handle, insn, CS_GRP_IRET))
		return false;
	if (!cs_insn_group(function->handle, insn, CS_GRP_JUMP) &&
	    !(arm && insn->id == ARM64_INS_BR)) {
		follow_table(function, insn);
		return true;
	}
	if (!jump_target(function->machine, insn, &target))
		return stays(function, insn);
	if (target >= function->begin && target < function->end) {
		function->seen[target - function->begin] |= SEEN_TARGET;
		return true;
	}
	return take_leave(function->returns, target);
}

/* Whether an instruction begins at every target of a jump. */
static bool targets_are_seen(const struct function *function)
{
	for (uint64_t at = 0; at < function->end - function->begin; at++)
		if (function->seen[at] == SEEN_TARGET)
			return false;
	return true;
}

/* Whether control continues after the last instruction. A call there does not return. */
static bool goes_on(const struct function *function, const cs_insn *insn)
{
	static const unsigned groups[] = {CS_GRP_RET, CS_GRP_JUMP, CS_GRP_CALL};
	static const unsigned x86[] = {X86_INS_UD2, X86_INS_HLT, X86_INS_INT3, X86_INS_NOP};
	static const unsigned arm64[] = {ARM64_INS_RET, ARM64_INS_BR,  ARM64_INS_B,  ARM64_INS_BL,
					 ARM64_INS_BLR, ARM64_INS_BRK, ARM64_INS_NOP};
	bool arm = function->machine == EM_AARCH64;
	const unsigned *stops = arm ? arm64 : x86;
	size_t count = arm ? sizeof(arm64) / sizeof(*arm64) : sizeof(x86) / sizeof(*x86);

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		if (cs_insn_group(function->handle, insn, groups[i]))
			return false;
	for (size_t i = 0; i < count; i++)
		if (insn->id == stops[i])
			return false;
	return true;
}

static bool decode(struct function *function, const uint8_t *code)
{
	bool arm = function->machine == EM_AARCH64, known = true;
	size_t bytes = function->end - function->begin;
	uint64_t address = function->begin;
	cs_insn *insn;

	if (cs_open(arm ? CS_ARCH_ARM64 : CS_ARCH_X86, arm ? CS_MODE_LITTLE_ENDIAN : CS_MODE_64,
		    &function->handle))
		return false;
	cs_option(function->handle, CS_OPT_DETAIL, CS_OPT_ON);
	insn = cs_malloc(function->handle);
	while (known && insn && bytes)
		known = cs_disasm_iter(function->handle, &code, &bytes, &address, insn) &&
			look_at(function, insn);
	known = known && insn && targets_are_seen(function) &&
		(!goes_on(function, insn) || take_leave(function->returns, function->end));
	if (insn)
		cs_free(insn, 1);
	cs_close(&function->handle);
	return known;
}

bool return_sites_add(struct return_sites *returns, uint16_t machine, const uint8_t *code,
		      size_t bytes, uint64_t address, return_sites_stack_fn stack, void *arg)
{
	struct function function = {.machine = machine,
				    .begin = address,
				    .end = address + bytes,
				    .returns = returns,
				    .stack = stack,
				    .arg = arg};
	bool known = false;

	if (machine != EM_AARCH64 && machine != EM_X86_64)
		return false;
	function.seen = calloc(bytes, sizeof(*function.seen));
	if (function.seen)
		known = decode(&function, code);
	free(function.seen);
	return known;
}

bool return_probe_is_safe(const char *release)
{
#ifdef __x86_64__
	unsigned major, minor;

	return sscanf(release, "%u.%u", &major, &minor) != 2 || major != 6 || minor < 11 ||
	       minor > 13;
#else
	(void)release;
	return true;
#endif
}
