// SPDX-License-Identifier: Apache-2.0
/* What libwaffle-gpu says of an operation, a launch, a capture or a session: the values by the
 * names of their keys, which docs/gpu.md lists. */
#include <stdlib.h>
#include <string.h>

#include "model/gpu/gpu_timeline_values_internal.h"
#include "util/memory.h"

static const char *const key_names[TIMELINE_KEY_COUNT] = {
	[TIMELINE_OP] = "op",
	[TIMELINE_DEVICE] = "device",
	[TIMELINE_CONTEXT] = "context",
	[TIMELINE_STREAM] = "stream",
	[TIMELINE_CORRELATION] = "correlation",
	[TIMELINE_COPY] = "kind",
	[TIMELINE_BYTES] = "bytes",
	[TIMELINE_GRAPH] = "graph",
	[TIMELINE_GRAPH_NODE] = "graph_node",
	[TIMELINE_CLAMPED] = "clamped",
	[TIMELINE_STATE] = "state",
	[TIMELINE_CUPTI] = "cupti",
	[TIMELINE_CLOCK_ERROR] = "clock_error_ns",
	[TIMELINE_DROPPED] = "dropped",
	[TIMELINE_ZERO_TIMES] = "zero_times",
	[TIMELINE_UNKNOWN] = "unknown",
	[TIMELINE_HANDLE] = "handle",
};
_Static_assert(TIMELINE_KEY_COUNT <= 32, "timeline_values.has has a bit for each key");

static enum timeline_site_kind site_kind(const struct site_info *site)
{
	if (strcmp(site->category, GPU_CATEGORY))
		return TIMELINE_SITE_NONE;
	if (site->kind == WAFFLE_SITE_SPAN) {
		for (unsigned i = 0; i < site->key_count && i < WAFFLE_KEYS_MAX; i++)
			if (!strcmp(site->keys[i].name, key_names[TIMELINE_OP]))
				return TIMELINE_SITE_OP;
		return TIMELINE_SITE_NONE;
	}
	if (!strcmp(site->name, "launch"))
		return TIMELINE_SITE_LAUNCH;
	if (!strcmp(site->name, "capture"))
		return TIMELINE_SITE_CAPTURE;
	if (!strcmp(site->name, "wait"))
		return TIMELINE_SITE_WAIT;
	return strcmp(site->name, "session") ? TIMELINE_SITE_NONE : TIMELINE_SITE_SESSION;
}

static void site_set(struct timeline_site *to, const struct site_info *site)
{
	to->kind = site_kind(site);
	memset(to->keys, TIMELINE_KEY_COUNT, sizeof(to->keys));
	if (to->kind == TIMELINE_SITE_NONE)
		return;
	for (unsigned i = 0; i < site->key_count && i < WAFFLE_KEYS_MAX; i++)
		for (unsigned key = 0; key < TIMELINE_KEY_COUNT; key++)
			if (!strcmp(site->keys[i].name, key_names[key]))
				to->keys[i] = (uint8_t)key;
}

struct timeline_sites *timeline_sites_find(const struct model *model)
{
	uint32_t count = model_site_count(model);
	struct timeline_sites *sites =
		memory_zeroed(1, sizeof(*sites) + ((size_t)count + 1) * sizeof(sites->site[0]));
	bool any = false;

	sites->count = count;
	for (uint32_t i = 0; i <= count; i++) {
		site_set(&sites->site[i], model_site(model, i));
		any |= sites->site[i].kind != TIMELINE_SITE_NONE;
	}
	if (any)
		return sites;
	free(sites);
	return NULL;
}

void timeline_sites_free(struct timeline_sites *sites)
{
	free(sites);
}

void timeline_values_read(const struct timeline_site *site, struct value_walk walk,
			  struct timeline_values *values)
{
	struct value value;

	values->has = 0;
	for (unsigned i = 0; i < WAFFLE_KEYS_MAX && value_walk_any(&walk, &value); i++) {
		unsigned key = site->keys[i];

		if (key == TIMELINE_KEY_COUNT || value.missing || value.lost || value.null)
			continue;
		if (value.type == WAFFLE_KEY_STR) {
			values->text[key] = value.text;
			values->text_len[key] = value.text_len;
			values->number[key] = 0;
		} else {
			values->number[key] = value.u64;
			values->text_len[key] = 0;
		}
		values->has |= 1u << key;
	}
}
