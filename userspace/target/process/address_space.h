/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address space of a process at one moment: mappings that are sorted by address and do not
 * overlap, as process_mappings() reads them. Later mappings replace parts of it.
 */
#ifndef WAFFLE_TARGET_PROCESS_ADDRESS_SPACE_H
#define WAFFLE_TARGET_PROCESS_ADDRESS_SPACE_H

#include "target/process/process.h"

#define ADDRESS_SPACE_MAX 65536 /* mappings of a process: vm.max_map_count */

/* Index of the first mapping that ends after an address. */
size_t address_space_after(const struct mappings *space, uint64_t address);
/* The mapping at an address. NULL: there is none. */
const struct mapping *address_space_at(const struct mappings *space, uint64_t address);
/* Maps what a process has mapped: a copy takes the place of all that it overlaps. False: there is
 * no memory, or there are too many mappings; `space` is unchanged. */
bool address_space_map(struct mappings *space, const struct mapping *mapping);

#endif
