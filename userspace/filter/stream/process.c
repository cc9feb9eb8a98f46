// SPDX-License-Identifier: Apache-2.0
#include "filter/stream/process_internal.h"

#define PROCESSES_MAX 65536u
#define PROCESSES_TRIED 64 /* entries to look at when all are taken */

struct stream_process *stream_process_get(struct stream_processes *processes, uint32_t tgid)
{
	uint32_t index = processes->last;

	if (index >= processes->list.len || processes->list.data[index].tgid != tgid) {
		index = map_get(&processes->by_tgid, tgid);
		if (index == MAP_NONE)
			return NULL;
		processes->last = index;
	}
	return &processes->list.data[index];
}

/* Processes whose exit nobody has told of are forgotten when they have nothing open. */
static uint32_t entry_reuse(struct stream_processes *processes)
{
	for (unsigned i = 0; i < PROCESSES_TRIED; i++) {
		uint32_t index = processes->cursor++ % PROCESSES_MAX;
		struct stream_process *process = &processes->list.data[index];

		if (process->open || process->buffer_count)
			continue;
		map_remove(&processes->by_tgid, process->tgid);
		return index;
	}
	return STREAM_NONE;
}

struct stream_process *stream_process_make(struct stream_processes *processes, uint32_t tgid)
{
	struct stream_process *process = stream_process_get(processes, tgid);
	uint32_t index = (uint32_t)processes->list.len;

	if (process)
		return process;
	if (index >= PROCESSES_MAX)
		index = entry_reuse(processes);
	else if (!vec_reserve(&processes->list, 1))
		return NULL;
	if (index == STREAM_NONE || !map_set(&processes->by_tgid, tgid, index))
		return NULL;
	if (index == processes->list.len)
		processes->list.len++;
	process = &processes->list.data[index];
	*process = (struct stream_process){
		.tgid = tgid, .oldest = STREAM_NONE, .youngest = STREAM_NONE};
	processes->last = index;
	return process;
}

void stream_processes_free(struct stream_processes *processes)
{
	vec_free(&processes->list);
	map_free(&processes->by_tgid);
}
