/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locations of a C function's arguments at its entry, by the platform's calling convention: System
 * V for x86-64 (psABI 1.0, 3.2.3) and Arm's AAPCS64 (6.8.2). Registers are numbered by their word
 * in the machine's struct pt_regs.
 */
#ifndef WAFFLE_PROBE_ARGS_ABI_INTERNAL_H
#define WAFFLE_PROBE_ARGS_ABI_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "probe/spec/spec.h"

/* Indexes of words in struct pt_regs (arch/x86/include/asm/ptrace.h,
 * arch/arm64/include/uapi/asm/ptrace.h). */
enum abi_x86_register {
	X86_R15,
	X86_R14,
	X86_R13,
	X86_R12,
	X86_BP,
	X86_BX,
	X86_R11,
	X86_R10,
	X86_R9,
	X86_R8,
	X86_AX,
	X86_CX,
	X86_DX,
	X86_SI,
	X86_DI,
	X86_ORIG_AX,
	X86_IP,
	X86_CS,
	X86_FLAGS,
	X86_SP,
};
#define ARM64_SP 31
#define ARM64_PC 32

struct abi {
	uint16_t machine; /* e_machine */
	uint8_t registers[16];
	uint8_t register_count;
	uint8_t vectors; /* number of vector registers for arguments */
	uint8_t sp, ip;
	uint8_t returned;  /* holds a function's return value */
	uint8_t stack_at;  /* offset of the first stack argument from sp at the entry */
	bool spill_closes; /* after one struct went to the stack, no register is used any more */
	bool big_by_reference;     /* a struct of more than 16 bytes is passed by pointer */
	bool sret_is_first;        /* where to return one is in the first register of arguments */
	bool long_double_on_stack; /* otherwise in a vector register, like other floats */
};

/* NULL: the machine is not supported. */
const struct abi *abi_find(uint16_t machine);
/* The convention of Go functions, since Go 1.17: src/cmd/compile/abi-internal.md in its source. */
const struct abi *abi_find_go(uint16_t machine);

#define ABI_PIECES 3

/* The location of an argument, in pieces of one word: xyz has three, dim3 two, all others one. */
struct abi_place {
	uint8_t count;
	struct waffle_fetch pieces[ABI_PIECES]; /* each one a whole word */
};

/* Walks the parameters of a function in order. */
struct abi_walk {
	const struct abi *abi;
	uint8_t words, vectors; /* registers used so far */
	uint32_t stack;         /* bytes used so far */
};

struct abi_walk abi_walk_begin(const struct abi *abi);
struct abi_place abi_walk_next(struct abi_walk *walk, const struct call_type *type);

/* Fetches the value of a register. */
struct waffle_fetch abi_register(uint8_t reg);

#endif
