// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "model/gpu/gpu_timeline_internal.h"
#include "util/memory.h"

/* Consecutive ids whose launches stand together. More would waste memory if a capture has few of
 * the ids, fewer would do so if it has all of them. */
#define PAGE_BITS 4
#define PAGE (1u << PAGE_BITS)

/* CUPTI's correlation ids have 32 bits. */
static uint64_t key_of(uint32_t arming, uint32_t correlation)
{
	return (uint64_t)arming << 32 | correlation;
}

/* The page of a key; MAP_NONE: there is none. */
static uint32_t page_find(struct timeline_correlations *correlations, uint64_t key)
{
	uint32_t page;

	if (correlations->has_last && correlations->last_key == key >> PAGE_BITS)
		return correlations->last_page;
	page = map_get(&correlations->pages, key >> PAGE_BITS);
	if (page == MAP_NONE)
		return page;
	correlations->has_last = true;
	correlations->last_key = key >> PAGE_BITS;
	correlations->last_page = page;
	return page;
}

uint32_t timeline_launch_at(struct timeline_correlations *correlations, uint32_t arming,
			    uint32_t correlation)
{
	uint32_t page = page_find(correlations, key_of(arming, correlation));

	if (page == MAP_NONE)
		return MODEL_NONE;
	return correlations->launches.data[(size_t)page * PAGE + correlation % PAGE];
}

void timeline_launch_put(struct timeline_correlations *correlations, uint32_t arming,
			 uint32_t correlation, uint32_t launch)
{
	uint64_t key = key_of(arming, correlation);
	uint32_t page = page_find(correlations, key);

	if (page == MAP_NONE) {
		page = (uint32_t)(correlations->launches.len / PAGE);
		vec_need(&correlations->launches, PAGE);
		memset(&correlations->launches.data[correlations->launches.len], 0xff,
		       PAGE * sizeof(*correlations->launches.data));
		correlations->launches.len += PAGE;
		map_put(&correlations->pages, key >> PAGE_BITS, page);
	}
	correlations->launches.data[(size_t)page * PAGE + correlation % PAGE] = launch;
}

void timeline_correlations_free(struct timeline_correlations *correlations)
{
	map_free(&correlations->pages);
	vec_free(&correlations->launches);
}
