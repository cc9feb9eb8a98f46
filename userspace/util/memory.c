// SPDX-License-Identifier: Apache-2.0
#include "util/memory.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

struct strtab *strtab_make(void)
{
	struct strtab *tab = strtab_new();

	memory_require(tab);
	return tab;
}

uint32_t strtab_put(struct strtab *tab, const char *text, size_t len)
{
	uint32_t number = strtab_add(tab, text, len);

	memory_require(number != STRTAB_NONE);
	return number;
}

void *memory_get(size_t size)
{
	void *got = malloc(size ?: 1);

	memory_require(got);
	return got;
}

void *memory_zeroed(size_t count, size_t size)
{
	void *got = calloc(count ?: 1, size);

	memory_require(got);
	return got;
}

void *memory_resize(void *old, size_t count, size_t size)
{
	void *got = reallocarray(old, count ?: 1, size);

	memory_require(got);
	return got;
}

char *memory_text(const char *text)
{
	char *copy = strdup(text);

	memory_require(copy);
	return copy;
}

FILE *memory_stream(char **text, size_t *len)
{
	FILE *stream = open_memstream(text, len);

	memory_require(stream);
	return stream;
}

void memory_return_large(void)
{
	mallopt(M_MMAP_THRESHOLD, 1 << 20);
	mallopt(M_TRIM_THRESHOLD, 1 << 20);
}
