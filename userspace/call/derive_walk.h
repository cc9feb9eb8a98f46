/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between derive.c and what it knows of machines. A getter's code is walked once from its begin to
 * its end, with what is known of each register. What holds at a jump is kept for its target, so
 * that blocks in any order are understood; of what loops bring nothing is.
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
	KNOWN_OBJECT, /* the first argument, plus n */
	KNOWN_OUT,    /* the second argument, plus n */
	KNOWN_FIELD,  /* 32 bits read at n from the first argument */
};

struct value {
	enum known known;
	int64_t n;
};

#define REGISTERS 32
#define SLOTS 16

/* A word on the stack, by its distance from the frame's register. */
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

/* What an operand is, on either machine. */
struct operand {
	enum { OPERAND_NONE, OPERAND_REGISTER, OPERAND_NUMBER, OPERAND_MEMORY } kind;
	unsigned reg, index; /* numbers of registers; REGISTERS: another one, or none */
	unsigned bytes;
	int64_t n; /* immediate, displacement */
	bool writes_base;
};

extern const struct value value_nothing;

void walk_set(struct walk *walk, unsigned reg, struct value value);
struct value walk_get(const struct walk *walk, unsigned reg);
/* to = from, whatever they are. */
void walk_move(struct walk *walk, const struct operand *to, const struct operand *from);
/* Registers: to = from + n */
void walk_add(struct walk *walk, unsigned to, unsigned from, int64_t n);
/* Registers that a call does not keep. */
void walk_forget(struct walk *walk, const uint8_t *registers, size_t count);
/* A jump to an address that may be taken, and that this is the last instruction of its block. */
void walk_jump(struct walk *walk, uint64_t address);
void walk_leave(struct walk *walk);

/* A machine: which registers have the two arguments, and what an instruction does. */
struct derive_machine {
	uint16_t machine;
	cs_arch arch;
	cs_mode mode;
	uint8_t arguments[2];
	void (*step)(struct walk *walk);
};
extern const struct derive_machine derive_x86, derive_arm64;

#endif
