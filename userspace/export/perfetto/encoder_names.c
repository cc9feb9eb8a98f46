// SPDX-License-Identifier: Apache-2.0
/* Interned names: of events, categories and keys. */
#include <stdio.h>
#include <string.h>

#include "export/perfetto/encoder.h"
#include "util/memory.h"

static const char *const own_key_names[OWN_KEY_COUNT] = {
	[OWN_ID] = "id",
	[OWN_PARENT] = "parent",
	[OWN_TRACE] = "trace",
	[OWN_RUNNING] = "running_ns",
	[OWN_RUNNABLE] = "runnable_ns",
	[OWN_BLOCKED] = "blocked_ns",
	[OWN_BEGUN_BEFORE] = "begun_before",
	[OWN_UNFINISHED] = "unfinished",
	[OWN_LEFT] = "left",
	[OWN_END_TID] = "end_tid",
	[OWN_LOSS] = "loss",
	[OWN_SEVERITY] = "severity",
	[OWN_CAUSED_BY] = "caused_by",
	[OWN_STACK] = "stack",
	[OWN_CAUSES] = "causes",
};

static uint32_t name_add(struct pf_encoder *p, const char *text, const char *if_empty)
{
	ProtobufCBinaryData clean;
	uint32_t index;

	if (!*text)
		text = if_empty;
	p->event.scratch_len = 0;
	clean = perfetto_text(p, text, strlen(text));
	index = strtab_put(p->names.text, (const char *)clean.data, clean.len);
	for (int list = 0; list < NAME_LIST_COUNT; list++) {
		while (p->names.defined[list].len <= index)
			vec_add(&p->names.defined[list], 0);
	}
	return index;
}

uint32_t names_own(struct pf_encoder *p, const char *text)
{
	return name_add(p, text, "?");
}

static bool key_is_used(const struct site_names *names, unsigned count, uint32_t key)
{
	for (unsigned k = 0; k < count; k++)
		if (names->keys[k] == key)
			return true;
	return false;
}

/* The name of a site's key: "cause", and "cause_2" of a second one, since viewers show only one
 * annotation of a name. */
static uint32_t key_name_add(struct pf_encoder *p, const struct site_names *names,
			     const struct site_info *site, unsigned key)
{
	uint32_t added = name_add(p, site->keys[key].name, "key");
	char other[64];

	for (unsigned number = 2; key_is_used(names, key, added); number++) {
		snprintf(other, sizeof(other), "%.48s_%u", site->keys[key].name, number);
		added = name_add(p, other, "key");
	}
	return added;
}

static void site_names_set(struct pf_encoder *p, struct site_names *names,
			   const struct site_info *site)
{
	char other[32];

	names->name = name_add(p, site->name, "(unnamed)");
	names->category = name_add(p, site->category, "");
	for (unsigned k = 0; k < site->key_count && k < WAFFLE_KEYS_MAX; k++)
		names->keys[k] = key_name_add(p, names, site, k);
	for (int own = 0; own < OWN_KEY_COUNT; own++) {
		names->own[own] = name_add(p, own_key_names[own], "");
		for (unsigned k = 0; k < site->key_count && k < WAFFLE_KEYS_MAX; k++) {
			if (names->keys[k] != names->own[own])
				continue;
			snprintf(other, sizeof(other), "waffle_%s", own_key_names[own]);
			names->own[own] = name_add(p, other, "");
			break;
		}
	}
}

void names_add_site(struct pf_encoder *p, const struct site_info *site)
{
	struct site_names names = {0};

	site_names_set(p, &names, site);
	vec_add(&p->names.sites, names);
}

const struct site_names *names_of_site(const struct pf_encoder *p, uint32_t site)
{
	return &p->names.sites.data[site];
}
