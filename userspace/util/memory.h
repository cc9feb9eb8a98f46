/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocation for code that only reads captures. When memory runs out there, nothing needs to be put
 * in order, so the process prints one line and exits. Code that traces programs or writes captures
 * must not use these functions: it handles a failed allocation.
 *
 *	vec_add(&list, value);   vec_push() that does not fail
 *	vec_need(&list, count);  vec_reserve()
 *	map_put(&map, key, 1);   map_set()
 */
#ifndef WAFFLE_UTIL_MEMORY_H
#define WAFFLE_UTIL_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "util/error.h"
#include "util/keymap.h"
#include "util/map.h"
#include "util/strtab.h"
#include "util/vec.h"

/*
 * What to do before the process exits: remove a file that is not complete, or say in the message
 * how far the work got. It lives on the stack of the function that sets it, and is removed before
 * that returns. The innermost one is called first; the first message counts.
 */
struct memory_guard {
	void (*call)(void *arg, struct error *err);
	void *arg;
	struct memory_guard *outer;
};

void memory_guard_set(struct memory_guard *guard);
/* Removes the innermost guard. */
void memory_guard_remove(struct memory_guard *guard);

/* Calls the guards, prints the message unless one of them did, and exits with 1. */
_Noreturn void memory_failed(void);

static inline void memory_require(bool done)
{
	if (!done)
		memory_failed();
}

#define vec_need(vec, count) memory_require(vec_reserve((vec), (count)))

#define vec_add(vec, ...) (vec_need((vec), 1), (void)((vec)->data[(vec)->len++] = (__VA_ARGS__)))

static inline void map_put(struct map *map, uint64_t key, uint32_t value)
{
	memory_require(map_set(map, key, value));
}

static inline void keymap_put(struct keymap *map, const void *key, size_t len, uint32_t value)
{
	memory_require(keymap_set(map, key, len, value));
}

struct strtab *strtab_make(void);
/* strtab_add() that does not fail. */
uint32_t strtab_put(struct strtab *tab, const char *text, size_t len);
/* The same with a string of another table. */
static inline uint32_t strtab_take(struct strtab *tab, const struct strtab *from, uint32_t index)
{
	return strtab_put(tab, strtab_get(from, index), strtab_length(from, index));
}

/* malloc(), calloc(), realloc() and others that do not fail. A size of 0 is allowed. */
void *memory_get(size_t size);
void *memory_zeroed(size_t count, size_t size);
void *memory_resize(void *old, size_t count, size_t size);
char *memory_text(const char *text);
FILE *memory_stream(char **text, size_t *len);

/* Large blocks come from the kernel for the rest of the process and go back to it when they are
 * freed. Vectors with millions of elements then grow without a copy. By default, glibc keeps blocks
 * of up to 32 MiB for itself once one was freed: a tenth of the memory of a report. */
void memory_return_large(void);

#endif
