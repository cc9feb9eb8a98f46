// SPDX-License-Identifier: Apache-2.0
/* An index of the switches of each CPU. Without it, nested spans would search the same time again
 * and again, among any number of switches of other CPUs. */
#include "analyze/why/lookup/why_cpus.h"

#include <stdlib.h>

#include "analyze/why/why_walk_types.h"
#include "util/memory.h"
#include "util/search.h"

#define CPUS (UINT16_MAX + 1u)

static void index_make(struct why_walk *walk)
{
	const struct model *model = walk->model;
	uint32_t *begins = memory_zeroed(CPUS + 1, sizeof(*begins));
	uint32_t *switches = memory_get((model->switches.len + 1) * sizeof(*switches));

	walk->cpu_begins = begins;
	walk->cpu_switches = switches;
	/* A counting sort: the number of each CPU's switches, then where they end. Placing the
	 * switches from the last one backwards turns each end into a begin. */
	for (size_t i = 0; i < model->switches.len; i++)
		begins[model->switches.data[i].cpu]++;
	for (uint32_t cpu = 0; cpu < CPUS; cpu++)
		if (begins[cpu])
			walk->cpu_count = cpu + 1;
	for (uint32_t cpu = 1; cpu <= CPUS; cpu++)
		begins[cpu] += begins[cpu - 1];
	for (size_t i = model->switches.len; i--;)
		switches[--begins[model->switches.data[i].cpu]] = (uint32_t)i;
}

void why_cpus_init(struct why_walk *walk, const struct why_walk *like)
{
	walk->cpu_found = memory_zeroed(CPUS, sizeof(*walk->cpu_found));
	if (!like) {
		index_make(walk);
		return;
	}
	walk->cpu_begins = like->cpu_begins;
	walk->cpu_switches = like->cpu_switches;
	walk->cpu_count = like->cpu_count;
}

void why_cpus_free(struct why_walk *walk)
{
	free(walk->cpu_found);
	if (walk->shared)
		return;
	free(walk->cpu_begins);
	free(walk->cpu_switches);
}

size_t why_cpu_after(struct why_walk *walk, uint16_t cpu, uint64_t ts)
{
	const struct model_switch *switches = walk->model->switches.data;
	uint32_t begin = walk->cpu_begins[cpu], count = walk->cpu_begins[cpu + 1u] - begin;
	const uint32_t *of_cpu = &walk->cpu_switches[begin];

	walk->cpu_found[cpu] =
		lower_bound_near(count, walk->cpu_found[cpu], i, switches[of_cpu[i]].ts < ts);
	return begin + walk->cpu_found[cpu];
}

const struct model_switch *why_cpu_switch(const struct why_walk *walk, uint16_t cpu, size_t at)
{
	if (at < walk->cpu_begins[cpu] || at >= walk->cpu_begins[cpu + 1u])
		return NULL;
	walk->why->searched++;
	return &walk->model->switches.data[walk->cpu_switches[at]];
}
