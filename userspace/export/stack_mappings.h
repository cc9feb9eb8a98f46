/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was mapped at an address of a process at a time. A capture may have millions of mappings,
 * and who wrote it may have laid all of them over each other: no look-up goes through all.
 *
 * Of each process that is asked for there is a tree over the ranges between the bounds of its
 * mappings. A mapping is in the list of O(log n) nodes that together cover it, so all mappings of
 * an address are in the lists from its leaf to the root. The lists are in the order of time.
 */
#ifndef WAFFLE_EXPORT_STACK_MAPPINGS_H
#define WAFFLE_EXPORT_STACK_MAPPINGS_H

#include "store/store.h"

struct stack_mappings;

int stack_mappings_open(struct stack_mappings **mappings, const struct store_reader *reader);
void stack_mappings_close(struct stack_mappings *mappings);

/*
 * The last mapping that was seen by then, or else the first one seen later, as processes are looked
 * at a little after they have changed. NULL: there is none, or one without a name.
 */
const struct store_mapping *stack_mappings_find(struct stack_mappings *mappings, uint32_t pid,
						uint64_t address, uint64_t ts);

/* The last mapping with a name, of any time, that begins at or before an address. */
const struct store_mapping *stack_mappings_before(struct stack_mappings *mappings, uint32_t pid,
						  uint64_t address);

/* The part of the same file that says which file it was: what is run is read when it is recorded.
 * Without one the mapping itself. */
const struct store_mapping *stack_mappings_described(struct stack_mappings *mappings,
						     const struct store_mapping *mapping);

/* All, by process and time. */
uint32_t stack_mappings_count(const struct stack_mappings *mappings);
const struct store_mapping *stack_mappings_at(const struct stack_mappings *mappings, uint32_t at);
/* Where those of a process begin. */
uint32_t stack_mappings_of(const struct stack_mappings *mappings, uint32_t pid);

#endif
