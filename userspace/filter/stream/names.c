// SPDX-License-Identifier: Apache-2.0
#include "filter/stream/names_internal.h"

#include <string.h>

/* More threads than can live at a time: those whose exits were lost are replaced. */
#define NAMES_MAX (1u << 18)

static uint32_t entry_take(struct stream_names *names)
{
	uint32_t index;

	if (names->free.len)
		return names->free.data[--names->free.len];
	if (names->list.len < NAMES_MAX)
		return vec_push(&names->list, (struct stream_name){0})
			       ? (uint32_t)names->list.len - 1
			       : MAP_NONE;
	index = names->cursor++ % NAMES_MAX;
	if (map_get(&names->by_thread, names->list.data[index].thread) == index)
		map_remove(&names->by_thread, names->list.data[index].thread);
	return index;
}

void stream_name_set(struct stream_names *names, uint64_t thread,
		     const char comm[WAFFLE_COMM_BYTES])
{
	uint32_t index = map_get(&names->by_thread, thread);

	if (index == MAP_NONE) {
		index = entry_take(names);
		if (index == MAP_NONE)
			return;
		if (!map_set(&names->by_thread, thread, index)) {
			(void)vec_push(&names->free, index);
			return;
		}
	}
	names->list.data[index].thread = thread;
	memcpy(names->list.data[index].comm, comm, WAFFLE_COMM_BYTES);
	names->list.data[index].comm[WAFFLE_COMM_BYTES - 1] = '\0';
}

const char *stream_name_get(const struct stream_names *names, uint64_t thread)
{
	uint32_t index = map_get(&names->by_thread, thread);

	return index == MAP_NONE ? NULL : names->list.data[index].comm;
}

void stream_name_remove(struct stream_names *names, uint64_t thread)
{
	uint32_t index = map_remove(&names->by_thread, thread);

	/* Without memory the entry is used again when all others are taken. */
	if (index != MAP_NONE)
		(void)vec_push(&names->free, index);
}

void stream_names_free(struct stream_names *names)
{
	vec_free(&names->list);
	vec_free(&names->free);
	map_free(&names->by_thread);
}
