// SPDX-License-Identifier: Apache-2.0
/*
 * What it costs to take records out of rings, in ns a record: by ring_read() alone, and by the
 * collector's gather, which puts them into one order. Records are events with two integers. Each
 * round fills the rings and then empties them; the medians count.
 *
 *	drain CPU ROUNDS
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "usdt/record/gather.h"
#include "usdt/ring/rings.h"
#include "usdt/ring/ticks.h"
#include "window.h"

#define RECORDS 50000 /* fit into a ring of the default size */

static uint64_t words[RING_RECORD_MAX / 8], delivered;

static void fill(void)
{
	uint64_t frame[6] = {1, 2, 3, 4, 5, 6};

	for (int i = 0; i < RECORDS; i++)
		rings_hit(fill, 1, "event", frame, sizeof(frame));
}

static void deliver(const struct gather_item *item, void *arg)
{
	(void)arg;
	delivered += item->record->bytes > sizeof(*item->record);
}

static void read_all(struct ring *ring)
{
	while (ring_read(ring, (struct ring_record *)words) == RING_RECORD)
		delivered++;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *costs, int rounds)
{
	qsort(costs, (size_t)rounds, sizeof(*costs), compare);
	return costs[rounds / 2];
}

int main(int argc, char **argv)
{
	int rounds = argc == 3 ? atoi(argv[2]) : 0;
	struct ring_gather *gather = gather_new();
	double *read_costs = calloc((size_t)rounds + 1, sizeof(*read_costs)),
	       *gather_costs = calloc((size_t)rounds + 1, sizeof(*gather_costs));

	if (rounds <= 0 || !gather || !read_costs || !gather_costs) {
		fprintf(stderr, "usage: drain CPU ROUNDS\n");
		return 2;
	}
	window_pin(atoi(argv[1]));
	rings_prepare();
	rings_configure(RINGS_COLLECTOR, RING_BYTES_DEFAULT, (uint32_t)ticks_choose(), false);
	rings_collect(true);
	fill();
	read_all(&rings_first(RINGS_COLLECTOR)->ring);
	for (int i = 0; i < rounds; i++) {
		uint64_t before;

		fill();
		before = window_now();
		read_all(&rings_first(RINGS_COLLECTOR)->ring);
		read_costs[i] = (double)(window_now() - before) / RECORDS;
		fill();
		before = window_now();
		gather_round(gather, UINT64_MAX, deliver, NULL);
		gather_costs[i] = (double)(window_now() - before) / RECORDS;
	}
	printf("read %.3f\ngather %.3f\n", median(read_costs, rounds),
	       median(gather_costs, rounds));
	free(read_costs);
	free(gather_costs);
	gather_free(gather);
	return delivered < 2ull * (unsigned)rounds * RECORDS;
}
