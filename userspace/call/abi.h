/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the arguments of a C function are when it is entered, by the platform's rules for calls:
 * System V's of x86-64 (psABI 1.0, 3.2.3) and Arm's AAPCS64 (6.8.2). Registers are numbered as the
 * words of the machine's struct pt_regs.
 */
#ifndef WAFFLE_CALL_ABI_H
#define WAFFLE_CALL_ABI_H

#include <stdbool.h>
#include <stdint.h>

#include "call/spec.h"

/* Words of struct pt_regs (arch/x86/include/asm/ptrace.h, arch/arm64/include/uapi/asm/ptrace.h). */
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
	uint8_t vectors; /* that arguments are passed in */
	uint8_t sp, ip;
	uint8_t returned;      /* a function's value */
	uint8_t stack_at;      /* of the first argument on the stack, from sp at the entry */
	bool spill_closes;     /* once a struct went to the stack, no register is used any more */
	bool big_by_reference; /* structs of more than 16 bytes are a pointer to them */
	bool long_double_on_stack; /* else in a vector register as all floating-point values */
};

/* NULL: a machine whose rules are not known here. */
const struct abi *abi_find(uint16_t machine);
/* The same of Go's functions, from Go 1.17 on: src/cmd/compile/abi-internal.md of its source. */
const struct abi *abi_find_go(uint16_t machine);

#define ABI_PIECES 3

/* Where an argument is, in pieces of a word each: xyz has three, dim3 two, all others one. */
struct abi_place {
	uint8_t count;
	struct waffle_fetch pieces[ABI_PIECES]; /* all of them whole words */
};

/* Walks the parameters of a function in order. */
struct abi_walk {
	const struct abi *abi;
	uint8_t words, vectors; /* used so far */
	uint32_t stack;         /* bytes */
};

struct abi_walk abi_walk_begin(const struct abi *abi);
struct abi_place abi_walk_next(struct abi_walk *walk, const struct call_type *type);

/* The value of a register. */
struct waffle_fetch abi_register(uint8_t reg);

#endif
