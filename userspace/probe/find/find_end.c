// SPDX-License-Identifier: Apache-2.0
/* Chooses how to observe the end of a function's calls (returns.h). */
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "probe/find/find_internal.h"

#define FUNCTION_BYTES_MAX (64u << 10)
#define PARTS_MAX 16

/* A range of code that ends by returns, or by jumps to other parts. */
struct end_part {
	uint64_t begin, end;
};

static enum cfi_stack stack_at(uint64_t address, void *arg)
{
	const struct find *find = arg;

	return cfi_index_stack(find->frames, address);
}

/* Reads the code of a part and adds its returns. */
static bool part_returns(struct find *find, const struct end_part *part,
			 struct return_sites *returns)
{
	size_t bytes = part->end - part->begin;
	uint64_t offset;
	uint8_t *code;
	bool known;

	if (!bytes || bytes > FUNCTION_BYTES_MAX || !find_offset(find, part->begin, &offset))
		return false;
	code = malloc(bytes);
	known = code && pread(find->file.fd, code, bytes, (off_t)offset) == (ssize_t)bytes &&
		return_sites_add(returns, find->object->machine, code, bytes, part->begin, stack_at,
				 find);
	free(code);
	return known;
}

/* The function that contains an address. Frame information comes first, since stripped files have
 * it, too. Some assembly code only has a symbol. */
static bool part_at(struct find *find, uint64_t address, struct end_part *part)
{
	struct cfi_function function;

	if (cfi_index_find(find->frames, address, &function)) {
		*part = (struct end_part){function.from, function.to};
		return true;
	}
	if (!find->code_tried) {
		find->code_tried = true;
		if (symtab_read(&find->code, find->file.elf, SHT_SYMTAB, SYMTAB_CODE))
			symtab_read(&find->code, find->file.elf, SHT_DYNSYM, SYMTAB_CODE);
	}
	for (size_t i = 0; i < find->code.list.len; i++) {
		const struct symtab_entry *entry = &find->code.list.data[i];

		if (address < entry->start || address >= entry->end)
			continue;
		*part = (struct end_part){entry->start, entry->end};
		return true;
	}
	return false;
}

/* In assembly, frame information may cover only a part of a function, so its extent is joined with
 * that of the symbol. */
static void part_join(struct end_part *part, const struct end_part *other)
{
	if (other->begin < part->begin)
		part->begin = other->begin;
	if (other->end > part->end)
		part->end = other->end;
}

/*
 * Collects the return instructions of a function and of the code that it jumps to. This is its own
 * cold part, or another function (a tail call), which returns in its place. In such shared code the
 * stack pointer shows whose return it is. False: the function may be left in another way.
 */
static bool find_returns(struct find *find, const struct find_hit *hit,
			 struct return_sites *returns)
{
	struct end_part parts[PARTS_MAX] = {{hit->address, hit->address + hit->size}};
	struct cfi_function own;
	uint32_t count = 1, looked = 0;

	*returns = (struct return_sites){0};
	if (cfi_index_find(find->frames, hit->address, &own))
		part_join(&parts[0], &(struct end_part){own.from, own.to});
	if (!part_returns(find, &parts[0], returns))
		return false;
	while (looked < returns->leave_count) {
		uint64_t target = returns->leaves[looked++];
		bool known = false;

		for (uint32_t i = 0; i < count; i++)
			known = known || (target >= parts[i].begin && target < parts[i].end);
		if (known)
			continue;
		if (count == PARTS_MAX || !part_at(find, target, &parts[count]) ||
		    !part_returns(find, &parts[count], returns))
			return false;
		count++;
	}
	return returns->count;
}

enum find_end find_end_of(struct find *find, const struct find_hit *hit,
			  const struct call_spec *spec, struct return_sites *returns)
{
	struct utsname kernel;

	/* A Go call may continue in another thread and on another stack. */
	if (hit->go || cfi_index_stack(find->frames, hit->address) == CFI_STACK_NONE)
		return FIND_END_UNSEEN;
	/* Go inspects its stacks: a return probe ends the program, even if the description has
	 * 'nounwind'. */
	if (spec->flags & WAFFLE_CALL_NOUNWIND && !find->go && !uname(&kernel) &&
	    return_probe_is_safe(kernel.release))
		return FIND_END_TRAMPOLINE;
	return find_returns(find, hit, returns) ? FIND_END_RETURNS : FIND_END_UNSEEN;
}

struct call_spec *find_as_event(const struct call_spec *spec)
{
	struct call_spec *event = malloc(sizeof(*event));
	struct spec_side *side;

	if (!event)
		return NULL;
	*event = *spec; /* nested data stays owned by the original */
	event->event = true;
	event->returned_name = NULL;
	side = &event->sides[0];
	for (uint8_t i = 0; i < side->value_count; i++)
		if (side->values[i].at_return)
			side->value_count = i;
	return event;
}
