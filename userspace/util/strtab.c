// SPDX-License-Identifier: Apache-2.0
#include "util/strtab.h"

#include <stdlib.h>
#include <string.h>

#include "util/hash.h"
#include "util/map.h"
#include "util/vec.h"

struct string {
	char *text;
	uint32_t len;
	uint32_t next; /* next string with the same hash; STRTAB_NONE: none */
};

struct strtab {
	VEC(struct string) strings;
	struct map heads; /* hash → first string */
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
	if (!tab)
		return;
	for (size_t i = 0; i < tab->strings.len; i++)
		free(tab->strings.data[i].text);
	vec_free(&tab->strings);
	map_free(&tab->heads);
	free(tab);
}

static uint32_t find_in(const struct strtab *tab, uint32_t head, const char *text, size_t len)
{
	uint32_t i = head;

	while (i != STRTAB_NONE && (tab->strings.data[i].len != len ||
				    memcmp(tab->strings.data[i].text, text, len) != 0))
		i = tab->strings.data[i].next;
	return i;
}

uint32_t strtab_find(const struct strtab *tab, const char *text, size_t len)
{
	return find_in(tab, map_get(&tab->heads, hash_bytes(HASH_BEGIN, text, len)), text, len);
}

uint32_t strtab_add(struct strtab *tab, const char *text, size_t len)
{
	uint64_t hash = hash_bytes(HASH_BEGIN, text, len);
	uint32_t head = map_get(&tab->heads, hash);
	struct string string = {.len = (uint32_t)len, .next = head};
	uint32_t found = find_in(tab, head, text, len);

	if (found != STRTAB_NONE)
		return found;
	if (len >= UINT32_MAX || tab->strings.len >= STRTAB_NONE)
		return STRTAB_NONE;
	string.text = malloc(len + 1);
	if (!string.text)
		return STRTAB_NONE;
	memcpy(string.text, text, len);
	string.text[len] = '\0';
	if (!vec_reserve(&tab->strings, 1) ||
	    !map_set(&tab->heads, hash, (uint32_t)tab->strings.len)) {
		free(string.text);
		return STRTAB_NONE;
	}
	tab->strings.data[tab->strings.len] = string;
	return (uint32_t)tab->strings.len++;
}

const char *strtab_get(const struct strtab *tab, uint32_t index)
{
	return index < tab->strings.len ? tab->strings.data[index].text : "";
}

size_t strtab_length(const struct strtab *tab, uint32_t index)
{
	return index < tab->strings.len ? tab->strings.data[index].len : 0;
}

uint32_t strtab_count(const struct strtab *tab)
{
	return (uint32_t)tab->strings.len;
}
