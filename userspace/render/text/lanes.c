// SPDX-License-Identifier: Apache-2.0
#include "render/text/lanes.h"
#include "util/memory.h"

uint32_t lane_rows_place(struct lane_rows *rows, uint64_t start_ts, uint64_t end_ts)
{
	while (rows->ends.len && rows->ends.data[rows->ends.len - 1] <= start_ts)
		rows->ends.len--;
	vec_add(&rows->ends, end_ts);
	return (uint32_t)rows->ends.len - 1;
}

void lane_rows_free(struct lane_rows *rows)
{
	vec_free(&rows->ends);
}

/* Merges an item into the one before it if both fit in the resolution. False: they do not. */
static bool strip_merge(const struct strip *strip, struct strip_item *last,
			const struct strip_item *item)
{
	if (item->to_ts - last->from_ts > strip->resolution ||
	    last->to_ts - last->from_ts > strip->resolution)
		return false;
	if (item->to_ts > last->to_ts)
		last->to_ts = item->to_ts;
	for (unsigned i = 0; i < sizeof(last->ns) / sizeof(*last->ns); i++)
		last->ns[i] += item->ns[i];
	last->count += item->count;
	last->ref = MODEL_NONE;
	return true;
}

static void strip_coarsen(struct strip *strip)
{
	size_t kept = 0;

	strip->resolution = strip->resolution ? 2 * strip->resolution : 1;
	for (size_t i = 0; i < strip->items.len; i++) {
		struct strip_item *item = &strip->items.data[i];

		if (!kept || !strip_merge(strip, &strip->items.data[kept - 1], item))
			strip->items.data[kept++] = *item;
	}
	strip->items.len = kept;
}

void strip_add(struct strip *strip, struct strip_item item)
{
	if (strip->items.len && strip_merge(strip, &strip->items.data[strip->items.len - 1], &item))
		return;
	vec_add(&strip->items, item);
	while (strip->items.len > strip->max && strip->resolution < UINT64_MAX / 2)
		strip_coarsen(strip);
}

void strip_free(struct strip *strip)
{
	vec_free(&strip->items);
}

bool lane_clip(uint64_t window_from, uint64_t window_to, uint64_t *from, uint64_t *to)
{
	bool moment = *from == *to;

	if (*from < window_from)
		*from = window_from;
	if (*to > window_to)
		*to = window_to;
	return moment ? *from == *to : *from < *to;
}
