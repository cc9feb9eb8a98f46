/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by derive.c and its machine-specific parts. The walk visits a getter's code once, from
 * start to end, and tracks the known value of each register. At a jump it saves the state for the
 * jump's target, so that blocks may come in any order. Values that loops carry back are not
 * tracked.
 */
#ifndef WAFFLE_CALL_DERIVE_WALK_H
#define WAFFLE_CALL_DERIVE_WALK_H

#include <capstone/capstone.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum known {
	KNOWN_NOTHING,
	KNOWN_NUMBER,
	KNOWN_OBJECT, /* the first argument plus n */
	KNOWN_OUT,    /* the second argument plus n */
	KNOWN_FIELD,  /* 32 bits loaded from offset n of the first argument */
};

struct value {
	enum known known;
	int64_t n;
};

#define REGISTERS 32
#define SLOTS 16

/* A word on the stack, at a distance from the frame's base register. */
struct slot {
	unsigned base;
	int64_t at;
	struct value value;
};

struct state {
	bool reached;
	struct value registers[REGISTERS];
	struct slot slots[SLOTS];
};

#define TARGETS 64

struct walk {
	csh handle;
	cs_insn *insn;
	struct state state;
	unsigned targets;
	struct {
		uint64_t address;
		struct state state;
	} target[TARGETS];
	bool found, differs;
	int64_t offset;
};

/* An operand, for either machine. */
struct operand {
	enum { OPERAND_NONE, OPERAND_REGISTER, OPERAND_NUMBER, OPERAND_MEMORY } kind;
	unsigned reg, index; /* numbers of registers; REGISTERS: none, or another register */
	unsigned bytes;
	int64_t n; /* immediate or displacement */
	bool writes_base;
};

extern const struct value value_nothing;

void walk_set(struct walk *walk, unsigned reg, struct value value);
struct value walk_get(const struct walk *walk, unsigned reg);
/* to = from, for any kinds of operands. */
void walk_move(struct walk *walk, const struct operand *to, const struct operand *from);
/* For registers: to = from + n. */
void walk_add(struct walk *walk, unsigned to, unsigned from, int64_t n);
/* Forgets the values of registers that a call does not preserve. */
void walk_forget(struct walk *walk, const uint8_t *registers, size_t count);
/* A conditional or unconditional jump to an address; this instruction ends its block. */
void walk_jump(struct walk *walk, uint64_t address);
void walk_leave(struct walk *walk);

/* A machine: the registers of the two arguments, and the effect of an instruction. */
struct derive_machine {
	uint16_t machine;
	cs_arch arch;
	cs_mode mode;
	uint8_t arguments[2];
	void (*step)(struct walk *walk);
};
extern const struct derive_machine derive_x86, derive_arm64;

#endif
