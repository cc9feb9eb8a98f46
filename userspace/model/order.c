// SPDX-License-Identifier: Apache-2.0
/* Records come almost in order, so most items are already in place. We take out the strays, which
 * are earlier than an item before them, radix-sort them and merge them back. */
#include "model/order.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util/memory.h"

#define DIGIT_BITS 11
#define DIGITS (1u << DIGIT_BITS)

static bool item_before(const struct order_item *a, const struct order_item *b)
{
	return a->ts != b->ts ? a->ts < b->ts : a->index < b->index;
}

/* One stable pass over the digit at `shift` of ts - base. */
static void radix_pass(const struct order_item *from, struct order_item *to, size_t count,
		       uint64_t base, unsigned shift)
{
	size_t starts[DIGITS] = {0}, at = 0;

	for (size_t i = 0; i < count; i++)
		starts[((from[i].ts - base) >> shift) & (DIGITS - 1)]++;
	for (size_t digit = 0; digit < DIGITS; digit++) {
		size_t len = starts[digit];

		starts[digit] = at;
		at += len;
	}
	for (size_t i = 0; i < count; i++)
		to[starts[((from[i].ts - base) >> shift) & (DIGITS - 1)]++] = from[i];
}

/* Sorts items by ts, keeping the order of equal ones, with scratch space of the same size. */
static void radix_sort(struct order_item *items, struct order_item *scratch, size_t count)
{
	struct order_item *from = items, *to = scratch, *swap;
	uint64_t min = UINT64_MAX, max = 0;

	for (size_t i = 0; i < count; i++) {
		min = items[i].ts < min ? items[i].ts : min;
		max = items[i].ts > max ? items[i].ts : max;
	}
	for (unsigned shift = 0; shift < 64 && (max - min) >> shift; shift += DIGIT_BITS) {
		radix_pass(from, to, count, min, shift);
		swap = from;
		from = to;
		to = swap;
	}
	if (from != items)
		memcpy(items, from, count * sizeof(*items));
}

/* Merges sorted strays into the sorted first `kept` items, from the back. */
static void merge_back(struct order_item *items, size_t kept, const struct order_item *strays,
		       size_t stray_count)
{
	size_t at = kept + stray_count;

	while (stray_count) {
		if (kept && item_before(&strays[stray_count - 1], &items[kept - 1]))
			items[--at] = items[--kept];
		else
			items[--at] = strays[--stray_count];
	}
}

void order_sort(struct order_item *items, size_t count)
{
	size_t stray_count = 0, kept = 0, taken = 0;
	struct order_item *strays;
	uint64_t max = 0;

	for (size_t i = 0; i < count; i++) {
		if (items[i].ts < max)
			stray_count++;
		else
			max = items[i].ts;
	}
	if (!stray_count)
		return;
	strays = memory_get(2 * stray_count * sizeof(*strays));
	max = 0;
	for (size_t i = 0; i < count; i++) {
		if (items[i].ts < max) {
			strays[taken++] = items[i];
		} else {
			max = items[i].ts;
			items[kept++] = items[i];
		}
	}
	radix_sort(strays, strays + stray_count, stray_count);
	merge_back(items, kept, strays, stray_count);
	free(strays);
}

static uint64_t element_ts(const void *data, size_t index, size_t size, size_t ts_offset)
{
	uint64_t ts;

	memcpy(&ts, (const char *)data + index * size + ts_offset, sizeof(ts));
	return ts;
}

static bool array_sorted(const void *data, size_t count, size_t size, size_t ts_offset)
{
	for (size_t i = 1; i < count; i++)
		if (element_ts(data, i, size, ts_offset) < element_ts(data, i - 1, size, ts_offset))
			return false;
	return true;
}

/* items[i].index is the old index of the element that belongs at i. Each cycle of this permutation
 * is followed once; afterwards items[i].index is i. */
static void array_permute(char *data, size_t count, size_t size, struct order_item *items)
{
	char *held = memory_get(size);

	for (size_t first = 0; first < count; first++) {
		size_t hole = first, source = items[first].index;

		if (source == first)
			continue;
		memcpy(held, data + first * size, size);
		while (source != first) {
			memcpy(data + hole * size, data + source * size, size);
			items[hole].index = (uint32_t)hole;
			hole = source;
			source = items[hole].index;
		}
		memcpy(data + hole * size, held, size);
		items[hole].index = (uint32_t)hole;
	}
	free(held);
}

uint32_t *order_array(void *data, size_t count, size_t size, size_t ts_offset)
{
	struct order_item *items;
	uint32_t *rank;

	if (array_sorted(data, count, size, ts_offset))
		return NULL;
	memory_require(count <= UINT32_MAX); /* an index has 32 bits */
	items = memory_get(count * sizeof(*items));
	rank = memory_get(count * sizeof(*rank));
	for (size_t i = 0; i < count; i++)
		items[i] = (struct order_item){element_ts(data, i, size, ts_offset), (uint32_t)i};
	order_sort(items, count);
	for (size_t i = 0; i < count; i++)
		rank[items[i].index] = (uint32_t)i;
	array_permute(data, count, size, items);
	free(items);
	return rank;
}
