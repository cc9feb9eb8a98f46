// SPDX-License-Identifier: Apache-2.0
/* The causes of an instance without their culprits: many small culprits of one cause are more than
 * a large one of another cause. */
#include <stdlib.h>

#include "analyze/why/parts/why_idle.h"
#include "analyze/why/why.h"

static struct why_idle_time time_of(const struct why_by_cause *sum)
{
	return (struct why_idle_time){sum->cause, sum->idle, sum->capture, sum->ns};
}

static int comes_first(const void *left, const void *right, void *order)
{
	const struct why_idle_time a = time_of(left), b = time_of(right);

	return why_idle_compare(&a, &b, order);
}

static uint32_t culprits_of(const struct why_part *part)
{
	uint32_t most = part->threads > part->objects ? part->threads : part->objects;

	return most ? most : 1;
}

uint32_t why_by_cause(const struct why *why, const struct why_instance *instance,
		      struct why_by_cause *sums)
{
	struct why_idle_order order;
	uint64_t capture_ns = 0;
	uint32_t count = 0;
	bool idle = false;

	for (uint32_t i = 0; i < instance->part_count; i++) {
		const struct why_part *part = &why->parts.data[instance->part + i];
		uint32_t at = 0;

		while (at < count && (sums[at].cause != part->cause || sums[at].idle != part->idle))
			at++;
		if (at == count)
			sums[count++] = (struct why_by_cause){.cause = part->cause,
							      .idle = part->idle,
							      .capture = true,
							      .largest = i};
		idle |= part->idle;
		capture_ns += part->capture ? part->ns : 0;
		sums[at].capture &= part->capture;
		sums[at].ns += part->ns;
		sums[at].ran_ns += part->ran_ns;
		sums[at].culprits += culprits_of(part);
	}
	order = why_idle_order(idle, instance->to_ts - instance->from_ts, capture_ns);
	if (count)
		qsort_r(sums, count, sizeof(*sums), comes_first, &order);
	return count;
}
