// SPDX-License-Identifier: Apache-2.0
#include "util/strtab.h"

#include <stdlib.h>

#include "util/keymap.h"

struct strtab {
	struct keymap strings; /* nothing is removed, so that a string's entry is its number */
};

struct strtab *strtab_new(void)
{
	struct strtab *tab = calloc(1, sizeof(*tab));

	if (tab && strtab_add(tab, "", 0) == STRTAB_NONE) {
		strtab_free(tab);
		return NULL;
	}
	return tab;
}

void strtab_free(struct strtab *tab)
{
	if (tab)
		keymap_free(&tab->strings);
	free(tab);
}

uint32_t strtab_find(const struct strtab *tab, const char *text, size_t len)
{
	return keymap_get(&tab->strings, text, len);
}

uint32_t strtab_add(struct strtab *tab, const char *text, size_t len)
{
	uint32_t number = strtab_find(tab, text, len);

	if (number != STRTAB_NONE)
		return number;
	number = strtab_count(tab);
	return keymap_set(&tab->strings, text, len, number) ? number : STRTAB_NONE;
}

const char *strtab_get(const struct strtab *tab, uint32_t index)
{
	return index < tab->strings.entries.len ? tab->strings.entries.data[index].key : "";
}

size_t strtab_length(const struct strtab *tab, uint32_t index)
{
	return index < tab->strings.entries.len ? tab->strings.entries.data[index].len : 0;
}

uint32_t strtab_count(const struct strtab *tab)
{
	return (uint32_t)tab->strings.entries.len;
}

_Static_assert(STRTAB_NONE == MAP_NONE, "what a keymap does not have, a strtab does not have");
