/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the mapping at an address of a process at a given time. A capture may have millions of
 * mappings, and a malicious one may let all of them overlap. So no lookup scans all mappings.
 *
 * Each process that is looked up has a segment tree over the ranges between the bounds of its
 * mappings. A mapping is in the lists of O(log n) nodes that together cover it. All mappings of an
 * address are thus in the lists from its leaf to the root. The lists are in the order of time.
 */
#ifndef WAFFLE_SYMBOLIZE_STACK_MAPPINGS_H
#define WAFFLE_SYMBOLIZE_STACK_MAPPINGS_H

#include "store/store.h"

struct stack_mappings;

struct stack_mappings *stack_mappings_open(const struct store_reader *reader);
void stack_mappings_close(struct stack_mappings *mappings);

/*
 * The last mapping seen at or before `ts`, or else the first one seen later, since mappings are
 * read a little after they change. NULL: there is none, or it has no name.
 */
const struct store_mapping *stack_mappings_find(struct stack_mappings *mappings, uint32_t pid,
						uint64_t address, uint64_t ts);

/* The last mapping with a name, of any time, that begins at or before an address. */
const struct store_mapping *stack_mappings_before(struct stack_mappings *mappings, uint32_t pid,
						  uint64_t address);

/* A mapping of the same file by the same process that has a build-id, since a capture records the
 * build-id only for executable mappings. Returns `mapping` itself if there is none. */
const struct store_mapping *stack_mappings_described(struct stack_mappings *mappings,
						     const struct store_mapping *mapping);

/* All mappings, by process and time. */
uint32_t stack_mappings_count(const struct stack_mappings *mappings);
const struct store_mapping *stack_mappings_at(const struct stack_mappings *mappings, uint32_t at);
/* Index of the first mapping of a process. */
uint32_t stack_mappings_of(const struct stack_mappings *mappings, uint32_t pid);

#endif
