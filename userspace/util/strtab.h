/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table that stores each string once and gives it a small number. Index 0 is the empty string.
 * Strings may contain any bytes and are stored with a NUL after them. Pointers stay valid until
 * strtab_free().
 */
#ifndef WAFFLE_UTIL_STRTAB_H
#define WAFFLE_UTIL_STRTAB_H

#include <stddef.h>
#include <stdint.h>

#define STRTAB_NONE UINT32_MAX

struct strtab;

struct strtab *strtab_new(void); /* NULL: out of memory */
void strtab_free(struct strtab *tab);

/* Adds a string unless it is there already. Returns its number; STRTAB_NONE: out of memory. */
uint32_t strtab_add(struct strtab *tab, const char *text, size_t len);

/* The number of a string; STRTAB_NONE: it was never added. */
uint32_t strtab_find(const struct strtab *tab, const char *text, size_t len);

/* The string of a number; "" for an unknown number. */
const char *strtab_get(const struct strtab *tab, uint32_t index);
size_t strtab_length(const struct strtab *tab, uint32_t index);
uint32_t strtab_count(const struct strtab *tab);

#endif
