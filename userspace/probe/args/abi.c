// SPDX-License-Identifier: Apache-2.0
#include "probe/args/abi_internal.h"

#include <elf.h>

static const struct abi abis[] = {
	{
		.machine = EM_X86_64,
		.registers = {X86_DI, X86_SI, X86_DX, X86_CX, X86_R8, X86_R9},
		.register_count = 6,
		.vectors = 8,
		.sp = X86_SP,
		.ip = X86_IP,
		.returned = X86_AX,
		.stack_at = 8, /* after the return address */
		.long_double_on_stack = true,
		.sret_is_first = true,
	},
	{
		.machine = EM_AARCH64,
		.registers = {0, 1, 2, 3, 4, 5, 6, 7},
		.register_count = 8,
		.vectors = 8,
		.sp = ARM64_SP,
		.ip = ARM64_PC,
		.returned = 0,
		.spill_closes = true,
		.big_by_reference = true,
	},
};

static const struct abi go_abis[] = {
	{
		.machine = EM_X86_64,
		.registers = {X86_AX, X86_BX, X86_CX, X86_DI, X86_SI, X86_R8, X86_R9, X86_R10,
			      X86_R11},
		.register_count = 9,
		.vectors = 15,
		.sp = X86_SP,
		.ip = X86_IP,
		.returned = X86_AX,
		.stack_at = 8,
	},
	{
		.machine = EM_AARCH64,
		.registers = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
		.register_count = 16,
		.vectors = 16,
		.sp = ARM64_SP,
		.ip = ARM64_PC,
		.returned = 0,
		.stack_at = 8,
	},
};

#define WORD 8

static const struct abi *find_in(const struct abi *list, size_t count, uint16_t machine)
{
	for (size_t i = 0; i < count; i++)
		if (list[i].machine == machine)
			return &list[i];
	return NULL;
}

const struct abi *abi_find(uint16_t machine)
{
	return find_in(abis, sizeof(abis) / sizeof(abis[0]), machine);
}

const struct abi *abi_find_go(uint16_t machine)
{
	return find_in(go_abis, sizeof(go_abis) / sizeof(go_abis[0]), machine);
}

struct abi_walk abi_walk_begin(const struct abi *abi)
{
	return (struct abi_walk){.abi = abi};
}

struct waffle_fetch abi_register(uint8_t reg)
{
	return (struct waffle_fetch){.from = WAFFLE_FETCH_REGISTER,
				     .format = WAFFLE_FORMAT_WORD,
				     .reg = reg,
				     .bytes = 8};
}

static struct waffle_fetch from_stack(const struct abi *abi, uint32_t at)
{
	struct waffle_fetch fetch = abi_register(abi->sp);

	fetch.loads = 1;
	fetch.offset[0] = (int32_t)(abi->stack_at + at);
	return fetch;
}

/* The address of data on the stack. */
static struct waffle_fetch stack_address(const struct abi *abi, uint32_t at)
{
	struct waffle_fetch fetch = abi_register(abi->sp);

	fetch.offset[0] = (int32_t)(abi->stack_at + at);
	return fetch;
}

static void place_word(struct abi_walk *walk, struct abi_place *place)
{
	const struct abi *abi = walk->abi;

	if (walk->words < abi->register_count) {
		place->pieces[place->count++] = abi_register(abi->registers[walk->words++]);
		return;
	}
	place->pieces[place->count++] = from_stack(abi, walk->stack);
	walk->stack += WORD;
}

static void place_float(struct abi_walk *walk, uint32_t bytes)
{
	const struct abi *abi = walk->abi;
	bool wide = bytes == LONG_DOUBLE_BYTES;

	if (walk->vectors < abi->vectors && !(wide && abi->long_double_on_stack)) {
		walk->vectors++;
		return;
	}
	if (wide) /* aligned to its size */
		walk->stack = (walk->stack + LONG_DOUBLE_BYTES - 1) / LONG_DOUBLE_BYTES *
			      LONG_DOUBLE_BYTES;
	walk->stack += wide ? LONG_DOUBLE_BYTES : WORD;
}

/* A struct that is copied to the stack. Its place is its address. */
static void place_copied(struct abi_walk *walk, struct abi_place *place, uint32_t size)
{
	place->pieces[place->count++] = stack_address(walk->abi, walk->stack);
	walk->stack += (size + WORD - 1) / WORD * WORD;
}

/* A struct of integers. It goes to registers if there are enough for all of it. */
static void place_struct(struct abi_walk *walk, struct abi_place *place, uint32_t size)
{
	const struct abi *abi = walk->abi;
	uint8_t words = (uint8_t)((size + WORD - 1) / WORD);

	if (size > BLOB_IN_REGISTERS_MAX) {
		if (abi->big_by_reference)
			place_word(walk, place);
		else
			place_copied(walk, place, size);
		return;
	}
	if (walk->words + words > abi->register_count && abi->spill_closes)
		walk->words = abi->register_count;
	if (walk->words + words <= abi->register_count) {
		while (words--)
			place_word(walk, place);
		return;
	}
	while (words--) {
		place->pieces[place->count++] = from_stack(abi, walk->stack);
		walk->stack += WORD;
	}
}

struct abi_place abi_walk_next(struct abi_walk *walk, const struct call_type *type)
{
	struct abi_place place = {0};

	switch (type->kind) {
	case TYPE_VOID:
		break;
	case TYPE_SRET: /* aarch64 has a register for it */
		if (walk->abi->sret_is_first)
			place_word(walk, &place);
		break;
	case TYPE_FLOAT:
		place_float(walk, type->bytes);
		break;
	case TYPE_DIM3:
	case TYPE_BLOB:
		place_struct(walk, &place, type->size);
		break;
	case TYPE_XYZ:
		place_word(walk, &place);
		place_word(walk, &place);
		place_word(walk, &place);
		break;
	default:
		place_word(walk, &place);
	}
	return place;
}
