// SPDX-License-Identifier: Apache-2.0
/*
 * The times in which a Go program has something to run. Each wait in a span asks for them, and a
 * program may have very many threads and switches. So they are merged once for each process, with
 * their sum so far, and each question takes two binary searches.
 */
#include "analyze/why/lookup/why_go_busy.h"

#include <stdlib.h>

#include "analyze/why/lookup/why_evidence.h"
#include "util/memory.h"
#include "util/search.h"

static int by_begin(const void *left, const void *right)
{
	const struct why_go_busy *a = left, *b = right;

	return a->from_ts < b->from_ts ? -1 : a->from_ts > b->from_ts;
}

static void thread_add(struct why_walk *walk, uint32_t thread)
{
	const struct why_thread *of = &walk->intervals.threads[thread];

	walk->why->searched += of->intervals.len;
	for (size_t i = 0; i < of->intervals.len; i++) {
		const struct why_interval *interval = &of->intervals.data[i];

		if (interval->state == WAFFLE_THREAD_RUNNING ||
		    interval->state == WAFFLE_THREAD_RUNNABLE)
			vec_add(&walk->go_busy,
				(struct why_go_busy){interval->from_ts, interval->to_ts, 0});
	}
}

/* Merges the times from `first` on. */
static void times_merge(struct why_walk *walk, size_t first)
{
	struct why_go_busy *times = walk->go_busy.data;
	size_t last = first;

	if (walk->go_busy.len == first)
		return;
	qsort(&times[first], walk->go_busy.len - first, sizeof(*times), by_begin);
	for (size_t i = first + 1; i < walk->go_busy.len; i++) {
		if (times[i].from_ts > times[last].to_ts) {
			times[last + 1] = times[i];
			times[last + 1].before_ns =
				times[last].before_ns + times[last].to_ts - times[last].from_ts;
			last++;
		} else if (times[i].to_ts > times[last].to_ts) {
			times[last].to_ts = times[i].to_ts;
		}
	}
	walk->go_busy.len = last + 1;
}

static const struct why_go_busy_range *range_make(struct why_walk *walk, uint32_t pid)
{
	const struct model_thread *threads = walk->model->threads.data;
	struct why_go_busy_range range = {.first = walk->go_busy.len};

	for (size_t i = why_traced_of(walk, pid);
	     i < walk->traced.len && threads[walk->traced.data[i]].pid == pid; i++)
		thread_add(walk, walk->traced.data[i]);
	times_merge(walk, range.first);
	range.count = walk->go_busy.len - range.first;
	map_put(&walk->go_busy_of, pid, (uint32_t)walk->go_busy_ranges.len);
	vec_add(&walk->go_busy_ranges, range);
	return &walk->go_busy_ranges.data[walk->go_busy_ranges.len - 1];
}

/* The times of a process, of the intervals that are loaded now. */
static const struct why_go_busy_range *range_of(struct why_walk *walk, uint32_t pid)
{
	uint32_t known;

	if (walk->go_busy_load != walk->intervals.loads) {
		walk->go_busy_load = walk->intervals.loads;
		walk->go_busy.len = 0;
		walk->go_busy_ranges.len = 0;
		map_free(&walk->go_busy_of);
	}
	known = map_get(&walk->go_busy_of, pid);
	return known == MAP_NONE ? range_make(walk, pid) : &walk->go_busy_ranges.data[known];
}

/* The sum of the times of a range before ts. */
static uint64_t busy_before(const struct why_walk *walk, const struct why_go_busy_range *range,
			    uint64_t ts)
{
	const struct why_go_busy *times = walk->go_busy.data, *last;
	size_t end = range->first + range->count;
	size_t after = lower_bound_in(range->first, end, i, times[i].from_ts < ts);

	if (after == range->first)
		return 0;
	last = &times[after - 1];
	return last->before_ns + (ts < last->to_ts ? ts : last->to_ts) - last->from_ts;
}

uint64_t why_go_idle_ns(struct why_walk *walk, uint32_t pid, uint64_t from, uint64_t to)
{
	const struct why_go_busy_range *range = range_of(walk, pid);

	walk->why->searched++;
	return to - from - (busy_before(walk, range, to) - busy_before(walk, range, from));
}

void why_go_busy_free(struct why_walk *walk)
{
	vec_free(&walk->go_busy);
	vec_free(&walk->go_busy_ranges);
	map_free(&walk->go_busy_of);
}
