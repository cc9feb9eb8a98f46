/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strings stored once and named by a small number. Index 0 is the empty string. Strings may hold
 * any bytes but are kept NUL-terminated; pointers stay valid until strtab_free().
 */
#ifndef WAFFLE_UTIL_STRTAB_H
#define WAFFLE_UTIL_STRTAB_H

#include <stddef.h>
#include <stdint.h>

#define STRTAB_NONE UINT32_MAX

struct strtab;

struct strtab *strtab_new(void); /* NULL: out of memory */
void strtab_free(struct strtab *tab);

/* The number of a string, added if new. STRTAB_NONE: out of memory. */
uint32_t strtab_add(struct strtab *tab, const char *text, size_t len);

/* The number of a string, or STRTAB_NONE: it was never added. */
uint32_t strtab_find(const struct strtab *tab, const char *text, size_t len);

/* The string of a number; the empty string for a number that was never given out. */
const char *strtab_get(const struct strtab *tab, uint32_t index);
size_t strtab_length(const struct strtab *tab, uint32_t index);
uint32_t strtab_count(const struct strtab *tab);

#endif
