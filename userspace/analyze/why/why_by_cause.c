// SPDX-License-Identifier: Apache-2.0
/* The causes of an instance without their culprits: many small culprits of one cause are more than
 * a large one of another cause. */
#include <stdlib.h>

#include "analyze/why/why.h"
#include "analyze/why/why_idle_internal.h"

/* As the parts are sorted: what delays an event loop comes before its idle time. */
static int comes_first(const void *left, const void *right, void *delay_ns)
{
	const struct why_by_cause *a = left, *b = right;
	uint64_t least_ns = *(const uint64_t *)delay_ns;
	bool delays = why_idle_is_delay(a->cause, a->idle, a->ns, least_ns);

	if (delays != why_idle_is_delay(b->cause, b->idle, b->ns, least_ns))
		return delays ? -1 : 1;
	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	return a->cause < b->cause ? -1 : a->cause > b->cause;
}

static uint32_t culprits_of(const struct why_part *part)
{
	uint32_t most = part->threads > part->objects ? part->threads : part->objects;

	return most ? most : 1;
}

uint32_t why_by_cause(const struct why *why, const struct why_instance *instance,
		      struct why_by_cause *sums)
{
	uint64_t least_ns = UINT64_MAX;
	uint32_t count = 0;

	for (uint32_t i = 0; i < instance->part_count; i++) {
		const struct why_part *part = &why->parts.data[instance->part + i];
		uint32_t at = 0;

		while (at < count && (sums[at].cause != part->cause || sums[at].idle != part->idle))
			at++;
		if (at == count)
			sums[count++] = (struct why_by_cause){
				.cause = part->cause, .idle = part->idle, .largest = i};
		if (part->idle)
			least_ns = why_idle_delay_ns(instance->to_ts - instance->from_ts);
		sums[at].ns += part->ns;
		sums[at].culprits += culprits_of(part);
	}
	if (count)
		qsort_r(sums, count, sizeof(*sums), comes_first, &least_ns);
	return count;
}
