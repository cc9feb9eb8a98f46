/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a library keeps what it has no header for: offsets of fields that are read from the code of
 * its getters. `ncclCommUserRank(comm, int *rank)` loads the rank from the communicator and stores
 * it to its caller; the offset is in the load, whatever version the library is of.
 */
#ifndef WAFFLE_CALL_DERIVE_H
#define WAFFLE_CALL_DERIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/elffile.h"

/*
 * The offset of the 32-bit field of its first argument's struct that a function stores to where its
 * second argument points. `code`: the whole function, at link-time `address`; machine: EM_X86_64 or
 * EM_AARCH64. -ENOENT if there is no such store, or if not all of them are of one field.
 */
int derive_getter(uint16_t machine, const uint8_t *code, size_t bytes, uint64_t address,
		  int32_t *offset);

/*
 * An offset by the name under which descriptions have it: "rank", "nranks" and "comm_hash" of
 * struct ncclComm. False: the file has no such getter, or one that is not understood.
 */
bool derive_offset(const struct elf_file *file, uint16_t machine, const char *name,
		   int32_t *offset);

#endif
