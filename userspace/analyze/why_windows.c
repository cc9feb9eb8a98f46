// SPDX-License-Identifier: Apache-2.0
#include "analyze/why_internal.h"

#include <stdlib.h>

static int window_compare(const void *left, const void *right)
{
	const struct why_window *a = left, *b = right;

	if (a->from_ts != b->from_ts)
		return a->from_ts < b->from_ts ? -1 : 1;
	return a->to_ts < b->to_ts ? -1 : a->to_ts > b->to_ts;
}

void windows_merge(struct why_windows *windows)
{
	struct why_window *list = windows->list.data;
	size_t count = 0;

	if (!windows->list.len)
		return;
	qsort(list, windows->list.len, sizeof(*list), window_compare);
	for (size_t i = 0; i < windows->list.len; i++) {
		if (!count || list[i].from_ts > list[count - 1].to_ts)
			list[count++] = list[i];
		else if (list[i].to_ts > list[count - 1].to_ts)
			list[count - 1].to_ts = list[i].to_ts;
	}
	windows->list.len = count;
}

bool windows_overlap(const struct why_windows *windows, uint64_t from_ts, uint64_t to_ts)
{
	size_t low = 0, high = windows->list.len;

	/* The first window that ends at from_ts or later. */
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (windows->list.data[middle].to_ts < from_ts)
			low = middle + 1;
		else
			high = middle;
	}
	return low < windows->list.len && windows->list.data[low].from_ts <= to_ts;
}
