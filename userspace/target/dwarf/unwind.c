// SPDX-License-Identifier: Apache-2.0
#include "target/dwarf/unwind.h"

bool unwind_place(struct waffle_unwind_mapping *placed, const struct mapping *mapping,
		  const struct elf_segments *segments, const struct cfi_table *table)
{
	uint64_t from = mapping->offset, to = from + (mapping->end - mapping->start);

	for (uint32_t i = 0; i < segments->count && i < ELF_SEGMENTS_MAX; i++) {
		const struct elf_segment *segment = &segments->list[i];

		/* Mappings begin at a page, segments anywhere. The differences may wrap around,
		 * consistently. */
		if (segment->offset >= to || segment->offset + segment->size <= from)
			continue;
		placed->start = mapping->start;
		placed->end = mapping->end;
		placed->base = table->base + (mapping->start - from) +
			       (segment->offset - segment->address);
		return true;
	}
	return false;
}
