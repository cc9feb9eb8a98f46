// SPDX-License-Identifier: Apache-2.0
/* Which processes are Go programs. Their runtime moves goroutines between threads, so the records
 * of a thread are not those of a goroutine. */
#include "analyze/why/lookup/why_go.h"

#include <string.h>

#include "analyze/why/why_walk_types.h"
#include "util/memory.h"

/* Limit of stacks to examine per process. */
#define GO_STACKS 32

static bool is_go_stack(const struct why_walk *walk, const struct model_wait *wait)
{
	const char *functions[STACK_NAMES_FUNCTIONS];
	uint32_t count = stack_names_functions(walk->names, wait->user_stack, wait->from_ts,
					       functions, STACK_NAMES_FUNCTIONS);

	for (uint32_t i = 0; i < count; i++)
		if (functions[i] && !strncmp(functions[i], "runtime.", 8))
			return true;
	return false;
}

/* Limit of the mapped files to examine. */
#define GO_FILES 4096

/* A shared library written in Go does not make its program a Go program. */
static bool is_program(const struct store_mapping *mapping)
{
	return *mapping->path == '/' && !strstr(mapping->path, ".so");
}

/* Whether a Go program is mapped. `seen` has the files that were examined before: path, a pointer
 * of the reader's → whether it is one. */
static bool is_go_program(struct map *seen, struct stack_names *names,
			  const struct store_mapping *mapping)
{
	uint32_t go;

	if (!is_program(mapping))
		return false;
	go = map_get(seen, (uintptr_t)mapping->path);
	if (go == MAP_NONE && seen->len == GO_FILES)
		return false;
	if (go == MAP_NONE) {
		go = stack_names_is_go(names, mapping);
		map_put(seen, (uintptr_t)mapping->path, go);
	}
	return go;
}

static void find_by_files(struct why_walk *walk)
{
	const struct store_reader *reader = walk->model->reader;
	struct map seen = {0};

	for (uint32_t i = 0; i < store_reader_mapping_count(reader); i++) {
		const struct store_mapping *mapping = store_reader_mapping(reader, i);

		if (is_go_program(&seen, walk->names, mapping)) {
			walk->has_go = true;
			map_put(&walk->go_of, mapping->pid, WHY_GO);
		}
	}
	map_free(&seen);
}

bool why_go_is_process(const struct model *model, struct stack_names *names, uint32_t pid)
{
	const struct store_reader *reader = model->reader;
	struct map seen = {0};
	bool go = false;

	for (uint32_t i = 0; i < store_reader_mapping_count(reader) && !go; i++) {
		const struct store_mapping *mapping = store_reader_mapping(reader, i);

		go = mapping->pid == pid && is_go_program(&seen, names, mapping);
	}
	map_free(&seen);
	return go;
}

static void find_by_stacks(struct why_walk *walk)
{
	const struct model *model = walk->model;

	if (!walk->names)
		return;
	for (size_t i = 0; i < model->waits.len; i++) {
		const struct model_wait *wait = &model->waits.data[i];
		uint32_t pid, seen;

		/* The first page faults of a process come from the loader. */
		if (wait->address || !store_reader_stack(model->reader, wait->user_stack))
			continue;
		pid = model->threads.data[wait->thread].pid;
		seen = map_get(&walk->go_of, pid);
		if (seen == MAP_NONE)
			seen = 0;
		if (seen >= GO_STACKS)
			continue;
		seen = is_go_stack(walk, wait) ? WHY_GO : seen + 1;
		walk->has_go |= seen == WHY_GO;
		map_put(&walk->go_of, pid, seen);
	}
}

void why_go_init(struct why_walk *walk)
{
	if (walk->names)
		find_by_files(walk);
	find_by_stacks(walk);
}

bool why_is_go(const struct why_walk *walk, uint32_t thread)
{
	return thread < walk->model->threads.len &&
	       map_get(&walk->go_of, walk->model->threads.data[thread].pid) == WHY_GO;
}
