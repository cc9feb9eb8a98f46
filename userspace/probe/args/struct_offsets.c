// SPDX-License-Identifier: Apache-2.0
#include "probe/args/struct_offsets.h"

#include <elf.h>
#include <errno.h>
#include <gelf.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probe/args/struct_offsets_internal.h"

const struct offset_value value_nothing = {KNOWN_NOTHING, 0};

/* Adds with wrap-around, as addresses do. */
static int64_t sum(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

static void forget_slots(struct offset_state *state, unsigned base)
{
	for (unsigned i = 0; i < SLOTS; i++)
		if (state->slots[i].base == base)
			state->slots[i].value.known = KNOWN_NOTHING;
}

void walk_set(struct offset_walk *walk, unsigned reg, struct offset_value value)
{
	if (reg >= REGISTERS)
		return;
	walk->state.registers[reg] = value;
	forget_slots(&walk->state, reg);
}

struct offset_value walk_get(const struct offset_walk *walk, unsigned reg)
{
	return reg < REGISTERS ? walk->state.registers[reg] : value_nothing;
}

static struct offset_slot *find_slot(struct offset_walk *walk, const struct operand *memory,
				     bool make)
{
	struct offset_slot *free_slot = NULL;

	for (unsigned i = 0; i < SLOTS; i++) {
		struct offset_slot *slot = &walk->state.slots[i];

		if (slot->value.known == KNOWN_NOTHING)
			free_slot = slot;
		else if (slot->base == memory->reg && slot->at == memory->n)
			return slot;
	}
	if (make && free_slot)
		*free_slot = (struct offset_slot){.base = memory->reg, .at = memory->n};
	return make ? free_slot : NULL;
}

static struct offset_value load(struct offset_walk *walk, const struct operand *memory)
{
	struct offset_value base = walk_get(walk, memory->reg);
	const struct offset_slot *slot;

	if (memory->index < REGISTERS) {
		struct offset_value index = walk_get(walk, memory->index);

		if (base.known != KNOWN_OBJECT || index.known != KNOWN_NUMBER)
			return value_nothing;
		base.n = sum(base.n, index.n);
	}
	if (base.known == KNOWN_OBJECT)
		return memory->bytes == 4
			       ? (struct offset_value){KNOWN_FIELD, sum(base.n, memory->n)}
			       : value_nothing;
	slot = find_slot(walk, memory, false);
	return slot && memory->bytes == 8 && memory->index >= REGISTERS ? slot->value
									: value_nothing;
}

static void store(struct offset_walk *walk, const struct operand *memory, struct offset_value value)
{
	struct offset_value base = walk_get(walk, memory->reg);
	struct offset_slot *slot;

	if (base.known == KNOWN_OUT && sum(base.n, memory->n) == 0 && memory->index >= REGISTERS) {
		/* Getters store a zero on their error paths. */
		if (value.known == KNOWN_NUMBER)
			return;
		walk->differs |= value.known != KNOWN_FIELD ||
				 (walk->found && walk->offset != value.n) || memory->bytes != 4;
		walk->found = true;
		walk->offset = value.n;
		return;
	}
	slot = find_slot(walk, memory, value.known != KNOWN_NOTHING && memory->bytes == 8);
	if (slot)
		slot->value = memory->bytes == 8 ? value : value_nothing;
}

static bool same(struct offset_value a, struct offset_value b)
{
	return a.known == b.known && a.n == b.n;
}

/* Keeps the facts of `into` that also hold in `other`. */
static void meet(struct offset_state *into, const struct offset_state *other)
{
	if (!into->reached) {
		*into = *other;
		return;
	}
	for (unsigned i = 0; i < REGISTERS; i++)
		if (!same(into->registers[i], other->registers[i]))
			into->registers[i] = value_nothing;
	for (unsigned i = 0; i < SLOTS; i++)
		if (into->slots[i].base != other->slots[i].base ||
		    into->slots[i].at != other->slots[i].at ||
		    !same(into->slots[i].value, other->slots[i].value))
			into->slots[i].value = value_nothing;
}

void walk_jump(struct offset_walk *walk, uint64_t address)
{
	unsigned at = 0;

	while (at < walk->targets && walk->target[at].address != address)
		at++;
	if (at == TARGETS)
		return;
	if (at == walk->targets) {
		walk->target[at].address = address;
		walk->target[at].state.reached = false;
		walk->targets++;
	}
	meet(&walk->target[at].state, &walk->state);
}

/* Merges the state that jumps have brought to this address. */
static void arrive(struct offset_walk *walk, uint64_t address)
{
	for (unsigned i = 0; i < walk->targets; i++)
		if (walk->target[i].address == address)
			meet(&walk->state, &walk->target[i].state);
}

void walk_leave(struct offset_walk *walk)
{
	memset(&walk->state, 0, sizeof(walk->state));
}

void walk_forget(struct offset_walk *walk, const uint8_t *registers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		walk_set(walk, registers[i], value_nothing);
}

void walk_move(struct offset_walk *walk, const struct operand *to, const struct operand *from)
{
	struct offset_value value = {KNOWN_NOTHING, 0};

	if (from->kind == OPERAND_NUMBER)
		value = (struct offset_value){KNOWN_NUMBER, from->n};
	else if (from->kind == OPERAND_MEMORY)
		value = load(walk, from);
	else if (from->kind == OPERAND_REGISTER)
		value = walk_get(walk, from->reg);
	/* A part of a pointer has no known value. */
	if (to->bytes != 8 && (value.known == KNOWN_OBJECT || value.known == KNOWN_OUT))
		value.known = KNOWN_NOTHING;
	if (to->kind == OPERAND_MEMORY)
		store(walk, to, value);
	else if (to->kind == OPERAND_REGISTER)
		walk_set(walk, to->reg, value);
}

void walk_add(struct offset_walk *walk, unsigned to, unsigned from, int64_t n)
{
	struct offset_value value = walk_get(walk, from);

	if (value.known == KNOWN_FIELD)
		value.known = KNOWN_NOTHING;
	value.n = sum(value.n, n);
	walk_set(walk, to, value);
}

static int walk_all(struct offset_walk *walk, const struct offset_machine *machine,
		    const uint8_t *code, size_t bytes, uint64_t address)
{
	walk->state.reached = true;
	walk_set(walk, machine->arguments[0], (struct offset_value){KNOWN_OBJECT, 0});
	walk_set(walk, machine->arguments[1], (struct offset_value){KNOWN_OUT, 0});
	while (bytes) {
		arrive(walk, address);
		if (!cs_disasm_iter(walk->handle, &code, &bytes, &address, walk->insn))
			return -ENOENT;
		machine->step(walk);
	}
	return walk->found && !walk->differs ? 0 : -ENOENT;
}

int struct_offset_in_getter(uint16_t machine, const uint8_t *code, size_t bytes, uint64_t address,
			    int32_t *offset)
{
	static const struct offset_machine *const machines[] = {&offset_x86, &offset_arm64};
	const struct offset_machine *known = NULL;
	struct offset_walk *walk;
	int result = -ENOENT;

	for (unsigned i = 0; i < sizeof(machines) / sizeof(machines[0]); i++)
		if (machines[i]->machine == machine)
			known = machines[i];
	walk = known ? calloc(1, sizeof(*walk)) : NULL;
	if (!walk || cs_open(known->arch, known->mode, &walk->handle)) {
		free(walk);
		return -ENOENT;
	}
	cs_option(walk->handle, CS_OPT_DETAIL, CS_OPT_ON);
	walk->insn = cs_malloc(walk->handle);
	if (walk->insn) {
		result = walk_all(walk, known, code, bytes, address);
		cs_free(walk->insn, 1);
	}
	if (!result && (walk->offset < 0 || walk->offset > INT32_MAX))
		result = -ENOENT;
	if (!result)
		*offset = (int32_t)walk->offset;
	cs_close(&walk->handle);
	free(walk);
	return result;
}

/* ---- files ---- */

#define GETTER_BYTES_MAX 8192

static bool find_function(const struct elf_file *file, const char *name, GElf_Sym *found)
{
	size_t size = gelf_fsize(file->elf, ELF_T_SYM, 1, EV_CURRENT);
	Elf_Scn *section = NULL;

	while (size && (section = elf_nextscn(file->elf, section))) {
		GElf_Shdr header;
		Elf_Data *data;

		if (!gelf_getshdr(section, &header) ||
		    (header.sh_type != SHT_DYNSYM && header.sh_type != SHT_SYMTAB))
			continue;
		data = elf_getdata(section, NULL);
		for (size_t i = 0; data && i < data->d_size / size && i <= INT_MAX; i++) {
			const char *text;

			if (!gelf_getsym(data, (int)i, found) ||
			    GELF_ST_TYPE(found->st_info) != STT_FUNC || !found->st_value)
				continue;
			text = elf_strptr(file->elf, header.sh_link, found->st_name);
			if (text && !strcmp(text, name))
				return true;
		}
	}
	return false;
}

static bool getter_offset(const struct elf_file *file, uint16_t machine, const char *name,
			  int32_t *offset)
{
	struct elf_segments segments;
	GElf_Sym symbol;
	uint8_t code[GETTER_BYTES_MAX];

	if (!find_function(file, name, &symbol) || symbol.st_size > sizeof(code))
		return false;
	elf_file_segments(file, &segments);
	for (uint32_t i = 0; i < segments.count; i++) {
		const struct elf_segment *segment = &segments.list[i];
		uint64_t at = symbol.st_value - segment->address;

		if (symbol.st_value >= segment->address && at < segment->size &&
		    symbol.st_size <= segment->size - at)
			return pread(file->fd, code, symbol.st_size,
				     (off_t)(segment->offset + at)) == (ssize_t)symbol.st_size &&
			       !struct_offset_in_getter(machine, code, symbol.st_size,
							symbol.st_value, offset);
	}
	return false;
}

/*
 * In 2.18.3, 2.21.5, 2.28.9 and 2.32.3 struct ncclComm has three adjacent members: uint64_t
 * commHash; int rank; int nRanks. If rank and nRanks are adjacent, commHash is assumed to precede
 * them.
 */
static bool nccl_rank(const struct elf_file *file, uint16_t machine, int32_t *rank)
{
	int32_t nranks;

	return getter_offset(file, machine, "ncclCommUserRank", rank) &&
	       getter_offset(file, machine, "ncclCommCount", &nranks) && nranks == *rank + 4 &&
	       *rank >= (int32_t)sizeof(uint64_t);
}

/*
 * In Open MPI's struct ompi_communicator_t (ompi/communicator/communicator.h) the member before
 * c_my_rank is the communicator's number: c_contextid in 4.x, c_index in 5.x.
 */
static bool ompi_rank(const struct elf_file *file, uint16_t machine, int32_t *rank)
{
	return getter_offset(file, machine, "MPI_Comm_rank", rank) &&
	       *rank >= (int32_t)sizeof(uint32_t);
}

bool struct_offset_find(const struct elf_file *file, uint16_t machine, const char *name,
			int32_t *offset)
{
	static const struct {
		const char *name;
		bool (*find)(const struct elf_file *file, uint16_t machine, int32_t *rank);
		int32_t behind; /* the rank */
	} offsets[] = {
		{"rank", nccl_rank, 0},
		{"nranks", nccl_rank, sizeof(int32_t)},
		{"comm_hash", nccl_rank, -(int32_t)sizeof(uint64_t)},
		{"ompi_rank", ompi_rank, 0},
		{"ompi_index", ompi_rank, -(int32_t)sizeof(uint32_t)},
	};

	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		if (strcmp(name, offsets[i].name))
			continue;
		if (!offsets[i].find(file, machine, offset))
			return false;
		*offset += offsets[i].behind;
		return true;
	}
	return false;
}
