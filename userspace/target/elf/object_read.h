/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the sites of an ELF file. The file is not trusted: everything is checked against its size,
 * and a malformed site is skipped and counted.
 */
#ifndef WAFFLE_TARGET_ELF_OBJECT_READ_H
#define WAFFLE_TARGET_ELF_OBJECT_READ_H

#include "target/elf/object.h"

/*
 * Reads the sites of the ELF file open at `fd`. The caller keeps the descriptor, which stays open.
 * A file without sites is not an error. -ENOEXEC: not a 64-bit ELF file. -EAGAIN: as worker_ask().
 */
int object_read(struct object **object, int fd, const char *path, struct error *err);

#endif
