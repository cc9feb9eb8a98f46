// SPDX-License-Identifier: Apache-2.0
/*
 * Which thread runs a host function, and when. The records of the calls do not say so, but samples
 * do: the driver has threads that do nothing else.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/why/await/why_await.h"
#include "analyze/why/why_walk_types.h"
#include "util/map.h"
#include "util/memory.h"

/* A thread's running time is that of a function if at least so many of its samples show it, and all
 * but one of so many. */
#define SAMPLES_MIN 3
#define OTHERS_PARTS 10

struct host_function {
	const char *name;
	size_t len;
	bool found;
};

/* The length of a name as far as it is compared: without parameters. Those of a lambda or a functor
 * are part of its name. */
static size_t name_len(const char *name)
{
	size_t len = strlen(name), end = why_await_function_len(name, len);

	return memmem(name, end, "{lambda", strlen("{lambda")) ||
			       memmem(name, len, "operator()", strlen("operator()"))
		       ? len
		       : end;
}

static void compare_frame(const struct stack_frame *frame, void *arg)
{
	struct host_function *function = arg;

	if (frame->function && !frame->kernel && !frame->cut &&
	    name_len(frame->function) == function->len &&
	    !memcmp(frame->function, function->name, function->len))
		function->found = true;
}

/* Whether a stack has the function. `seen` keeps the answers by stack. */
static bool stack_has(struct why_walk *walk, struct map *seen, const struct model_sample *sample,
		      struct host_function *function)
{
	uint32_t known = map_get(seen, sample->user_stack);

	if (known != MAP_NONE)
		return known;
	function->found = false;
	stack_names_each(walk->names, sample->user_stack, sample->ts, compare_frame, function);
	map_put(seen, sample->user_stack, function->found);
	return function->found;
}

/* Counts samples of a process by thread. */
struct thread_samples {
	uint32_t all, of_function;
};

static uint32_t thread_find(struct why_walk *walk, uint32_t pid, struct host_function *function)
{
	const struct model *model = walk->model;
	struct thread_samples *threads = memory_zeroed(model->threads.len, sizeof(*threads));
	struct map seen = {0};
	uint32_t found = MODEL_NONE;

	for (size_t i = 0; i < model->samples.len; i++) {
		const struct model_sample *sample = &model->samples.data[i];

		if (sample->thread >= model->threads.len ||
		    model->threads.data[sample->thread].pid != pid || !sample->user_stack)
			continue;
		threads[sample->thread].all++;
		threads[sample->thread].of_function += stack_has(walk, &seen, sample, function);
	}
	for (uint32_t i = 0; i < model->threads.len; i++)
		if (threads[i].of_function >= SAMPLES_MIN &&
		    threads[i].all - threads[i].of_function <= threads[i].all / OTHERS_PARTS &&
		    (found == MODEL_NONE || threads[i].of_function > threads[found].of_function))
			found = i;
	map_free(&seen);
	free(threads);
	return found;
}

uint32_t why_await_host_thread(struct why_walk *walk, uint32_t pid, uint32_t name)
{
	struct why_awaits *awaits = &walk->awaits;
	const uint64_t key = (uint64_t)pid << 32 | name;
	const size_t count = walk->model->samples.len + walk->model->threads.len;
	uint32_t found = map_get(&awaits->host_threads, key);
	struct host_function function = {.name = strtab_get(walk->why->texts, name)};

	if (found != MAP_NONE)
		return found - 1;
	found = MODEL_NONE;
	function.len = name_len(function.name);
	if (walk->names && function.len && why_await_steps(walk, count) == count)
		found = thread_find(walk, pid, &function);
	map_put(&awaits->host_threads, key, found + 1);
	return found;
}

bool why_await_host_runs(const struct why_walk *walk, uint32_t thread, uint64_t from, uint64_t *to)
{
	const struct why_thread *of = &walk->intervals.threads[thread];
	size_t index = why_intervals_after(&walk->intervals, thread, from);
	uint64_t until;
	bool runs;

	if (index >= of->intervals.len)
		return false;
	runs = of->intervals.data[index].from_ts <= from &&
	       of->intervals.data[index].state == WAFFLE_THREAD_RUNNING;
	until = of->intervals.data[index].from_ts > from ? of->intervals.data[index].from_ts
							 : of->intervals.data[index].to_ts;
	if (until < *to)
		*to = until;
	return runs;
}
