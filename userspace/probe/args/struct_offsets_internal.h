/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by derive.c and its machine-specific parts. The walk visits a getter's code once, from
 * start to end, and tracks the known value of each register. At a jump it saves the state for the
 * jump's target, so that blocks may come in any order. Values that loops carry back are not
 * tracked.
 */
#ifndef WAFFLE_PROBE_ARGS_STRUCT_OFFSETS_INTERNAL_H
#define WAFFLE_PROBE_ARGS_STRUCT_OFFSETS_INTERNAL_H

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

struct offset_value {
	enum known known;
	int64_t n;
};

#define REGISTERS 32
#define SLOTS 16

/* A word on the stack, at a distance from the frame's base register. */
struct offset_slot {
	unsigned base;
	int64_t at;
	struct offset_value value;
};

struct offset_state {
	bool reached;
	struct offset_value registers[REGISTERS];
	struct offset_slot slots[SLOTS];
};

#define TARGETS 64

struct offset_walk {
	csh handle;
	cs_insn *insn;
	struct offset_state state;
	unsigned targets;
	struct {
		uint64_t address;
		struct offset_state state;
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
};

extern const struct offset_value value_nothing;

void walk_set(struct offset_walk *walk, unsigned reg, struct offset_value value);
struct offset_value walk_get(const struct offset_walk *walk, unsigned reg);
/* to = from, for any kinds of operands. */
void walk_move(struct offset_walk *walk, const struct operand *to, const struct operand *from);
/* For registers: to = from + n. */
void walk_add(struct offset_walk *walk, unsigned to, unsigned from, int64_t n);
/* Forgets the values of registers that a call does not preserve. */
void walk_forget(struct offset_walk *walk, const uint8_t *registers, size_t count);
/* A conditional or unconditional jump to an address; this instruction ends its block. */
void walk_jump(struct offset_walk *walk, uint64_t address);
void walk_leave(struct offset_walk *walk);

/* A machine: the registers of the two arguments, and the effect of an instruction. */
struct offset_machine {
	uint16_t machine;
	cs_arch arch;
	cs_mode mode;
	uint8_t arguments[2];
	void (*step)(struct offset_walk *walk);
};
extern const struct offset_machine offset_x86, offset_arm64;

#endif
