// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "export/process/joiner_sites_internal.h"
#include "util/map.h"
#include "util/strtab.h"
#include "util/vec.h"

struct joiner_sites {
	struct map numbers; /* number → index */
	VEC(struct site_info *) sites;
	struct strtab *texts;
};

struct joiner_sites *joiner_sites_new(void)
{
	struct joiner_sites *sites = calloc(1, sizeof(*sites));

	if (!sites)
		return NULL;
	sites->texts = strtab_new();
	if (sites->texts)
		return sites;
	free(sites);
	return NULL;
}

void joiner_sites_free(struct joiner_sites *sites)
{
	if (!sites)
		return;
	for (size_t i = 0; i < sites->sites.len; i++)
		free(sites->sites.data[i]);
	vec_free(&sites->sites);
	map_free(&sites->numbers);
	strtab_free(sites->texts);
	free(sites);
}

static bool text_copy(struct joiner_sites *sites, const char **text)
{
	uint32_t number = strtab_add(sites->texts, *text, strlen(*text));

	*text = strtab_get(sites->texts, number);
	return number != STRTAB_NONE;
}

static struct site_info *site_copy(struct joiner_sites *sites, const struct site_info *site)
{
	struct site_info *copy = malloc(sizeof(*copy));
	bool whole;

	if (!copy)
		return NULL;
	*copy = *site;
	copy->simulated = site_is_simulated(site);
	if (copy->key_count > WAFFLE_KEYS_MAX)
		copy->key_count = WAFFLE_KEYS_MAX;
	whole = text_copy(sites, &copy->name) && text_copy(sites, &copy->category) &&
		text_copy(sites, &copy->file) && text_copy(sites, &copy->func) &&
		text_copy(sites, &copy->object);
	for (unsigned i = 0; whole && i < copy->key_count; i++)
		whole = text_copy(sites, &copy->keys[i].name);
	if (whole)
		return copy;
	free(copy);
	return NULL;
}

const struct site_info *joiner_sites_add(struct joiner_sites *sites, uint32_t number,
					 const struct site_info *site)
{
	uint32_t index = map_get(&sites->numbers, number);
	struct site_info *copy;

	if (index != MAP_NONE)
		return sites->sites.data[index];
	copy = site ? site_copy(sites, site) : NULL;
	if (!copy || !vec_push(&sites->sites, copy)) {
		free(copy);
		return NULL;
	}
	if (!map_set(&sites->numbers, number, (uint32_t)sites->sites.len - 1)) {
		free(copy);
		sites->sites.len--;
		return NULL;
	}
	return copy;
}

const struct site_info *joiner_sites_get(const struct joiner_sites *sites, uint32_t number)
{
	return sites->sites.data[map_get(&sites->numbers, number)];
}
