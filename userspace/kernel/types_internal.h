/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's type information (BTF, Documentation/bpf/btf.rst), read once for a session. libbpf
 * adapts the programs to the kernel's structures. For each structure that they name it searches all
 * types, over a hundred thousand, which takes 1 ms of CPU time. So libbpf gets an excerpt with only
 * the types that they name.
 */
#ifndef WAFFLE_KERNEL_TYPES_INTERNAL_H
#define WAFFLE_KERNEL_TYPES_INTERNAL_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct btf;

#define KERNEL_TYPES_FILE "/sys/kernel/btf/vmlinux"

struct kernel_types {
	unsigned char *bytes; /* the file, mapped or read; NULL: it could not be read */
	size_t len;
	bool is_mapped;
	__u32 *offsets; /* offsets in `bytes`, by the type's number; 0 is no type */
	__u32 count;
	const char *names; /* of types and of their members, each between two zero bytes */
	size_t names_len;
};

/* Reads a BTF file. After a negative errno, kernel_types_has() and the like find nothing. -EBADMSG:
 * it is not BTF of this byte order, or has unknown kinds of types. */
int kernel_types_open(struct kernel_types *types, const char *path);
void kernel_types_close(struct kernel_types *types);
/* Whether a type or a member of any type has this name. */
bool kernel_types_has(const struct kernel_types *types, const char *name);
/* The number of a structure; 0: there is none. */
__u32 kernel_types_struct(const struct kernel_types *types, const char *name);

/*
 * Writes BTF for `programs` to `fd`: the kernel's structures, unions, enumerations and typedefs of
 * the same names, and the types that their members embed. Pointers become pointers to void, since
 * relocations never follow one (libbpf's relo_core.c). The types are renumbered. Negative errno.
 */
int kernel_types_excerpt(const struct kernel_types *types, const struct btf *programs, int fd);

#endif
