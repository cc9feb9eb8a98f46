// SPDX-License-Identifier: Apache-2.0
#include "target/dwarf/cfi_index.h"

#include <errno.h>
#include <stdlib.h>

#include "target/dwarf/cfi_entries_internal.h"
#include "util/search.h"
#include "util/vec.h"

#define FUNCTIONS_MAX (2u << 20) /* functions beyond the limit are unknown */

struct indexed {
	struct cfi_entry entry;
	enum cfi_section_kind kind;
};

struct cfi_index {
	struct cfi_section sections[CFI_SECTIONS];
	VEC(struct indexed) list; /* sorted by `from` */
	enum cfi_section_kind reading;
};

static bool take(struct cfi_section *section, const struct cfi_entry *entry, void *arg)
{
	struct cfi_index *index = arg;

	section->cut = index->list.len >= FUNCTIONS_MAX;
	if (!section->cut)
		section->no_memory =
			!vec_push(&index->list, (struct indexed){*entry, index->reading});
	return true;
}

static int compare(const void *a, const void *b)
{
	const struct cfi_entry *left = &((const struct indexed *)a)->entry;
	const struct cfi_entry *right = &((const struct indexed *)b)->entry;

	if (left->from != right->from)
		return left->from < right->from ? -1 : 1;
	return left->to < right->to ? -1 : left->to > right->to;
}

int cfi_index_open(struct cfi_index **index, const struct elf_file *file)
{
	struct cfi_index *made = calloc(1, sizeof(*made));
	bool no_memory = !made;

	for (unsigned kind = 0; made && kind < CFI_SECTIONS; kind++) {
		made->reading = kind;
		if (cfi_section_open(&made->sections[kind], file, kind))
			cfi_section_each(&made->sections[kind], take, made);
		no_memory |= made->sections[kind].no_memory;
	}
	if (no_memory) {
		cfi_index_close(made);
		made = NULL;
	} else if (made->list.len) {
		qsort(made->list.data, made->list.len, sizeof(made->list.data[0]), compare);
	}
	*index = made;
	return no_memory ? -ENOMEM : 0;
}

void cfi_index_close(struct cfi_index *index)
{
	for (unsigned kind = 0; index && kind < CFI_SECTIONS; kind++)
		cfi_section_close(&index->sections[kind]);
	if (index)
		vec_free(&index->list);
	free(index);
}

static const struct indexed *find(const struct cfi_index *index, uint64_t address)
{
	size_t after = lower_bound(index ? index->list.len : 0, i,
				   index->list.data[i].entry.from <= address);
	const struct indexed *found = after ? &index->list.data[after - 1] : NULL;

	return found && address < found->entry.to ? found : NULL;
}

bool cfi_index_find(const struct cfi_index *index, uint64_t address, struct cfi_function *function)
{
	const struct indexed *found = find(index, address);

	if (found)
		*function = (struct cfi_function){found->entry.from, found->entry.to};
	return found;
}

struct row_at {
	uint64_t address;
	struct waffle_unwind_row row; /* the last row at or before `address` */
};

static bool take_row(uint64_t pc, const struct waffle_unwind_row *row, void *arg)
{
	struct row_at *at = arg;

	if (pc > at->address)
		return false;
	at->row = *row;
	return true;
}

enum cfi_stack cfi_index_stack(const struct cfi_index *index, uint64_t address)
{
	const struct indexed *found = find(index, address);
	struct row_at at = {.address = address};
	const struct cfi_section *section;
	const struct cfi_common *common;
	unsigned words;

	if (!found)
		return CFI_STACK_UNKNOWN;
	section = &index->sections[found->kind];
	common = &section->commons.data[found->entry.common].common;
	cfi_run(common, found->entry.program, found->entry.from, found->entry.to, take_row, &at);
	words = common->machine->ra_in_register ? 0 : 1;
	switch (at.row.rule & WAFFLE_UNWIND_RULE_BITS) {
	case WAFFLE_UNWIND_SP:
		return at.row.cfa == words && !(at.row.rule & WAFFLE_UNWIND_RA_SAVED)
			       ? CFI_STACK_ENTERED
			       : CFI_STACK_USED;
	case WAFFLE_UNWIND_FP:
	case WAFFLE_UNWIND_FP_DEREF:
	case WAFFLE_UNWIND_SIGNAL:
		return CFI_STACK_USED;
	case WAFFLE_UNWIND_END:
		return CFI_STACK_NONE;
	default:
		return CFI_STACK_UNKNOWN;
	}
}
