// SPDX-License-Identifier: Apache-2.0
/* The causes of an instance without their culprits: many small culprits of one cause are more than
 * a large one of another cause. */
#include <stdlib.h>

#include "analyze/why/why.h"

static int compare(const void *left, const void *right, void *thread_ns)
{
	const struct why_by_cause *a = left, *b = right;
	unsigned rank_a = why_cause_rank(a->cause, a->ns, *(uint64_t *)thread_ns);
	unsigned rank_b = why_cause_rank(b->cause, b->ns, *(uint64_t *)thread_ns);

	if (rank_a != rank_b)
		return rank_a < rank_b ? -1 : 1;
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
	uint64_t thread_ns = 0; /* as of why_cause_rank() */
	uint32_t count = 0;

	for (uint32_t i = 0; i < instance->part_count; i++) {
		const struct why_part *part = &why->parts.data[instance->part + i];
		uint32_t at = 0;

		if (part->cause == WHY_IDLE)
			thread_ns = instance->to_ts - instance->from_ts;
		while (at < count && sums[at].cause != part->cause)
			at++;
		if (at == count)
			sums[count++] = (struct why_by_cause){part->cause, 0, 0, i};
		sums[at].ns += part->ns;
		sums[at].culprits += culprits_of(part);
	}
	if (count)
		qsort_r(sums, count, sizeof(*sums), compare, &thread_ns);
	return count;
}
