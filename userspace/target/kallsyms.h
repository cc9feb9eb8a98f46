/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The running kernel's functions, as /proc/kallsyms lists them (Documentation/admin-guide/
 * sysctl/kernel.rst, kptr_restrict): "ffffffff81000000 T _stext", for modules with "\t[ext4]"
 * behind. They hold for this boot only: names have to be looked up before the kernel is gone.
 */
#ifndef WAFFLE_TARGET_KALLSYMS_H
#define WAFFLE_TARGET_KALLSYMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

struct kallsyms;

struct kernel_symbol {
	const char *name;
	const char *module; /* "ext4", "bpf"; empty: the kernel itself */
	uint64_t offset;    /* bytes from the symbol's beginning */
};

/* Reads a table; NULL: /proc/kallsyms. -EPERM: the kernel hides its addresses; -ENODATA: nothing in
 * it; -ENOMEM and negative errno of open(2) and read(2). */
int kallsyms_read(struct kallsyms **kallsyms, const char *path, struct error *err);
/* The same from memory, which is copied. */
int kallsyms_parse(struct kallsyms **kallsyms, const char *text, size_t size, struct error *err);
void kallsyms_free(struct kallsyms *kallsyms);

size_t kallsyms_count(const struct kallsyms *kallsyms);

/* The function at an address. NULL-safe; false: not known. Strings belong to the table. */
bool kallsyms_find(const struct kallsyms *kallsyms, uint64_t address, struct kernel_symbol *symbol);

#endif
