/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Offsets of struct fields for which a library has no public header, derived from the machine code
 * of its getters. `ncclCommUserRank(comm, int *rank)` loads the rank from the communicator and
 * stores it through the caller's pointer. So the load contains the offset, in any version of the
 * library.
 */
#ifndef WAFFLE_PROBE_ARGS_STRUCT_OFFSETS_H
#define WAFFLE_PROBE_ARGS_STRUCT_OFFSETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/elf/elffile.h"

/*
 * Offset of the 32-bit field that a function copies from the struct of its first argument to the
 * target of its second argument. `code` is the whole function, at link-time `address`; machine:
 * EM_X86_64 or EM_AARCH64. -ENOENT: there is no such store, or the stores differ in their field.
 */
int struct_offset_in_getter(uint16_t machine, const uint8_t *code, size_t bytes, uint64_t address,
			    int32_t *offset);

/*
 * An offset by its name in descriptions: "rank", "nranks" and "comm_hash" of struct ncclComm,
 * "ompi_rank" and "ompi_index" of Open MPI's communicators.
 * False: the file has no such getter, or its code is not understood.
 */
bool struct_offset_find(const struct elf_file *file, uint16_t machine, const char *name,
			int32_t *offset);

#endif
