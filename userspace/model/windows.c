// SPDX-License-Identifier: Apache-2.0
#include "model/windows.h"

#include <stdlib.h>

#include "util/memory.h"
#include "util/search.h"

void windows_add(struct windows *windows, uint64_t from_ts, uint64_t to_ts)
{
	vec_add(&windows->list, (struct window){from_ts, to_ts});
}

static int window_compare(const void *left, const void *right)
{
	const struct window *a = left, *b = right;

	return a->from_ts < b->from_ts ? -1 : a->from_ts > b->from_ts;
}

void windows_merge(struct windows *windows)
{
	size_t kept = 0;

	if (!windows->list.len)
		return;
	qsort(windows->list.data, windows->list.len, sizeof(struct window), window_compare);
	for (size_t i = 1; i < windows->list.len; i++) {
		struct window *last = &windows->list.data[kept];
		struct window next = windows->list.data[i];

		if (next.from_ts > last->to_ts)
			windows->list.data[++kept] = next;
		else if (next.to_ts > last->to_ts)
			last->to_ts = next.to_ts;
	}
	windows->list.len = kept + 1;
}

bool windows_touch(const struct windows *windows, uint64_t from_ts, uint64_t to_ts)
{
	const struct window *list = windows->list.data;
	size_t first = lower_bound(windows->list.len, i, list[i].to_ts < from_ts);

	return first < windows->list.len && list[first].from_ts <= to_ts;
}

void windows_free(struct windows *windows)
{
	vec_free(&windows->list);
}
